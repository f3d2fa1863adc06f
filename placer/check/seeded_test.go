package check_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"placer/baselines/rules"
	"placer/graph"
	"placer/hw"
	"placer/placer/check"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
)

// sound is a placement without a fault.
type sound struct {
	p      *problem.Problem
	source problem.Source
	device []uint8 // the human expert's
}

func prepare(t *testing.T, workload, gpu string, gpus int) *sound {
	t.Helper()
	p, err := problem.Workload(workload, gpu, gpus, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := rules.Expert().Place(context.Background(), &p.Problem)
	if err != nil {
		t.Fatal(err)
	}
	return &sound{p, problem.Source{Graph: p.Graph}, o.Device}
}

// placed is the placement of device, under the critical path's priorities.
func (s *sound) placed(device []uint8) *check.Placement {
	return &check.Placement{Decision: plan.Decision{Device: device, Priority: s.p.Priority}}
}

func (s *sound) check(t *testing.T, p *check.Placement) *check.Report {
	t.Helper()
	return s.on(t, s.p.Machine, p)
}

func (s *sound) on(t *testing.T, m *hw.Machine, p *check.Placement) *check.Report {
	t.Helper()
	r, err := check.Check(t.Context(), &check.Case{Source: s.source, Machine: m, Placement: p})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// file is the plan file of device.
func (s *sound) file(t *testing.T, device []uint8) *plan.File {
	t.Helper()
	f, err := (&plan.Plan{Decision: plan.Decision{Device: device, Priority: s.p.Priority}}).File(s.p.Graph, s.p.Machine)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// schedule is the topological order of device as a schedule.
func (s *sound) schedule(device []uint8) (all []check.Scheduled) {
	for i, d := range device {
		all = append(all, check.Scheduled{Name: s.p.Graph.Op(graph.OpID(i)).Name, Device: s.p.Machine.Devices[d].Name})
	}
	return all
}

// moved is device with the ops that which names, and what must share a device with them,
// on another.
func (s *sound) moved(device []uint8, to uint8, which func(i int, o *graph.Op) bool) []uint8 {
	device = slices.Clone(device)
	groups := map[int32]bool{}
	for i := range device {
		if o := s.p.Graph.Op(graph.OpID(i)); which(i, o) {
			device[i] = to
			if o.Group > 0 {
				groups[o.Group] = true
			}
		}
	}
	for i := range device {
		if groups[s.p.Graph.Op(graph.OpID(i)).Group] {
			device[i] = to
		}
	}
	return device
}

// fault is a seeded fault: the rule that must find it, and of which op or device.
type fault struct {
	name       string
	rule       check.Rule
	op, device string // parts of what the finding names; empty for any
	report     func(t *testing.T) *check.Report
}

// TestSeededFaults: every one of 20 faults, each put into a placement without errors, is
// found by its rule, at the op or the device.
func TestSeededFaults(t *testing.T) {
	lm := prepare(t, "rnnlm:layers=2,unroll=6,batch=32,hidden=1024", "p100", 2)
	vit := prepare(t, "vit:layers=8,batch=16", "p100", 4)
	mesh := prepare(t, "vit:layers=8,batch=16", "v100", 8)
	index := func(s *sound, name string) int {
		for i := range s.p.Graph.NumOps() {
			if s.p.Graph.Op(graph.OpID(i)).Name == name {
				return i
			}
		}
		t.Fatalf("no op %s", name)
		return -1
	}
	on := func(s *sound, gpus int) *hw.Machine {
		m, err := s.p.Machine.Take(gpus, false)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	grouped := func(s *sound) int { // an op that must share its device with an earlier one
		seen := map[int32]bool{}
		for i := range s.device {
			if k := s.p.Graph.Op(graph.OpID(i)).Group; k > 0 {
				if seen[k] {
					return i
				}
				seen[k] = true
			}
		}
		t.Fatal("no co-location group")
		return -1
	}
	stage := func(layers ...string) (all []check.Entry) { // "a-b" by device
		all = append(all, check.Entry{Prefix: "", Device: "0"})
		for d, l := range layers {
			for name := range strings.FieldsSeq(l) {
				all = append(all, check.Entry{Prefix: name, Device: string(rune('0' + d))})
			}
		}
		return all
	}
	layerOps := func(s *sound, layer int32, phase graph.Phase, kind graph.Kind) func(int, *graph.Op) bool {
		return func(_ int, o *graph.Op) bool {
			return o.Layer == layer && o.Phase == phase && (kind == "" || o.Kind == kind)
		}
	}
	swap := func(all []check.Scheduled, i, j int) []check.Scheduled {
		all = slices.Clone(all)
		all[i], all[j] = all[j], all[i]
		return all
	}
	tight := func(s *sound, d int) *hw.Machine {
		r, err := s.p.Simulator.Run(&plan.Plan{Decision: s.placed(s.device).Decision}, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := on(s, s.p.Machine.NumDevices())
		m.Devices = slices.Clone(m.Devices)
		m.Devices[d].Memory = r.PeakBytes[d] - 1
		return m
	}
	gelu := func(s *sound, layer int32) int {
		for i := range s.device {
			if o := s.p.Graph.Op(graph.OpID(i)); o.Layer == layer && o.Kind == "Gelu" {
				return i
			}
		}
		t.Fatal("no Gelu")
		return -1
	}
	faults := []fault{
		{"a plan for more devices", check.UnknownDevice, "", "gpu:3", func(t *testing.T) *check.Report {
			p, err := check.FromPlan(vit.file(t, vit.device), vit.p.Graph, on(vit, 3))
			if err != nil {
				t.Fatal(err)
			}
			return vit.on(t, on(vit, 3), p)
		}},
		{"a device map to a GPU too many", check.UnknownDevice, "", "cuda:7", func(t *testing.T) *check.Report {
			return vit.check(t, check.FromMap([]check.Entry{{Prefix: "", Device: "cuda:0"}, {Prefix: "layer_2", Device: "cuda:7"}}, vit.p.Graph, vit.p.Machine))
		}},
		{"a device map to the disk", check.UnknownDevice, "", "disk", func(t *testing.T) *check.Report {
			return vit.check(t, check.FromMap([]check.Entry{{Prefix: "", Device: "0"}, {Prefix: "layer_3/ffn", Device: "disk"}}, vit.p.Graph, vit.p.Machine))
		}},
		{"a device map with a slip in a name", check.UnknownOp, "layer_44", "", func(t *testing.T) *check.Report {
			return vit.check(t, check.FromMap([]check.Entry{{Prefix: "", Device: "0"}, {Prefix: "layer_44", Device: "1"}}, vit.p.Graph, vit.p.Machine))
		}},
		{"a schedule that leaves out an op", check.Unplaced, "", "", func(t *testing.T) *check.Report {
			all := vit.schedule(vit.device)
			return vit.check(t, check.FromSchedule(slices.Delete(all, 40, 41), vit.p.Graph, vit.p.Machine))
		}},
		{"a schedule of another op", check.UnknownOp, "no such op", "", func(t *testing.T) *check.Report {
			all := vit.schedule(vit.device)
			all[7].Name = "no such op"
			return vit.check(t, check.FromSchedule(all, vit.p.Graph, vit.p.Machine))
		}},
		{"a split co-location group", check.Colocation, "", "", func(t *testing.T) *check.Report {
			device := slices.Clone(lm.device)
			device[grouped(lm)] ^= 1
			return lm.check(t, lm.placed(device))
		}},
		{"a device map that splits a group", check.Colocation, "", "", func(t *testing.T) *check.Report {
			entries := []check.Entry{{Prefix: "", Device: "0"}}
			group := lm.p.Graph.Op(graph.OpID(grouped(lm))).Group
			for i := range lm.device {
				if o := lm.p.Graph.Op(graph.OpID(i)); o.Group == group {
					entries = append(entries, check.Entry{Prefix: o.Name, Device: []string{"0", "1"}[len(entries)%2]})
				}
			}
			return lm.check(t, check.FromMap(entries, lm.p.Graph, lm.p.Machine))
		}},
		{"a device one byte too small", check.DoesNotFit, "", "gpu:1", func(t *testing.T) *check.Report {
			return vit.on(t, tight(vit, 1), vit.placed(vit.device))
		}},
		{"everything on one of two that it does not fit", check.DoesNotFit, "", "gpu:0", func(t *testing.T) *check.Report {
			big := prepare(t, "rnnlm8", "p100", 2)
			return big.check(t, big.placed(make([]uint8, len(big.device))))
		}},
		{"an order with a reader first", check.Deadlock, "", "gpu:0", func(t *testing.T) *check.Report {
			i := index(vit, "layer_1/attention/MatMul")
			first, _ := vit.p.Graph.Outputs(graph.OpID(i))
			reader := int(vit.p.Graph.Consumers(first)[0])
			return vit.check(t, check.FromSchedule(swap(vit.schedule(vit.device), i, reader), vit.p.Graph, vit.p.Machine))
		}},
		{"orders of two devices that wait for each other", check.Deadlock, "", "", func(t *testing.T) *check.Report {
			p := check.FromSchedule(vit.schedule(vit.device), vit.p.Graph, vit.p.Machine)
			// The second device runs its last op, a backward one, before its first.
			ops := p.Order[1]
			p.Order[1] = append([]graph.OpID{ops[len(ops)-1]}, ops[:len(ops)-1]...)
			return vit.check(t, p)
		}},
		{"priorities against the dependencies, run strictly", check.Deadlock, "", "", func(t *testing.T) *check.Report {
			p := vit.placed(vit.device)
			p.Priority = slices.Clone(p.Priority)
			slices.Reverse(p.Priority)
			p.ByPriority(vit.p.Machine)
			return vit.check(t, p)
		}},
		{"one of two GPUs without an op", check.IdleDevice, "", "gpu:1", func(t *testing.T) *check.Report {
			return lm.check(t, lm.placed(make([]uint8, len(lm.device))))
		}},
		{"stages for three of four GPUs", check.IdleDevice, "", "gpu:3", func(t *testing.T) *check.Report {
			return vit.check(t, check.FromMap(stage("", "layer_3 layer_4 layer_5", "layer_6 layer_7 layer_8 classifier"), vit.p.Graph, vit.p.Machine))
		}},
		{"one activation elsewhere", check.PingPong, "", "gpu:3", func(t *testing.T) *check.Report {
			at := gelu(vit, 1)
			return vit.check(t, vit.placed(vit.moved(vit.device, 3, func(i int, _ *graph.Op) bool { return i == at })))
		}},
		{"a layer's norms elsewhere", check.PingPong, "", "gpu:0", func(t *testing.T) *check.Report {
			return vit.check(t, vit.placed(vit.moved(vit.device, 0, layerOps(vit, 5, graph.Forward, "LayerNormalization"))))
		}},
		{"time steps on alternate devices", check.LoopCut, "layer_2/MatMul", "", func(t *testing.T) *check.Report {
			turn := uint8(0)
			device := slices.Clone(lm.device)
			for i := range device {
				if o := lm.p.Graph.Op(graph.OpID(i)); o.Phase == graph.Forward && strings.HasSuffix(o.Name, "layer_2/MatMul") {
					device[i] = turn
					turn ^= 1
				}
			}
			return lm.check(t, lm.placed(device))
		}},
		{"a layer's parameters elsewhere", check.FarWeights, "layer_2", "gpu:3", func(t *testing.T) *check.Report {
			return vit.check(t, vit.placed(vit.moved(vit.device, 3, layerOps(vit, 2, graph.Forward, "VariableV2"))))
		}},
		{"all but a layer on one device", check.Unbalanced, "", "gpu:0", func(t *testing.T) *check.Report {
			device := make([]uint8, len(lm.device))
			return lm.check(t, lm.placed(lm.moved(device, 1, func(_ int, o *graph.Op) bool { return strings.HasPrefix(o.Name, "softmax") })))
		}},
		{"neighbours on GPUs without a direct link", check.SlowLink, "", "", func(t *testing.T) *check.Report {
			device := slices.Clone(mesh.device)
			for i, d := range device {
				device[i] = []uint8{0, 6, 3, 5, 1, 7, 2, 4}[d]
			}
			return mesh.check(t, mesh.placed(device))
		}},
	}
	found := 0
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			r := f.report(t)
			for _, x := range r.Findings {
				if x.Rule == f.rule && strings.Contains(x.Op, f.op) && strings.Contains(x.Device, f.device) && x.Message != "" && x.Fix != "" {
					found++
					return
				}
			}
			t.Errorf("not found by %s: %+v", f.rule, r.Findings)
		})
	}
	if len(faults) < 20 {
		t.Errorf("%d faults, want 20", len(faults))
	}
	t.Logf("%d of %d found", found, len(faults))
	for _, s := range []*sound{lm, vit} {
		for _, f := range s.check(t, s.placed(s.device)).Findings {
			if f.Severity == check.Error {
				t.Errorf("before a fault: %+v", f)
			}
		}
	}
}
