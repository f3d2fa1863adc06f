package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/baselines/rules"
	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// expert is the human expert's plan, with TensorFlow's fusion on demand.
func expert(t *testing.T, workload, gpu string, gpus int, fused bool) *Case {
	t.Helper()
	p, err := problem.Workload(workload, gpu, gpus, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := rules.Expert().Place(context.Background(), &p.Problem)
	if err != nil {
		t.Fatal(err)
	}
	d := plan.Decision{Device: o.Device, Priority: p.Priority}
	if fused {
		d.Fusion = fusion.Default(fuse.NewRules(p.Graph), d.Device)
	}
	return &Case{Source: problem.Source{Graph: p.Graph}, Machine: p.Machine, Plan: &plan.Plan{Decision: d}}
}

// sending returns m with copies that occupy the sender.
func sending(m *hw.Machine) *hw.Machine {
	return machineChange{link: func(l *hw.Link) { l.EndCosts = hw.EndCosts{Occupies: hw.Sender, Delivery: 1e-5} }}.of(m)
}

// TestPartsSumToTheStep: the parts by layer and those by kind sum to the step, to the
// last picosecond, and so do what devices and links have of the path.
func TestPartsSumToTheStep(t *testing.T) {
	fair := expert(t, "trfxl4", "p100", 4, false)
	fair.Contention = "fair-share"
	sender := expert(t, "trfxl2", "p100", 2, false)
	sender.Machine = sending(sender.Machine)
	for name, c := range map[string]*Case{
		"one device": expert(t, "wavenet2", "a100", 1, true), "two": expert(t, "rnnlm2", "p100", 2, false), "fused": expert(t, "trfxl4", "p100", 4, true),
		"mesh": expert(t, "vit", "v100", 8, true), "fair share": fair, "sender": sender,
	} {
		x, err := Explain(t.Context(), c, 0)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.simulator(c.Machine)
		if err != nil {
			t.Fatal(err)
		}
		if want := ps(stepUnder(s, c)); x.Step != want || x.Step <= 0 {
			t.Errorf("%s: a step of %d ps, want %d", name, x.Step, want)
		}
		var layers, kinds, held Time
		for _, p := range x.Layers {
			layers += p.Total()
		}
		for _, p := range x.Kinds {
			kinds += p.Total()
		}
		for _, d := range x.Devices {
			held += d.OnPath
		}
		for _, l := range x.Links {
			held += l.OnPath
		}
		if layers != x.Step || kinds != x.Step || held != x.Step {
			t.Errorf("%s: layers take %d ps, kinds %d, devices and links %d, the step %d", name, layers, kinds, held, x.Step)
		}
		if c.Machine.NumDevices() > 1 && len(x.Links) == 0 || x.Binds == "" {
			t.Errorf("%s: %d links, bound by %q", name, len(x.Links), x.Binds)
		}
	}
}

func stepUnder(s *sim.Simulator, c *Case) (step units.Seconds) {
	return units.Seconds(s.Evaluate(c.Plan.Decision).Value)
}

// TestPrintedPartsSum: what FormatParts prints sums, digit by digit, to the print of the
// sum, for parts of any size and sign.
func TestPrintedPartsSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		parts := make([]Time, 1+rng.IntN(30))
		var sum Time
		for k := range parts {
			parts[k] = Time(rng.Int64N(1 << (10 + rng.IntN(34))))
			if rng.IntN(4) == 0 {
				parts[k] = -parts[k]
			}
			sum += parts[k]
		}
		s := ScaleOf(max(sum, 1))
		got := new(big.Rat)
		for _, text := range s.FormatParts(parts) {
			r, ok := new(big.Rat).SetString(text)
			if !ok {
				t.Fatalf("%q is no number", text)
			}
			got.Add(got, r)
		}
		want, _ := new(big.Rat).SetString(s.Format(sum))
		if got.Cmp(want) != 0 {
			t.Fatalf("%v in %s: the prints sum to %s, want %s", parts, s.Unit, got.FloatString(12), s.Format(sum))
		}
	}
	for _, c := range []struct {
		t    Time
		want string
	}{{1, "0.00000 us"}, {123456, "0.12346 us"}, {160_234_567_890, "160.235 ms"}, {2_500_000_000_000, "2.50000 s"}, {999_999_600_000, "1000.000 ms"}, {1_234_567_000_000_000, "1234.57 s"}} {
		s := ScaleOf(c.t)
		if got := s.Format(c.t) + " " + s.Unit; got != c.want {
			t.Errorf("%d ps prints as %s, want %s", c.t, got, c.want)
		}
	}
}

