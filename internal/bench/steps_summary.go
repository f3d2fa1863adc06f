package bench

import (
	"fmt"
	"slices"

	"placer/internal/report"
	"placer/measure"
	"placer/roofline"
	"placer/units"
)

// summarise fills in the summary of s: the trials of each mode that are no random
// plans, and the random plans of each workload and number of devices.
func summarise(s *report.Steps) {
	type set struct{ predicted, measured []units.Seconds }
	sets := map[string]*set{}
	var order []string
	add := func(name string, t *report.Trial) {
		if sets[name] == nil {
			sets[name] = &set{}
			order = append(order, name)
		}
		sets[name].predicted = append(sets[name].predicted, units.Seconds(t.Predicted))
		sets[name].measured = append(sets[name].measured, units.Seconds(t.Measured))
	}
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.Failed != "" {
			continue
		}
		name := "plans by rule, " + t.Mode
		if t.Plan == report.RandomPlan {
			name = fmt.Sprintf("random plans, %s on %d devices, %s", t.Workload, t.Devices, t.Mode)
		}
		add(name, t)
	}
	var kept []*report.Trial // eager, and not the host's
	eager := 0
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.Failed != "" || t.Mode != measure.Eager.String() {
			continue
		}
		eager++
		k := slices.IndexFunc(s.Trials, func(g report.Trial) bool {
			return g.Mode == measure.Captured.String() && g.Workload == t.Workload && g.Devices == t.Devices && g.Plan == t.Plan && g.Failed == ""
		})
		if k >= 0 && !t.HostBound(&s.Trials[k]) {
			kept = append(kept, t)
		}
	}
	if len(kept) < eager {
		for _, t := range kept {
			add("plans by rule, eager, where the host keeps up", t)
		}
	}
	s.Summary = []report.Errors{}
	for _, name := range order {
		r := roofline.NewReport(sets[name].predicted, sets[name].measured)
		s.Summary = append(s.Summary, report.Errors{Of: name, Trials: len(sets[name].measured), MAPE: r.MAPE, P95: r.P95, Kendall: r.Kendall})
	}
}
