package bench

import (
	"testing"

	"placer/internal/report"
)

// TestSummariseSteps: eager steps that are the host's are told by the same plan as
// a graph, not by the host's being busy alone.
func TestSummariseSteps(t *testing.T) {
	trial := func(plan, mode string, predicted, measured, issue float64) report.Trial {
		return report.Trial{Workload: "w", Devices: 1, Plan: plan, Mode: mode, Predicted: predicted, Measured: measured, Issue: issue}
	}
	s := &report.Steps{Trials: []report.Trial{
		trial("a", "eager", 1, 1, 0.95), trial("a", "graph", 0.9, 0.9, 0), // the device's: the host waits for it
		trial("b", "eager", 1, 3, 2.9), trial("b", "graph", 1, 1, 0), // the host's
	}}
	summarise(s)
	want := map[string][2]float64{"plans by rule, eager": {2, 1. / 3}, "plans by rule, graph": {2, 0}, "plans by rule, eager, where the host keeps up": {1, 0}}
	if len(s.Summary) != len(want) {
		t.Errorf("%+v", s.Summary)
	}
	for _, e := range s.Summary {
		if w, ok := want[e.Of]; !ok || float64(e.Trials) != w[0] || e.MAPE-w[1] > 1e-9 || w[1]-e.MAPE > 1e-9 {
			t.Errorf("%+v", e)
		}
	}
}
