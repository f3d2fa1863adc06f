package cli

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/maxload"
	"placer/placer"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// simulator returns the simulator of l on m, with exact memory, and the
// scheduler's priorities.
func simulator(l loaded, m *hw.Machine, how judging) (*sim.Simulator, []int32, error) {
	g := l.Graph
	cost, err := l.costs(m)
	if err != nil {
		return nil, nil, err
	}
	config := sim.Default()
	if config.Contention, err = l.contention(how.contention); err != nil {
		return nil, nil, err
	}
	s, err := sim.New(g, m, cost, config)
	if err != nil {
		return nil, nil, err
	}
	switch how.scheduler {
	case criticalPath:
		return s, sim.CriticalPathPriority(g, s.OpSeconds(0)), nil
	case fifo:
		return s, nil, nil
	}
	return nil, nil, usagef("unknown scheduler %q, want %s or %s", how.scheduler, criticalPath, fifo)
}

// contention returns what flag names or, where it is empty, what l's file implies.
func (l *loaded) contention(flag string) (sim.Contention, error) {
	if flag != "" {
		k, err := sim.ParseContention(flag)
		if err != nil {
			return k, usageError{err}
		}
		return k, nil
	}
	if l.times != nil && l.times.Uncontended {
		return sim.Uncontended, nil
	}
	return sim.Default().Contention, nil
}

// task returns the problem that a search hands to its methods, and the simulator
// behind it. The error is errInfeasible when no placement of l on m can fit.
func task(l loaded, m *hw.Machine, how judging) (*placer.Task, *sim.Simulator, error) {
	g := l.Graph
	s, priority, err := simulator(l, m, how)
	if err != nil {
		return nil, nil, err
	}
	bound := s.LowerBound()
	if bound.Impossible && how.objective.Normal() != plan.Throughput {
		return nil, nil, fmt.Errorf("graph %s cannot fit machine %s: %w: %s", g.Name(), m.Name, errInfeasible, whyImpossible(g, m))
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		return nil, nil, err
	}
	if how.tasks == 0 || how.tasks == plan.Place {
		h = h.WithPartialGradients(g, s.OpSeconds(0))
	}
	unfused := 0.0
	if how.tasks.Has(plan.Fuse) && !bound.Impossible {
		if how.objective.Normal() == plan.Step {
			unfused = float64(bound.Seconds)
		}
		bound = s.FusedLowerBound()
	}
	t := &placer.Task{
		Graph: g, Machine: m, Units: h, Evaluator: s, Priority: priority, Bound: float64(bound.Seconds), UnfusedBound: unfused,
		Tasks: how.tasks,
		Peak: func(d plan.Decision) []units.Bytes {
			r, _ := s.Run(&plan.Plan{Device: d.Device, Priority: d.Priority, Fusion: d.Fusion}, sim.Options{})
			if r == nil {
				return nil
			}
			return r.PeakBytes
		},
	}
	return t, s, judgeBy(t, s, l, how.objective)
}

// A task looks for a better bound of its largest load up to so many times the
// first one, with so much effort: a second or so.
const (
	packingReach  = 4
	packingEffort = 1_000_000
)

// judgeBy makes the objective that of t, whose evaluator judges by step time.
func judgeBy(t *placer.Task, s *sim.Simulator, l loaded, o plan.Objective) error {
	t.Objective = o
	switch o.Normal() {
	case plan.Memory:
		t.Evaluator = sim.NewPeak(s.Clone().(*sim.Simulator))
		t.Bound = float64(sim.PeakBound(t.Graph, t.Machine.NumDevices()))
	case plan.Throughput:
		source, err := loadSource(l, t.Machine, s)
		if err != nil {
			return err
		}
		e, err := maxload.NewEvaluator(source)
		if err != nil {
			return err
		}
		t.Evaluator = e
		t.Bound = e.Instance().Bound(math.Inf(1))
		t.Bound = e.Instance().PackingBound(t.Bound, packingReach*t.Bound, packingEffort)
	}
	return nil
}

// loadSource returns what the throughput objective of l on m is made from: the
// file's times where it has them.
func loadSource(l loaded, m *hw.Machine, s *sim.Simulator) (maxload.Source, error) {
	if l.times != nil {
		return maxload.FromTable(l.Graph, m, l.times)
	}
	source := maxload.Source{Graph: l.Graph, Machine: m}
	for d := range m.NumDevices() {
		source.Seconds = append(source.Seconds, s.OpSeconds(d))
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
