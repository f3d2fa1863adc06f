package cli

import (
	"testing"

	"placer/baselines/conformance"
	"placer/graph/unit"
	"placer/placer"
	"placer/plan"
)

// TestPolishConforms runs the conformance suite on the one method of a search
// that is not in the catalogue, whose methods have their own run.
func TestPolishConforms(t *testing.T) {
	conformance.Run(t, conformance.Method{Name: "polish", Reaches: true, New: func() (plan.Placer, error) { return polish(1).New(placer.Start{}) }})
}

func TestMethodsAreWhatTheySay(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range methods(unit.Cell, 1, plan.Step, plan.Place, true) {
		p, err := m.New(placer.Start{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Name() != m.Name || p.Kind() != m.Kind || seen[m.Name] {
			t.Errorf("method %q of kind %q makes %q of kind %q", m.Name, m.Kind, p.Name(), p.Kind())
		}
		quick := m.Kind == plan.Baseline || m.Name == zeroShot // a policy that does not learn takes seconds
		if quick != (m.Stage == placer.StageBaseline) || (m.Weight > 0) != (m.Stage != placer.StageBaseline) {
			t.Errorf("method %q of kind %q is in stage %d with weight %g", m.Name, m.Kind, m.Stage, m.Weight)
		}
		seen[m.Name] = true
	}
}
