package transfer

import (
	"context"
	"fmt"
	"strings"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/problems"
	"placer/units"
	"placer/workloads"
)

// Problem builds the case: its graph, machine, units and simulator.
func (c Case) Problem() (*plan.Problem, error) {
	g, err := c.graph()
	if err != nil {
		return nil, err
	}
	m, err := hw.Take(c.GPU, c.Devices, false)
	if err != nil {
		return nil, err
	}
	if c.Bandwidth > 0 {
		for i := range m.Links {
			m.Links[i].Bandwidth *= units.BytesPerSecond(c.Bandwidth)
		}
	}
	return problems.New(g, m)
}

// graph builds the case's graph.
func (c Case) graph() (*graph.Graph, error) {
	style, rest, _ := strings.Cut(c.Workload, ":")
	switch style {
	case seriesParallel, towers, crossed, skips:
	default:
		return workloads.Build(c.Workload)
	}
	var depth, batch, width int
	var heavy float64
	var seed uint64
	if _, err := fmt.Sscanf(rest, "%d,%d,%d,%g,%d", &depth, &batch, &width, &heavy, &seed); err != nil {
		return nil, fmt.Errorf("generated net %q: %w", c.Workload, err)
	}
	return RandomNet(style, depth, batch, width, heavy, seed)
}

// lesson is a problem to learn from.
type lesson struct {
	*View
	// baseline is the expert's step time, in seconds: what rewards are relative to.
	baseline float64
	// teacher is what a search decided, [N]; nil where none was asked.
	teacher []uint8
	of      Case
}

// lessonOf draws case number index of family f under seed: the first draw that
// is small enough.
func (t *pretraining) lessonOf(ctx context.Context, f Family, index int) (*lesson, Case, error) {
	random := stream(t.c.Seed, f.Name, uint64(index))
	for {
		if err := ctx.Err(); err != nil {
			return nil, Case{}, err
		}
		c := f.Draw(random)
		p, err := c.Problem()
		if err != nil {
			return nil, c, fmt.Errorf("%s on %d %s: %w", c.Workload, c.Devices, c.GPU, err)
		}
		cells := p.Units.Levels[unit.Cell].NumUnits()
		if cells*c.Devices > t.c.MostRows {
			continue
		}
		w, err := newView(p)
		if err != nil {
			return nil, c, err
		}
		o, err := t.host.Expert.Place(ctx, p)
		if err != nil {
			return nil, c, err
		}
		l := &lesson{View: w, baseline: o.Score.Seconds}
		if !o.Score.Feasible() {
			l.baseline *= infeasibleExpert
		}
		return l, c, nil
	}
}

// infeasibleExpert is how many times longer than it says an expert's step counts
// that does not fit.
const infeasibleExpert = 2
