package methods

import (
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/search/anneal"
	"placer/graph/unit"
	"placer/placer/portfolio"
	"placer/placer/pretrained"
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

// TestSlowBaselinesAreMarked: in a budget in seconds these come last (docs/cli.md).
func TestSlowBaselinesAreMarked(t *testing.T) {
	var slow []string
	for _, m := range ByDefault(Problem{}, ForSearch(Problem{}, Default())) {
		if m.Slow {
			slow = append(slow, m.Name)
		}
	}
	if want := []string{"metis", "scotch", "heft", "etf"}; !slices.Equal(slow, want) {
		t.Errorf("%v are slow, want %v", slow, want)
	}
}

// TestPolicyBeginsWhereItPays: a search of the placement of a graph that is not large begins
// with the rules alone (docs/adr/0108).
func TestPolicyBeginsWhereItPays(t *testing.T) {
	for _, x := range []struct {
		name string
		p    Problem
		want bool
	}{
		{"placement", Problem{Tasks: plan.Place, Ops: 5000}, false},
		{"placement of a large graph", Problem{Tasks: plan.Place, Ops: largeGraph}, true},
		{"all tasks", Problem{Tasks: plan.AllTasks, Ops: 5000}, true},
		{"throughput", Problem{Tasks: plan.Place, Ops: 5000, Objective: plan.Throughput}, true},
		{"from scratch", Problem{Tasks: plan.AllTasks, Ops: 5000, FromScratch: true}, false},
	} {
		all := ForSearch(x.p, Default())
		if got := slices.ContainsFunc(ByDefault(x.p, all), func(m search.Method) bool { return m.Name == ZeroShot }); got != x.want {
			t.Errorf("%s: begins with the policy: %t, want %t", x.name, got, x.want)
		}
	}
}

// TestThroughputHasAllMethods: a search by throughput holds balance against the
// partitioners and against annealing of the whole graph, which on operator graphs of larger
// transformers come out ahead of it.
func TestThroughputHasAllMethods(t *testing.T) {
	p := Problem{Objective: plan.Throughput}
	var have []string
	for _, m := range ByDefault(p, ForSearch(p, Default())) {
		have = append(have, m.Name)
	}
	for _, a := range arms(p, Default(), guidesFor(p)) {
		have = append(have, a.Name)
	}
	for _, want := range []string{"metis", "scotch", "pipedream", "contiguous", Portfolio, "balance", "anneal"} {
		if !slices.Contains(have, want) {
			t.Errorf("no %s among %v", want, have)
		}
	}
}

// TestGuidedArms: the network of moves of placement takes part where steps are judged and
// placement alone is decided, unless what is pretrained may not. That of all tasks is there
// where it is asked for.
func TestGuidedArms(t *testing.T) {
	for _, c := range []struct {
		p    Problem
		want bool
	}{
		{Problem{Tasks: plan.Place}, true},
		{Problem{}, true}, // no tasks stand for placement
		{Problem{Tasks: plan.Place | plan.Fuse}, false},
		{Problem{Tasks: plan.AllTasks}, false},
		{Problem{Tasks: plan.Place, FromScratch: true}, false},
		{Problem{Tasks: plan.Place, Objective: plan.Throughput}, false},
		{Problem{Tasks: plan.Place, Objective: plan.Memory}, false},
	} {
		x := armOf(t, arms(c.p, Default(), guidesFor(c.p)), "anneal").(anneal.Placer)
		if x.Guide != nil != c.want || x.JointGuide != nil {
			t.Errorf("%+v: guided is %t, of all tasks %t, want %t and false", c.p, x.Guide != nil, x.JointGuide != nil, c.want)
		}
	}
	n, err := pretrained.Moves(plan.AllTasks)
	if err != nil {
		t.Fatal(err)
	}
	all := NewPortfolio(Problem{Tasks: plan.AllTasks}, Default(), Guides{All: n}, plan.Decision{}).Arms
	for _, name := range []string{"all tasks", "fuse", "schedule"} {
		if armOf(t, all, name).(turn).Placer.(anneal.Placer).JointGuide != anneal.Guide(n) {
			t.Errorf("arm %s lacks the guide that is asked for", name)
		}
	}
}

// armOf returns the method of the arm of that name.
func armOf(t *testing.T, all []portfolio.Arm, name string) plan.Placer {
	t.Helper()
	for _, a := range all {
		if a.Name == name {
			x, err := a.New(plan.Decision{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
	}
	t.Fatalf("no arm %s", name)
	return nil
}
