package campaign_test

import (
	"testing"

	"placer/graph"
	"placer/internal/campaign"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// TestTheCheckerSeesFaults: a result is without fault, and with any one of its figures
// changed it has one.
func TestTheCheckerSeesFaults(t *testing.T) {
	p, err := problem.Workload("rnnlm:layers=2,unroll=3", "p100", 2, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := plan.Decision{Device: p.Units.Blocks(p.Simulator.OpSeconds(0), 2), Priority: p.Priority}
	faults := func(change func(*sim.Result)) []string {
		r, err := p.Simulator.Clone().(*sim.Simulator).Run(&plan.Plan{Decision: d}, sim.Options{Trace: true})
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		return campaign.Faults(p.Graph, p.Machine, "fifo", d, func(i graph.OpID, d int) units.Seconds { return units.Seconds(p.Simulator.OpSeconds(d)[i]) }, r)
	}
	if f := faults(func(*sim.Result) {}); len(f) > 0 {
		t.Fatal(f)
	}
	middle := func(r *sim.Result) *sim.OpSpan { return &r.Trace.Ops[len(r.Trace.Ops)/2] }
	for name, change := range map[string]func(*sim.Result){
		"an op starts earlier":         func(r *sim.Result) { middle(r).Start *= 0.999 },
		"an op moves as a whole":       func(r *sim.Result) { x := middle(r); x.Start, x.End = x.Start+1e-6, x.End+1e-6 },
		"an op on another device":      func(r *sim.Result) { x := middle(r); x.Device = 1 - x.Device },
		"an op is ready later":         func(r *sim.Result) { x := middle(r); x.Ready += 1e-6; x.Start, x.End = x.Start+1e-6, x.End+1e-6 },
		"an op is left out":            func(r *sim.Result) { r.Trace.Ops = r.Trace.Ops[1:] },
		"an op runs twice":             func(r *sim.Result) { r.Trace.Ops = append(r.Trace.Ops, r.Trace.Ops[0]) },
		"the step ends earlier":        func(r *sim.Result) { r.Makespan *= 0.999 },
		"a transfer is left out":       func(r *sim.Result) { r.Trace.Transfers = r.Trace.Transfers[1:] },
		"a transfer is faster":         func(r *sim.Result) { r.Trace.Transfers[0].End *= 0.999 },
		"a transfer leaves too early":  func(r *sim.Result) { x := &r.Trace.Transfers[1]; x.Start, x.End = x.Start-1e-4, x.End-1e-4 },
		"a transfer of half the bytes": func(r *sim.Result) { r.Trace.Transfers[0].Bytes /= 2 },
		"a peak of a byte less":        func(r *sim.Result) { r.PeakBytes[1]-- },
	} {
		if f := faults(change); len(f) == 0 {
			t.Errorf("%s: no fault", name)
		}
	}
	if d.Priority[5], d.Priority[50] = d.Priority[50], d.Priority[5]; len(faults(func(r *sim.Result) {
		d.Priority[5], d.Priority[50] = d.Priority[50], d.Priority[5]
	})) == 0 {
		t.Error("run in the order of another plan: no fault")
	}
}

// TestSavedCasesReplay: a case that was written is the one that is read.
func TestSavedCasesReplay(t *testing.T) {
	c, err := campaign.Draw(7)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := c.Save(dir, []string{"an example"}); err != nil {
		t.Fatal(err)
	}
	back, err := campaign.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if back.Graph.Hash() != c.Graph.Hash() || back.Machine.Hash() != c.Machine.Hash() || back.Options != c.Options || back.Evaluations != c.Evaluations || len(back.Methods) != len(c.Methods) {
		t.Errorf("read %+v, wrote %+v", back, c)
	}
}
