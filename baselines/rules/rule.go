// Package rules owns the baselines that follow a rule of thumb and know no times of
// a schedule: everything on one device, TensorFlow's default, the human expert, units
// dealt out in turn or at random.
package rules

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/budget"
	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
)

// rule is a method that evaluates one placement.
type rule struct {
	name   string
	device func(*plan.Problem) []uint8 // [N]
}

func (r rule) Name() string  { return r.name }
func (rule) Kind() plan.Kind { return plan.Baseline }

func (r rule) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	return budget.One(ctx, p, r.name, r.device(p))
}

// Expert is "human", the placement that an expert would write by hand: see
// ExpertDevices.
func Expert() plan.Placer { return rule{"human", ExpertDevices} }

// TopologicalCut is "topological-cut", what is left of the expert's rule where a graph
// names no layers: stages of equal compute, cut from the topological order.
func TopologicalCut() plan.Placer { return rule{"topological-cut", ExpertDevices} }

// RoundRobin is "roundrobin": unit u of that level on device u mod D.
func RoundRobin(l unit.Level) plan.Placer {
	return rule{"roundrobin", func(p *plan.Problem) []uint8 {
		device := make([]uint8, p.Graph.NumOps())
		for i, u := range p.Units.Levels[l].Of {
			device[i] = uint8(int(u) % p.Machine.NumDevices())
		}
		return device
	}}
}

// TensorFlowDefault is "tf-default", the placement that TensorFlow's placer makes
// when the program names no device. It gives each op, or each co-location group, the
// device of the highest priority for which all its kinds have a kernel: the first GPU
// before the first CPU. So every op with a GPU kernel lands on gpu:0, the other GPUs
// stay idle, and ops that exist on the host alone (input pipelines) go to the first
// CPU, if the machine has one; otherwise they stay with the rest.
func TensorFlowDefault() plan.Placer { return rule{"tf-default", tensorFlowDevices} }

func tensorFlowDevices(p *plan.Problem) []uint8 {
	first := p.Machine.Accelerators()[0]
	host := first
	for i := len(p.Machine.Devices) - 1; i >= 0; i-- {
		if p.Machine.Devices[i].Kind == hw.CPU {
			host = uint8(i)
		}
	}
	onHost := map[int32]bool{}
	for i := range p.Graph.NumOps() {
		if o := p.Graph.Op(graph.OpID(i)); o.Group > 0 && hostOnly(o.Kind) {
			onHost[o.Group] = true
		}
	}
	device := make([]uint8, p.Graph.NumOps())
	for i := range device {
		o := p.Graph.Op(graph.OpID(i))
		device[i] = first
		if hostOnly(o.Kind) || o.Group > 0 && onHost[o.Group] {
			device[i] = host
		}
	}
	return device
}

// hostOnly reports whether TensorFlow has no GPU kernel for k. Of the kinds in
// our graphs those are the heads of input pipelines.
func hostOnly(k graph.Kind) bool {
	switch k {
	case "IteratorGetNext", "Iterator", "IteratorV2", "OneShotIterator", "MakeIterator", "ReaderRead":
		return true
	}
	return false
}

// single is the baseline that runs the whole graph on one device.
type single struct{}

// Single is "single": everything on one device. It tries every device that differs
// from those before it and keeps the best.
func Single() plan.Placer { return single{} }

func (single) Name() string    { return "single" }
func (single) Kind() plan.Kind { return plan.Baseline }

func (s single) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	track := budget.New(ctx, p, s.Name())
	device := make([]uint8, p.Graph.NumOps())
	for d := range p.Machine.NumDevices() {
		if d > 0 && (track.Done() || seen(p.Machine, d)) {
			continue
		}
		for i := range device {
			device[i] = uint8(d)
		}
		track.Try(device)
	}
	return track.Outcome()
}

// seen reports whether a device before d has the same figures: it would
// give the same step.
func seen(m *hw.Machine, d int) bool {
	for i := range d {
		if m.Devices[i].SameFigures(&m.Devices[d]) {
			return true
		}
	}
	return false
}

// random draws a device for every unit of its level, independently.
type random struct {
	level unit.Level
	once  bool // one draw, not as many as the budget allows
}

// Random is "random": one random placement of the units of that level.
func Random(l unit.Level) plan.Placer { return random{l, true} }

// RandomBest is "random-best": the best of as many random placements of the units of
// that level as the budget allows.
func RandomBest(l unit.Level) plan.Placer { return random{l, false} }

func (r random) Name() string {
	if r.once {
		return "random"
	}
	return "random-best"
}

func (r random) Kind() plan.Kind {
	if r.once {
		return plan.Baseline
	}
	return plan.Search
}

// Place draws and evaluates. RandomBest needs a bound.
func (r random) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if !r.once && budget.Unbounded(p) {
		return nil, fmt.Errorf("%s: no budget bounds it", r.Name())
	}
	track := budget.New(ctx, p, r.Name())
	rng := rand.New(rand.NewPCG(p.Seed, 0x72616e646f6d)) // "random"
	units := p.Units.Levels[r.level]
	of := make([]uint8, units.NumUnits())
	device := make([]uint8, p.Graph.NumOps())
	for first := true; first || !r.once && !track.Done(); first = false {
		for u := range of {
			of[u] = uint8(rng.IntN(p.Machine.NumDevices()))
		}
		for i, u := range units.Of {
			device[i] = of[u]
		}
		track.Try(device)
	}
	return track.Outcome()
}
