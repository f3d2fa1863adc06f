package problem

import (
	"context"
	"errors"
	"fmt"
	"math"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/internal/parallel"
	"placer/plan"
	"placer/sim"
	"placer/sim/robust"
	"placer/sim/throughput"
	"placer/units"
	"placer/workloads"
)

// ErrInfeasible says that no placement of a graph can fit a machine.
var ErrInfeasible = errors.New("infeasible")

// Problem is a placement problem with the simulator that its steps are judged by,
// whatever the objective, and the proven lower bound of the objective.
type Problem struct {
	plan.Problem
	Simulator *sim.Simulator
	// Contention is how transfers share links.
	Contention sim.Contention
	// Bound is in the unit of the objective.
	Bound float64
	// UnfusedBound is that of steps without fusion, where Bound is of all; else 0.
	UnfusedBound float64

	source  Source
	options Options
	robust  *robust.Evaluator // nil where steps are those of the machine as it is
	asIs    float64           // bound of steps there, where they are not
}

// On returns the problem on another machine, as New makes it.
func (p *Problem) On(m *hw.Machine) (*Problem, error) {
	if p.source.Graph == nil {
		return nil, errors.New("the problem was not made from a graph and its times")
	}
	return New(p.source, m, p.options)
}

// New returns the problem to place s on m. Its evaluator counts memory. It reports a
// graph or a machine that the simulator does not take, and ErrInfeasible, with the
// reason, where nothing can fit.
func New(s Source, m *hw.Machine, o Options) (*Problem, error) {
	g := s.Graph
	simulator, err := newSimulator(s, m, o)
	if err != nil {
		return nil, err
	}
	seconds := simulator.OpSeconds(0)
	var h *unit.Hierarchy
	var priority []int32
	var beside parallel.Group // of the bound, which takes as long as both
	beside.Go(func() {
		if h, err = unit.Find(g, seconds); err == nil && (o.Tasks == 0 || o.Tasks == plan.Place) {
			h = h.WithPartialGradients(g, seconds)
		}
		priority = o.priority(g, seconds)
	})
	bound := simulator.QuickLowerBound()
	beside.Wait()
	if bound.Impossible && o.Objective.Normal() != plan.Throughput {
		return nil, fmt.Errorf("graph %s cannot fit machine %s: %w: %s", g.Name(), m.Name, ErrInfeasible, whyImpossible(g, m))
	}
	if err != nil {
		return nil, err
	}
	p := &Problem{
		Problem: plan.Problem{
			Graph: g, Machine: m, Units: h, Evaluator: simulator, Kernels: simulator.KernelCosts, Moves: simulator.Moves, Objective: o.Objective, Tasks: o.Tasks,
			Decision: plan.Decision{Priority: priority}, Seed: 1,
		},
		Simulator: simulator, source: s, options: o,
	}
	if o.Tasks.Has(plan.Fuse) && !bound.Impossible {
		if o.Objective.Normal() == plan.Step {
			p.UnfusedBound = float64(bound.Seconds)
		}
		bound = simulator.FusedLowerBound()
	}
	p.Bound = float64(bound.Seconds)
	if p.Contention, err = s.Contention(o.Contention); err != nil {
		return nil, err
	}
	return p, p.judgeBy(s)
}

// Simulator returns the simulator of s on m, which counts memory, and the
// scheduler's priorities, [N]; nil is FIFO.
func Simulator(s Source, m *hw.Machine, o Options) (*sim.Simulator, []int32, error) {
	x, err := newSimulator(s, m, o)
	if err != nil {
		return nil, nil, err
	}
	return x, o.priority(s.Graph, x.OpSeconds(0)), nil
}

func newSimulator(s Source, m *hw.Machine, o Options) (*sim.Simulator, error) {
	cost, err := s.Costs(m)
	if err != nil {
		return nil, err
	}
	config := sim.Default()
	if config.Contention, err = s.Contention(o.Contention); err != nil {
		return nil, err
	}
	return sim.New(s.Graph, m, cost, config)
}

// priority returns the scheduler's priorities of g, [N], for op times seconds, [N]; nil is
// FIFO.
func (o *Options) priority(g *graph.Graph, seconds []float64) []int32 {
	if o.Scheduler == FIFO {
		return nil
	}
	return sim.CriticalPathPriority(g, seconds)
}

// Tighten raises the bound of steps by what takes up to some seconds to prove
// (sim.Simulator.LowerBound), and that of a quantile over machines by what takes as long for
// each of them, so many workers at once. It stays as it is when ctx ends before.
func (p *Problem) Tighten(ctx context.Context, workers int) {
	if p.Simulator == nil || p.Objective.Normal() != plan.Step {
		return
	}
	unfused := &p.Bound
	if p.Tasks.Has(plan.Fuse) {
		unfused = &p.UnfusedBound
	}
	e := p.robust
	if e == nil {
		*unfused = max(*unfused, float64(p.Simulator.LowerBound(ctx).Seconds))
		return
	}
	if p.Tasks.Has(plan.Fuse) {
		p.Bound = max(p.Bound, e.Bound(ctx, true, p.asIs, workers))
	}
	*unfused = max(*unfused, e.Bound(ctx, false, p.asIs, workers))
}

