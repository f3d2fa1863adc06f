package conformance_test

import (
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/placer/methods"
	"placer/plan"
)

// traits are what the suite must know of a method beside its entry in the
// catalogue; most methods need none.
var traits = map[string]conformance.Method{
	"random-best": {Reaches: true},
	"local":       {Reaches: true},
	"anneal":      {Reaches: true},
	"exact":       {Reaches: true, Optimal: true},
	"cp-sat":      {Reaches: true, Optimal: true},
	// It evaluates a round of samples at a time.
	"REGAL":     {Refuses: true},
	"GDP-one":   {Batch: 8, Evaluations: 48},
	"GDP-batch": {Batch: 8, Evaluations: 48},
	"GO-one":    {Batch: 64, Evaluations: 128, Refuses: true},
}

// oblivious are the methods whose sources do not know memory, and that may answer
// with a placement that does not fit where others fit.
var oblivious = []string{"single", "tf-default", "random", "roundrobin", "metis", "scotch", "mincut", "human", "layers", "accelerate", "vllm", "llama.cpp", "n-cpu-moe", "torchtitan"}

// TestEveryMethod runs the suite on all of the catalogue, so that no method can
// be added without it.
func TestEveryMethod(t *testing.T) {
	for _, m := range methods.Methods() {
		t.Run(m.Name, func(t *testing.T) {
			x := traits[m.Name]
			x.Name, x.New = m.Name, func() (plan.Placer, error) { return m.New(methods.Default()) }
			x.Fits = !slices.Contains(oblivious, m.Name)
			conformance.Run(t, x)
		})
	}
}
