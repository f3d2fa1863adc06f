// Command papers recomputes the percentages of GO's table 2 from the step times
// in the same rows and prints the cells that they contradict. See README.md
// beside it.
package main

import (
	"fmt"
	"io"
	"math"
	"os"

	"placer/internal/compare"
)

// row is a row of table 2 of GO (Zhou et al., NeurIPS 2020): step times in
// seconds and the printed run-time
// speed-ups in percent.
type row struct {
	name               string
	ours, human, hdp   float64
	overHuman, overHDP float64
}

func table2() []row {
	return []row{
		{name: "2-layer RNNLM (2)", ours: 0.173, human: 0.192, hdp: 0.191, overHuman: 9.9, overHDP: 9.4},
		{name: "4-layer RNNLM (4)", ours: 0.210, human: 0.239, hdp: 0.251, overHuman: 13.8, overHDP: 16.3},
		{name: "8-layer RNNLM (8)", ours: 0.320, human: 0.332, hdp: 0.764, overHuman: 3.8, overHDP: 58.1},
		{name: "2-layer GNMT (2)", ours: 0.301, human: 0.384, hdp: 0.327, overHuman: 27.6, overHDP: 14.3},
		{name: "4-layer GNMT (4)", ours: 0.350, human: 0.469, hdp: 0.432, overHuman: 34, overHDP: 23.4},
		{name: "8-layer GNMT (8)", ours: 0.440, human: 0.562, hdp: 0.693, overHuman: 21.7, overHDP: 36.5},
		{name: "2-layer Transformer-XL (2)", ours: 0.223, human: 0.268, hdp: 0.262, overHuman: 20.1, overHDP: 17.4},
		{name: "4-layer Transformer-XL (4)", ours: 0.230, human: 0.27, hdp: 0.259, overHuman: 17.4, overHDP: 12.6},
		{name: "8-layer Transformer-XL (8)", ours: 0.350, human: 0.46, hdp: 0.425, overHuman: 23.9, overHDP: 16.7},
		{name: "Inception b32 (2)", ours: 0.229, human: 0.312, hdp: 0.301, overHuman: 26.6, overHDP: 23.9},
		{name: "Inception b64 (2)", ours: 0.423, human: 0.731, hdp: 0.498, overHuman: 42.1, overHDP: 29.3},
		{name: "AmoebaNet (4)", ours: 0.394, human: 0.44, hdp: 0.418, overHuman: 26.1, overHDP: 6.1},
		{name: "2-stack 18-layer WaveNet (2)", ours: 0.317, human: 0.376, hdp: 0.354, overHuman: 18.6, overHDP: 11.7},
		{name: "4-stack 36-layer WaveNet (4)", ours: 0.659, human: 0.988, hdp: 0.721, overHuman: 50, overHDP: 9.4},
	}
}

// slack is half of what the printed percentages and times can hide: times have
// three digits, percentages one decimal.
const slack = 0.6

func main() { run(os.Stdout) }

func run(w io.Writer) {
	var human, hdp means
	fmt.Fprintln(w, "| row | against | ours (s) | theirs (s) | printed | 1 - ours/theirs | theirs/ours - 1 | printed is |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---|")
	for _, r := range table2() {
		cell(w, r.name, "human", r.ours, r.human, r.overHuman, &human)
		cell(w, r.name, "HDP", r.ours, r.hdp, r.overHDP, &hdp)
	}
	human.write(w, "human", 20.5)
	hdp.write(w, "HDP", 18.2)
}

func cell(w io.Writer, name, against string, ours, theirs, printed float64, m *means) {
	less, faster := 100*compare.Reduction(ours, theirs), 100*(theirs/ours-1)
	verdict := "neither"
	switch {
	case math.Abs(printed-less) <= slack && math.Abs(printed-faster) <= slack:
		verdict = "either"
	case math.Abs(printed-less) <= slack:
		verdict = "the reduction"
	case math.Abs(printed-faster) <= slack:
		verdict = "the speed-up"
	}
	m.log += math.Log(ours / theirs)
	m.n++
	fmt.Fprintf(w, "| %s | %s | %.3f | %.3f | %.1f%% | %.1f%% | %.1f%% | %s |\n", name, against, ours, theirs, printed, less, faster, verdict)
}

// means collects the rows of one comparison.
type means struct {
	log float64
	n   int
}

func (m *means) write(w io.Writer, against string, printed float64) {
	ratio := math.Exp(m.log / float64(m.n))
	fmt.Fprintf(w, "| geometric mean | %s | | | %.1f%% | %.1f%% | %.1f%% | |\n", against, printed, 100*(1-ratio), 100*(1/ratio-1))
}
