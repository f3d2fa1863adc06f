package cli

import (
	"errors"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/metis"
	"placer/graph/unit"
	"placer/placer"
	"placer/plan"
)

// TestMethodsConform runs the conformance suite on every method of a search, so
// that none can be added without it.
func TestMethodsConform(t *testing.T) {
	// What finds the optimum of eight units in 5,000 evaluations.
	reaches := map[string]bool{"random-best": true, "anneal": true, "local": true}
	for _, m := range methods(unit.Chain, 2) {
		t.Run(m.Name, func(t *testing.T) {
			c := conformance.Method{Name: m.Name, Reaches: reaches[m.Name], New: func() (plan.Placer, error) { return m.New(placer.Start{}) },
				Unavailable: func(err error) bool { return errors.Is(err, metis.ErrUnavailable) }}
			if m.Kind == plan.Policy {
				c.Batch = 64 // it evaluates a round of samples at a time
				c.Evaluations, c.Refuses = 128, true
			}
			conformance.Run(t, c)
		})
	}
}

func TestMethodsAreWhatTheySay(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range methods(unit.Cell, 1) {
		p, err := m.New(placer.Start{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Name() != m.Name || p.Kind() != m.Kind || seen[m.Name] {
			t.Errorf("method %q of kind %q makes %q of kind %q", m.Name, m.Kind, p.Name(), p.Kind())
		}
		if (m.Kind == plan.Baseline) != (m.Stage == placer.StageBaseline) || (m.Weight > 0) != (m.Stage != placer.StageBaseline) {
			t.Errorf("method %q of kind %q is in stage %d with weight %g", m.Name, m.Kind, m.Stage, m.Weight)
		}
		seen[m.Name] = true
	}
}