// TestSlack: an op on the critical path cannot end later, others can by just what their
// slack says: run forwards in the order of the trace, the step is as long as it was, an op
// that takes longer by its slack leaves it so, and one that takes longer still does not.
func TestSlack(t *testing.T) {
	c := expert(t, "trfxl2", "p100", 2, false)
	r, _, err := c.run()
	if err != nil {
		t.Fatal(err)
	}
	slack, why := slacks(c, r)
	if why != "" {
		t.Fatal(why)
	}
	at := map[graph.OpID]int{}
	for k, s := range r.Trace.Ops {
		at[s.Op] = k
	}
	for _, s := range r.CriticalPath {
		if !s.Transfer && slack[at[s.Op]] > r.Makespan*1e-9 {
			t.Errorf("op %d is on the critical path and can wait for %v", s.Op, slack[at[s.Op]])
		}
	}
	free := 0
	for k, s := range slack {
		if s < 0 || s > r.Makespan {
			t.Errorf("op %d has a slack of %v", r.Trace.Ops[k].Op, s)
		}
		if s > r.Makespan/100 {
			free++
		}
	}
	if free == 0 || free == len(slack) {
		t.Errorf("%d of %d ops can wait", free, len(slack))
	}
	next := successors(c, r.Trace)
	if got := forward(r.Trace, next, -1, 0); math.Abs(float64(got-r.Makespan)) > 1e-9*float64(r.Makespan) {
		t.Errorf("run forwards the step takes %v, want %v", got, r.Makespan)
	}
	for k := 0; k < len(slack); k += 97 {
		if got := forward(r.Trace, next, k, slack[k]); got > r.Makespan*(1+1e-9) {
			t.Errorf("op %d longer by its slack of %v: a step of %v after %v", k, slack[k], got, r.Makespan)
		}
		if got := forward(r.Trace, next, k, slack[k]+r.Makespan/50); got < r.Makespan*(1+1e-3) {
			t.Errorf("op %d longer by more than its slack of %v: a step of %v after %v", k, slack[k], got, r.Makespan)
		}
	}
	c.Machine = sending(c.Machine)
	if _, why := slacks(c, r); why == "" {
		t.Error("slack where copies occupy the sender")
	}
}

// forward returns the end of what t has done, each as early as what it waits for allows,
// if op span k takes longer.
func forward(t *sim.Trace, next [][]int32, k int, longer units.Seconds) (end units.Seconds) {
	n := len(next)
	takes, order := make([]units.Seconds, n), make([]int, n)
	start := make([]units.Seconds, n)
	for i := range n {
		order[i] = i
		if i < len(t.Ops) {
			takes[i], start[i] = t.Ops[i].End-t.Ops[i].Start, t.Ops[i].Start
		} else {
			x := t.Transfers[i-len(t.Ops)]
			takes[i], start[i] = x.End-x.Start, x.Start
		}
	}
	if k >= 0 {
		takes[k] += longer
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(start[a], start[b]) })
	at := make([]units.Seconds, n)
	for _, i := range order {
		done := at[i] + takes[i]
		end = max(end, done)
		for _, j := range next[i] {
			at[j] = max(at[j], done)
		}
	}
	return end
}

// TestWhatIf: rows are the simulator's steps, and the largest gain comes first.
func TestWhatIf(t *testing.T) {
	c := expert(t, "rnnlm:layers=2,unroll=6", "p100", 2, false)
	x, err := Explain(t.Context(), c, 40)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]WhatIf{}
	for k, r := range x.WhatIf {
		names[r.Name] = r
		if k > 0 && r.Gain > x.WhatIf[k-1].Gain {
			t.Errorf("%s gains more than %s above it", r.Name, x.WhatIf[k-1].Name)
		}
		if !strings.HasPrefix(r.Name, "one device") && r.Gain != x.Step-r.Step {
			t.Errorf("%s: a gain of %d, of steps %d and %d", r.Name, r.Gain, x.Step, r.Step)
		}
	}
	m := machineChange{link: func(l *hw.Link) { l.Bandwidth *= 2 }}.of(c.Machine)
	s, err := c.simulator(m)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names["links of twice the bandwidth"].Step, ps(stepUnder(s, c)); got != want || want >= x.Step {
		t.Errorf("with faster links %d, want %d below %d", got, want, x.Step)
	}
	for _, n := range []string{"links without latency", "no launch cost", "twice the memory bandwidth", "twice the arithmetic", "one device more, like gpu:1"} {
		if names[n].Step <= 0 {
			t.Errorf("no row %q in %v", n, x.WhatIf)
		}
	}
	// Times of a file do not change with the machine's figures.
	c.Source.Seconds = make([]units.Seconds, c.Source.NumOps())
	if x, err = Explain(t.Context(), c, 0); err != nil || len(x.WhatIf) != 2 {
		t.Errorf("with times of a file: %v, error %v", x.WhatIf, err)
	}
}

