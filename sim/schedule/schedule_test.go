package schedule_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/sim/schedule"
	"placer/workloads"
)

// document is the file as its readers see it.
type document struct {
	Format   string `json:"format"`
	Graph    struct{ Name, Hash string }
	Method   string
	StepTime float64 `json:"step_time_s"`
	Devices  []string
	Ops      []struct {
		Name   string
		Device string
		Start  float64 `json:"start_s"`
		End    float64 `json:"end_s"`
		Kernel int
	}
}

// Schedules of random plans, with fusion and without, with priorities and without, have
// every op once, behind what it needs, on its device, in the order and at the times at
// which the simulator ran it.
func TestSchedule(t *testing.T) {
	for _, name := range []string{"rnnlm:layers=2,unroll=3", "inception:batch=1"} {
		g, err := workloads.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := hw.Take("p100", 2, false)
		if err != nil {
			t.Fatal(err)
		}
		s, priority, err := problem.Simulator(problem.Source{Graph: g}, m, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		fused := 0
		for k := range 6 {
			device := make([]uint8, g.NumOps())
			group := map[int32]uint8{}
			for i := range device {
				device[i] = uint8(rng.IntN(2))
				if x := g.Op(graph.OpID(i)).Group; x > 0 {
					if _, ok := group[x]; !ok {
						group[x] = device[i]
					}
					device[i] = group[x]
				}
			}
			p := &plan.Plan{Method: "random", Decision: plan.Decision{Device: device}}
			if k%2 == 0 {
				p.Priority = priority
			}
			if k >= 3 {
				p.Fusion = fusion.Default(fuse.NewRules(g), device)
			}
			fused += check(t, g, m, s, p)
		}
		if fused == 0 {
			t.Errorf("%s: no plan fused anything", name)
		}
	}
}

// check returns the number of kernels of several ops.
func check(t *testing.T, g *graph.Graph, m *hw.Machine, s *sim.Simulator, p *plan.Plan) (fused int) {
	t.Helper()
	r, err := s.Run(p, sim.Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := schedule.New(g, m, p, r).Write(&buf); err != nil {
		t.Fatal(err)
	}
	readBack(t, g, m, s, buf.Bytes(), r, p.Fusion != nil)
	var d document
	in := json.NewDecoder(&buf)
	in.DisallowUnknownFields()
	if err := in.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.Format != "placer schedule 1" || d.Graph.Name != g.Name() || d.Graph.Hash != g.Hash() || d.Method != "random" || d.StepTime != float64(r.Makespan) || len(d.Devices) != 2 {
		t.Fatalf("wrote %q for %q, hash %.12s, by %q, step %v, devices %v", d.Format, d.Graph.Name, d.Graph.Hash, d.Method, d.StepTime, d.Devices)
	}
	if len(d.Ops) != g.NumOps() {
		t.Fatalf("%d ops in the schedule, %d in the graph", len(d.Ops), g.NumOps())
	}
	ran := map[graph.OpID]sim.OpSpan{} // by each op of the kernel
	kernelOf := map[graph.OpID]graph.OpID{}
	for _, x := range r.Trace.Ops {
		for _, op := range append([]graph.OpID{x.Op}, x.Fused...) {
			ran[op], kernelOf[op] = x, x.Op
		}
		if len(x.Fused) > 0 {
			fused++
		}
	}
	id := map[string]graph.OpID{}
	for i := range graph.OpID(g.NumOps()) {
		id[g.Op(i).Name] = i
	}
	at := map[graph.OpID]int{}
	lowest := map[int]graph.OpID{} // of a kernel's number
	last := -1.0
	for k, o := range d.Ops {
		i, ok := id[o.Name]
		if _, twice := at[i]; !ok || twice {
			t.Fatalf("op %q is twice in the schedule or not in the graph", o.Name)
		}
		at[i] = k
		x := ran[i]
		if o.Device != m.Devices[p.Device[i]].Name || o.Start != float64(x.Start) || o.End != float64(x.End) {
			t.Fatalf("op %s: %s from %v to %v, the simulator ran it on %d from %v to %v", o.Name, o.Device, o.Start, o.End, x.Device, x.Start, x.End)
		}
		if o.Start < last {
			t.Fatalf("op %s starts at %v behind one that starts at %v", o.Name, o.Start, last)
		}
		last = o.Start
		if (o.Kernel > 0) != (len(x.Fused) > 0) {
			t.Fatalf("op %s: kernel %d, fused with %v", o.Name, o.Kernel, x.Fused)
		}
		if first, ok := lowest[o.Kernel]; o.Kernel > 0 && ok && first != kernelOf[i] {
			t.Fatalf("op %s: kernel %d is that of op %d too", o.Name, o.Kernel, first)
		}
		lowest[o.Kernel] = kernelOf[i]
	}
	for i := range graph.OpID(g.NumOps()) {
		for j := range g.Predecessors(i) {
			if at[j] > at[i] {
				t.Fatalf("op %s stands before %s, which it needs", g.Op(i).Name, g.Op(j).Name)
			}
		}
	}
	return fused
}

// readBack reads a schedule of r, and has it run as it ran; where ops are fused the kernels are those
// of the schedule.
func readBack(t *testing.T, g *graph.Graph, m *hw.Machine, s *sim.Simulator, data []byte, r *sim.Result, fused bool) {
	t.Helper()
	if !schedule.Is(data) {
		t.Fatal("a schedule is not recognised")
	}
	p, kernel, err := schedule.Read(data, g, m)
	if err != nil {
		t.Fatal(err)
	}
	split := 0
	if fused {
		if p.Fusion, split = fuse.NewRules(g).Priorities(p.Device, kernel); split > 0 {
			t.Errorf("%d kernels are split", split)
		}
	}
	again, err := s.Run(p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(float64(again.Makespan/r.Makespan)-1) > 1e-9 {
		t.Errorf("a schedule of %v runs in %v", r.Makespan, again.Makespan)
	}
	for what, wrong := range map[string][]byte{
		"another graph":   bytes.Replace(data, []byte(g.Hash()), []byte("0123"), 1),
		"an op twice":     bytes.Replace(data, []byte(g.Op(0).Name+`"`), []byte(g.Op(1).Name+`"`), 1),
		"an op too few":   bytes.Replace(data, []byte(`"`+g.Op(0).Name+`"`), []byte(`"nothing"`), 1),
		"another device":  bytes.ReplaceAll(data, []byte(m.Devices[0].Name), []byte("tpu")),
		"what is no file": data[:len(data)/2],
	} {
		if _, _, err := schedule.Read(wrong, g, m); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
