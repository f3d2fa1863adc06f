package heft

import (
	"context"
	"fmt"

	"placer/baselines/judge"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

// levels are what the schedulers on units decide on, coarse before fine.
var levels = [...]unit.Level{unit.Chain, unit.Segment, unit.Cell}

// contracted is a schedule of the nodes of a contraction.
type contracted struct {
	*schedule
	c *unit.Contraction
}

// newContracted prepares a schedule of p's units of level l: nodes of one unit and
// of its partner are bound together, and variables that nothing comes before are
// placed with their first reader.
func newContracted(p *plan.Problem, l unit.Level) (*contracted, error) {
	var perTensor units.Bytes
	if p.Machine.NumDevices() > 1 {
		latency, bandwidth := p.Machine.Transfer(0, 1)
		perTensor = units.Bytes(float64(latency) * float64(bandwidth))
	}
	c, err := unit.Contract(p.Graph, p.Units.Levels[l], perTensor)
	if err != nil {
		return nil, err
	}
	q := *p
	q.Graph = c.Graph
	e := &summed{}
	for v := range p.Machine.NumDevices() {
		e.seconds = append(e.seconds, c.Sum(p.Evaluator.OpSeconds(v)))
	}
	q.Evaluator = e
	q.Units = &unit.Hierarchy{}
	q.Units.Levels[unit.Op] = bound(c, p.Units.Partners[l])
	s := &contracted{newSchedule(&q), c}
	if roles := p.Units.Roles[l]; roles != nil {
		for v := range s.source {
			id := graph.OpID(v)
			s.source[v] = roles[c.Unit(id)] == unit.Weights && len(c.Graph.Inputs(id)) == 0 && len(c.Graph.Control(id)) == 0
		}
	}
	return s, nil
}

// bound groups the nodes of a contraction by unit, a unit and its partner
// together.
func bound(c *unit.Contraction, partners []int32) *unit.Partition {
	p := &unit.Partition{Of: make([]int32, c.Graph.NumOps())}
	group := map[int32]int32{}
	for v := range p.Of {
		u := c.Unit(graph.OpID(v))
		if partners != nil && partners[u] >= 0 {
			u = min(u, partners[u])
		}
		k, ok := group[u]
		if !ok {
			k = int32(len(p.Ops))
			group[u] = k
			p.Ops = append(p.Ops, nil)
		}
		p.Of[v] = k
		p.Ops[k] = append(p.Ops[k], graph.OpID(v))
	}
	return p
}

// summed gives the times of nodes; it evaluates nothing.
type summed struct {
	plan.Evaluator
	seconds [][]float64 // [D][V]
}

func (s *summed) OpSeconds(d int) []float64 { return s.seconds[d] }

// onUnits schedules the units of every level with run, which returns false when
// ctx has ended, and keeps the best placement.
func onUnits(ctx context.Context, p *plan.Problem, name string, run func(*schedule) bool) (*plan.Outcome, error) {
	j := judge.New(ctx, p, name)
	device := make([]uint8, p.Graph.NumOps())
	for k, l := range levels {
		if k > 0 && j.Done() {
			break
		}
		s, err := newContracted(p, l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !run(s.schedule) {
			break
		}
		of := s.devicesOf()
		for i, v := range s.c.Of {
			device[i] = of[v]
		}
		j.Try(device)
	}
	return j.Outcome()
}