// Workload returns the problem to place a built-in workload on the first gpus GPUs
// of a built-in machine ("gnmt8", "p100", 8).
func Workload(name, gpu string, gpus int, o Options) (*Problem, error) {
	g, err := workloads.Build(name)
	if err != nil {
		return nil, err
	}
	m, err := hw.Take(gpu, gpus, false)
	if err != nil {
		return nil, err
	}
	return New(Source{Graph: g}, m, o)
}

// Peak returns the peak bytes of every device under d, [D]; nil for a problem
// without a simulator. It may be called at once from several goroutines.
func (p *Problem) Peak(d plan.Decision) []units.Bytes {
	if p.Simulator == nil {
		return nil
	}
	if d.Fusion == nil {
		x := p.Simulator.Clone().(*sim.Simulator)
		x.Evaluate(d)
		return x.Peaks()
	}
	r, _ := p.Simulator.Clone().(*sim.Simulator).Run(&plan.Plan{Decision: d}, sim.Options{})
	if r == nil {
		return nil
	}
	return r.PeakBytes
}

// A problem looks for a better bound of its largest load up to so many times the
// first one, with so much effort: a second or so.
const (
	packingReach  = 4
	packingEffort = 1_000_000
)

// judgeBy puts the objective's evaluator and bound in place of those of steps.
func (p *Problem) judgeBy(s Source) error {
	switch p.Objective.Normal() {
	case plan.Step:
		return p.judgeRobustly(s)
	case plan.Memory:
		p.JudgeBy(sim.NewPeak(p.Simulator.Clone().(*sim.Simulator)))
		p.Bound = float64(sim.PeakBound(p.Graph, p.Machine.NumDevices()))
	case plan.Throughput:
		if p.Machine.OccupiesSender() {
			return fmt.Errorf("machine %s: the throughput objective knows no copies that occupy the sender", p.Machine.Name)
		}
		source, err := Loads(s, p.Machine, p.Simulator)
		if err != nil {
			return err
		}
		e, err := throughput.NewEvaluator(source)
		if err != nil {
			return err
		}
		p.JudgeBy(e)
		ctx, share := context.Background(), p.options.boundShare() // both are done within their effort
		p.Bound = e.Instance().Bound(ctx, math.Inf(1), int(share*throughput.BoundEffort))
		p.Bound = e.Instance().PackingBound(ctx, p.Bound, packingReach*p.Bound, int(share*packingEffort))
	}
	return nil
}

// judgeRobustly puts the quantile over machines that deviate in place of the step, where
// that is asked for.
func (p *Problem) judgeRobustly(s Source) error {
	if p.options.Robust == nil {
		return nil
	}
	cost, err := s.Costs(p.Machine)
	if err != nil {
		return err
	}
	config := sim.Default()
	config.Contention = p.Contention
	e, err := robust.New(robust.Model{Graph: p.Graph, Machine: p.Machine, Cost: cost, How: config}, *p.options.Robust)
	if err != nil {
		return err
	}
	p.JudgeBy(e)
	p.Moves = e.Moves
	p.robust, p.asIs = e, p.Bound
	p.Bound, p.UnfusedBound = e.Floor(p.Bound), e.Floor(p.UnfusedBound) // which Tighten raises
	return nil
}

// Loads returns what the throughput objective of s on m is made from: the file's
// times where it has them, or else those of x.
func Loads(s Source, m *hw.Machine, x *sim.Simulator) (throughput.Source, error) {
	if s.Times != nil {
		return throughput.FromTable(s.Graph, m, s.Times)
	}
	source := throughput.Source{Graph: s.Graph, Machine: m}
	for d := range m.NumDevices() {
		source.Seconds = append(source.Seconds, x.OpSeconds(d))
	}
	return source, nil
}

// whyImpossible names what does not fit: an op, a co-location group or the sum.
func whyImpossible(g *graph.Graph, m *hw.Machine) string {
	var largest, all units.Bytes
	for _, d := range m.Devices {
		largest = max(largest, d.Memory)
		all += d.Memory
	}
	if r := g.Resident(); r > all {
		return fmt.Sprintf("parameters and optimizer state take %s, all devices together have %s", r, all)
	}
	group := map[int32]units.Bytes{}
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		if o.Resident > largest {
			return fmt.Sprintf("op %d (%s) holds %s, the largest device has %s", i, o.Name, o.Resident, largest)
		}
		if o.Group > 0 {
			if group[o.Group] += o.Resident; group[o.Group] > largest {
				return fmt.Sprintf("op %d (%s) and the ops that must share its device hold %s, the largest device has %s", i, o.Name, group[o.Group], largest)
			}
		}
	}
	return fmt.Sprintf("parameters and optimizer state take %s in pieces that do not go into the devices, which have %s together", g.Resident(), all)
}
