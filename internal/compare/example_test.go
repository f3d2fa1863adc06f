package compare_test

import (
	"fmt"

	"placer/internal/compare"
)

func ExampleSummarise() {
	m := compare.Matrix{Format: compare.MatrixFormat, Methods: []string{"human", "anneal"}, Against: "human", Evaluations: 1000,
		Cases: []compare.Case{{Workload: "rnnlm2", GPU: "p100", GPUs: 2}}, Seeds: []uint64{1, 2, 3}}
	var trials []compare.Trial
	for i, c := range m.Cells() {
		trials = append(trials, compare.Trial{Cell: c, StepTime: []float64{0.2, 0.15, 0.2, 0.17, 0.2, 0.16}[i]})
	}
	c := compare.Summarise(m, trials)
	t := c.Totals[1]
	fmt.Printf("%s: %.0f%% less, %d wins of %d\n", t.Method, 100**t.Reduction, t.Wins, len(m.Seeds))
	// Output:
	// anneal: 20% less, 3 wins of 3
}
