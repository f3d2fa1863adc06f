package methods

import (
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/search/anneal"
	"placer/graph/unit"
	"placer/placer/search"
	"placer/plan"
)

// TestPolishConforms runs the conformance suite on the one method of a search
// that is not in the catalogue, whose methods have their own run.
func TestPolishConforms(t *testing.T) {
	conformance.Run(t, conformance.Method{Name: "polish", Reaches: true, New: func() (plan.Placer, error) { return polish(plan.Place).New(search.Start{}) }})
}

func TestSearchMethodsAreWhatTheySay(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range ForSearch(Problem{Uncontended: true}, Options{Level: unit.Cell, Workers: 2}) {
		p, err := m.New(search.Start{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Name() != m.Name || p.Kind() != m.Kind || seen[m.Name] {
			t.Errorf("method %q of kind %q makes %q of kind %q", m.Name, m.Kind, p.Name(), p.Kind())
		}
		quick := m.Kind == plan.Baseline || m.Name == ZeroShot // a policy that does not learn takes seconds
		if quick != (m.Stage == search.StageBaseline) || (m.Weight > 0) != (m.Stage != search.StageBaseline) {
			t.Errorf("method %q of kind %q is in stage %d with weight %g", m.Name, m.Kind, m.Stage, m.Weight)
		}
		seen[m.Name] = true
	}
}

// TestThroughputHasAllMethods: a search by throughput holds balance against the
// partitioners and against annealing of the whole graph, which on operator graphs of larger
// transformers come out ahead of it.
func TestThroughputHasAllMethods(t *testing.T) {
	p := Problem{Objective: plan.Throughput}
	var have []string
	for _, m := range ByDefault(ForSearch(p, Default())) {
		have = append(have, m.Name)
	}
	for _, a := range arms(p, Default()) {
		have = append(have, a.Name)
	}
	for _, want := range []string{"metis", "scotch", "pipedream", "contiguous", Portfolio, "balance", "anneal"} {
		if !slices.Contains(have, want) {
			t.Errorf("no %s among %v", want, have)
		}
	}
}

// TestGuidedArms: the network of moves takes part where steps are judged and placement
// alone is decided, unless what is pretrained may not.
func TestGuidedArms(t *testing.T) {
	for _, c := range []struct {
		p    Problem
		want bool
	}{
		{Problem{Tasks: plan.Place}, true},
		{Problem{}, true}, // no tasks stand for placement
		{Problem{Tasks: plan.Place | plan.Fuse}, false},
		{Problem{Tasks: plan.Place, FromScratch: true}, false},
		{Problem{Tasks: plan.Place, Objective: plan.Throughput}, false},
		{Problem{Tasks: plan.Place, Objective: plan.Memory}, false},
	} {
		for _, a := range arms(c.p, Default()) {
			if a.Name != "anneal" {
				continue
			}
			x, err := a.New(plan.Decision{})
			if err != nil {
				t.Fatal(err)
			}
			if got := x.(anneal.Placer).Guide != nil; got != c.want {
				t.Errorf("%+v: guided is %t, want %t", c.p, got, c.want)
			}
		}
	}
}
