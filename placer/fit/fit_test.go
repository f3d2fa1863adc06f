package fit_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/placer/fit"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
	"placer/workloads"
)

// small is a machine of one GPU with so much memory, and a host.
func small(t *testing.T, memory units.Bytes) *hw.Machine {
	t.Helper()
	m, err := hw.Take("a100", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	m.Devices[0].Memory = memory
	return m
}

func source(t *testing.T, name string) problem.Source {
	t.Helper()
	g, err := workloads.Build(name)
	if err != nil {
		t.Fatal(err)
	}
	return problem.Source{Graph: g}
}

const decoder = "llama:layers=6,hidden=1024,heads=8,kv_heads=8,ffn=2816,seq=1024,batch=4,vocab=2000"

var both = fit.Allowed{Recompute: true, Offload: true}

// TestFitsWithoutScores: what lacks memory where the scores of attention are stored fits as it is
// in one kernel.
func TestFitsWithoutScores(t *testing.T) {
	m, err := hw.Take("a100", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	r, err := fit.Fit(context.Background(), source(t, "llama:layers=16,batch=8"), m, problem.Options{}, both, 10)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Best; !b.Score.Feasible() || !b.None() {
		t.Errorf("best is %v, recompute %v, offload %v", b.Score, b.Recompute, b.Offload)
	}
}

// TestFits makes a decoder fit that lacks memory, in each way; the plan's file, read
// again and simulated, has the step that was promised, and an independent count of the
// bytes that are in use when finds the simulator's peaks, within the memory.
func TestFits(t *testing.T) {
	s := source(t, "llama:layers=16,batch=8,attention=products")
	m, err := hw.Take("a100", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		allowed fit.Allowed
	}{{"recompute", fit.Allowed{Recompute: true}}, {"offload", fit.Allowed{Offload: true}}, {"both", both}} {
		t.Run(c.name, func(t *testing.T) {
			r, err := fit.Fit(context.Background(), s, m, problem.Options{}, c.allowed, 100)
			if err != nil {
				t.Fatal(err)
			}
			asIs := r.Tried[slices.IndexFunc(r.Tried, func(x *fit.Candidate) bool { return x.Method == "human" })]
			if asIs.Score.Feasible() || asIs.Missing[0] == 0 {
				t.Fatalf("the human expert's placement fits as it is: %v", asIs.Score)
			}
			b := r.Best
			if !b.Score.Feasible() || b.None() || !c.allowed.Recompute && len(b.Recompute) > 0 || !c.allowed.Offload && len(b.Offload) > 0 {
				t.Fatalf("best is %v, recompute %v, offload %v", b.Score, b.Recompute, b.Offload)
			}
			file, err := r.Plan.ChangedFile(s.Graph, b.Changes, r.Derived.Graph, m)
			if err != nil {
				t.Fatal(err)
			}
			step, peaks := replay(t, s, m, file)
			if step != b.Score.Value {
				t.Errorf("the file's step is %v, the promised one %v", step, b.Score.Value)
			}
			t.Logf("as it is %.1f ms and %v missing; recompute %v, offload %v: %.1f ms, peaks %v", 1e3*asIs.Score.Value, asIs.Missing[0], b.Recompute, b.Offload, 1e3*step, peaks)
			if peaks[0] > int64(m.Devices[0].Memory) || len(b.Offload) > 0 && peaks[1] == 0 {
				t.Errorf("peaks %v", peaks)
			}
		})
	}
}

// replay reads the plan file that f is written as, and returns its step and what count
// says of its memory, which must be what the simulator says.
func replay(t *testing.T, s problem.Source, m *hw.Machine, f *plan.File) (step float64, peaks []int64) {
	t.Helper()
	var text bytes.Buffer
	if err := f.Write(&text); err != nil {
		t.Fatal(err)
	}
	read, err := plan.Read(&text, "plan.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.Graph, err = read.Graph(s.Graph); err != nil {
		t.Fatal(err)
	}
	p, err := read.Plan(s.Graph, m)
	if err != nil {
		t.Fatal(err)
	}
	x, _, err := problem.Simulator(s, m, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Run(p, sim.Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	peaks = count(s.Graph, p.Device, m.NumDevices(), r.Trace)
	for d := range peaks {
		if peaks[d] != int64(r.PeakBytes[d]) {
			t.Errorf("%s peaks at %d by the count, at %d by the simulator", m.Devices[d].Name, peaks[d], r.PeakBytes[d])
		}
	}
	return float64(r.Makespan), peaks
}

// count returns the peak bytes of each device from a trace alone: at the start of each
// op and transfer it asks of every tensor and every device whether it has to be there.
// It is written from docs/memory.md and shares no code with the simulator.
func count(g *graph.Graph, device []uint8, devices int, tr *sim.Trace) []int64 {
	start, end := make([]float64, g.NumOps()), make([]float64, g.NumOps())
	var instants []float64
	for _, x := range tr.Ops {
		start[x.Op], end[x.Op] = float64(x.Start), float64(x.End)
		instants = append(instants, float64(x.Start))
	}
	type copied struct {
		t graph.TensorID
		d int
	}
	came, left := map[copied]float64{}, map[graph.TensorID]float64{}
	for _, x := range tr.Transfers {
		if x.Tensor >= 0 {
			came[copied{x.Tensor, x.To}] = float64(x.Start)
			left[x.Tensor] = max(left[x.Tensor], float64(x.End))
		}
		instants = append(instants, float64(x.Start))
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)
	isView := func(i graph.OpID) bool {
		switch g.Op(i).Kind {
		case "Identity", "Reshape", "ExpandDims", "Squeeze", "Flatten", "StopGradient", "PreventGradient", "Unsqueeze":
			first, end := g.Outputs(i)
			return len(g.Inputs(i)) > 0 && end == first+1 && !g.Tensor(first).Resident && g.Tensor(first).Bytes <= g.Tensor(g.Inputs(i)[0]).Bytes
		}
		return false
	}
	var needed func(t graph.TensorID, d int) float64 // until when
	needed = func(t graph.TensorID, d int) (at float64) {
		if p := g.Tensor(t).Producer; int(device[p]) == d {
			at = max(end[p], left[t])
		}
		for _, v := range g.Consumers(t) {
			if int(device[v]) != d {
				continue
			}
			at = max(at, end[v])
			if first, _ := g.Outputs(v); isView(v) && g.Inputs(v)[0] == t && len(g.Consumers(first)) > 0 {
				at = max(at, needed(first, d))
			}
		}
		return at
	}
	type stretch struct {
		from, until float64
		bytes       int64
	}
	held := make([][]stretch, devices)
	for i := range graph.OpID(g.NumOps()) {
		d := int(device[i])
		held[d] = append(held[d], stretch{-1, 1e30, int64(g.Op(i).Resident)}, stretch{start[i], end[i], int64(g.Op(i).Workspace)})
		first, after := g.Outputs(i)
		for t := first; t < after; t++ {
			if !g.Tensor(t).Resident && !isView(i) {
				held[d] = append(held[d], stretch{start[i], needed(t, d), int64(g.Tensor(t).Bytes)})
			}
		}
	}
	for c, from := range came {
		held[c.d] = append(held[c.d], stretch{from, needed(c.t, c.d), int64(g.Tensor(c.t).Bytes)})
	}
	peaks := make([]int64, devices)
	for d := range held {
		for _, now := range instants {
			sum := int64(0)
			for _, s := range held[d] {
				if s.from <= now && now < s.until {
					sum += s.bytes
				}
			}
			peaks[d] = max(peaks[d], sum)
		}
	}
	return peaks
}

// TestTooMuch: what cannot fit says by how much, and more memory never gives a longer
// step.
func TestTooMuch(t *testing.T) {
	s := source(t, decoder)
	only := func(memory units.Bytes) *hw.Machine {
		m, err := small(t, memory).Take(1, false)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	r, err := fit.Fit(context.Background(), s, only(0.6e9), problem.Options{}, both, 60)
	if err != nil {
		t.Fatal(err)
	}
	if r.Best.Score.Feasible() || r.Best.Score.Overflow != r.Best.Missing[0] || len(r.Notes) == 0 {
		t.Errorf("0.6 GB: %v, missing %v, notes %q", r.Best.Score, r.Best.Missing, r.Notes)
	}
	last, changed := 1e9, 0
	for _, memory := range []units.Bytes{1.1e9, 1.2e9, 1.4e9, 1.7e9, 80e9} {
		r, err := fit.Fit(context.Background(), s, only(memory), problem.Options{}, both, 60)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Best.Score.Feasible() || r.Best.Score.Value > last {
			t.Errorf("%v: step %v, recompute %v; with less memory %v", memory, r.Best.Score, r.Best.Recompute, last)
		}
		last = r.Best.Score.Value
		changed += len(r.Best.Recompute)
	}
	if changed == 0 {
		t.Error("nothing was recomputed where nothing fits")
	}
	s.Seconds = make([]units.Seconds, s.NumOps())
	if _, err := fit.Fit(context.Background(), s, only(1.3e9), problem.Options{}, both, 60); !errors.Is(err, fit.ErrTimes) {
		t.Errorf("times of a file: %v", err)
	}
}

// The count of views above names the kinds that share memory.
func TestKindsOfViews(t *testing.T) {
	s := source(t, decoder)
	n := 0
	for u, x := range fuse.Views(s.Graph) {
		if x >= 0 && s.Op(s.Tensor(graph.TensorID(u)).Producer).Kind == "Reshape" {
			n++
		}
	}
	if n == 0 {
		t.Error("the decoder has no views, so that the count says nothing of them")
	}
}