// TestTwin: the machine with one device more is valid, the twin is as far from the others
// as its model is, and neither loses its links to it.
func TestTwin(t *testing.T) {
	for _, c := range []struct {
		gpu  string
		gpus int
		cpu  bool
	}{{"p100", 1, false}, {"p100", 2, false}, {"a100", 8, false}, {"v100", 8, true}, {"h100", 3, true}} {
		m, err := hw.Take(c.gpu, c.gpus, c.cpu)
		if err != nil {
			t.Fatal(err)
		}
		n, of := twin(m)
		if err := n.Check(); err != nil {
			t.Fatal(err)
		}
		d := m.NumDevices()
		if want := fmt.Sprint("gpu:", c.gpus-1); of != want || n.NumDevices() != d+1 {
			t.Errorf("%+v: a twin of %s among %d devices, want %s", c, of, n.NumDevices(), want)
		}
		for s := range d {
			for to := range d {
				if s == to {
					continue
				}
				a, b := m.Transfer(s, to)
				if x, y := n.Transfer(s, to); x != a || y != b {
					t.Errorf("%+v: %d to %d is another route", c, s, to)
				}
			}
			if s != c.gpus-1 {
				a, b := m.Transfer(s, c.gpus-1)
				if x, y := n.Transfer(s, d); x != a || y != b {
					t.Errorf("%+v: the twin is %v and %v from %d, want %v and %v", c, x, y, s, a, b)
				}
			}
		}
	}
}

// TestDiffSums: what moves buy sums to the difference of the steps, and a plan does not
// differ from itself.
func TestDiffSums(t *testing.T) {
	c := expert(t, "rnnlm:layers=4,unroll=6", "p100", 4, false)
	rng := rand.New(rand.NewPCG(3, 4))
	b := plan.Plan{Decision: c.Plan.Clone()}
	b.Fusion = fusion.Default(fuse.NewRules(c.Source.Graph), b.Device)
	groups := map[int32]uint8{}
	for i := range b.Device {
		o := c.Source.Graph.Op(graph.OpID(i))
		if rng.IntN(10) > 0 {
			continue
		}
		if o.Group == 0 {
			b.Device[i] = uint8(rng.IntN(4))
		} else if _, ok := groups[o.Group]; !ok {
			groups[o.Group] = uint8(rng.IntN(4))
		}
	}
	moved, bytes := 0, int64(0)
	for i := range b.Device {
		if d, ok := groups[c.Source.Graph.Op(graph.OpID(i)).Group]; ok {
			b.Device[i] = d
		}
		if b.Device[i] != c.Plan.Device[i] {
			moved++
			bytes += int64(c.Source.Graph.Op(graph.OpID(i)).Resident)
		}
	}
	x, err := Diff(t.Context(), c, &b)
	if err != nil {
		t.Fatal(err)
	}
	var sum Time
	ops := 0
	for _, m := range x.Moves {
		sum += m.Bought
		ops += m.Ops
	}
	s, err := c.simulator(c.Machine)
	if err != nil {
		t.Fatal(err)
	}
	if x.A != ps(stepUnder(s, c)) || x.B != ps(units.Seconds(s.Evaluate(b.Decision).Value)) || sum != x.A-x.B || x.A == x.B {
		t.Errorf("steps of %d and %d ps, the moves buy %d", x.A, x.B, sum)
	}
	if x.MovedOps != moved || ops != moved || int64(x.MovedBytes) != bytes || moved == 0 {
		t.Errorf("%d ops and %d bytes moved, in moves %d; want %d and %d", x.MovedOps, x.MovedBytes, ops, moved, bytes)
	}
	if x, err = Diff(t.Context(), c, c.Plan); err != nil || len(x.Moves) != 0 || x.A != x.B {
		t.Errorf("a plan differs from itself: %+v, error %v", x, err)
	}
}

// TestLayerOf: modules stand down to the first number of their path.
func TestLayerOf(t *testing.T) {
	for _, c := range []struct {
		module string
		layer  int32
		named  bool
		want   string
	}{
		{"", 0, false, "no layer"}, {"a.0", 3, false, "layer 3"}, {"model.layers.11.attn.q", 0, true, "model.layers.11"}, {"lm_head.norm", 0, true, "lm_head"}, {"", 2, true, "no module"},
	} {
		if got := LayerOf(&graph.Op{Module: c.module, Layer: c.layer}, c.named); got != c.want {
			t.Errorf("%+v is in %q", c, got)
		}
	}
}
