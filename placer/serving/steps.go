package serving

import (
	"context"
	"errors"
	"fmt"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/placer/strategies"
)

// Model returns a step of a decoder: seq tokens of each of batch sequences, behind past others.
type Model func(batch, seq, past int64) (*graph.Graph, error)

// step is a simulated step.
type step struct {
	*strategies.Result
	every float64 // seconds from step to step, where they follow one another
}

// simulate returns a step of batch sequences divided by s on the first devices of m.
func (p *planner) simulate(ctx context.Context, m *hw.Machine, s strategy.Strategy, batch, seq, past int64) (*step, error) {
	g, err := p.model(batch, seq, past)
	if err != nil {
		return nil, err
	}
	s.MicroBatches = min(s.MicroBatches, int(batch))
	x, err := p.comparison(g, m.Keep(m.Ranks()[:s.Ranks()]), batch, seq, past, &s)
	if err != nil {
		return nil, err
	}
	rows := x.Rows(ctx, nil)
	switch {
	case len(rows) == 0:
		return nil, ctx.Err()
	case rows[0].Result == nil:
		return nil, errors.New(rows[0].Why)
	}
	out := &step{rows[0].Result, rows[0].Seconds}
	if rows[0].Stream != nil {
		out.every = rows[0].Stream.Every
	}
	if !(out.every > 0) {
		return nil, fmt.Errorf("a step of %v takes no time", s)
	}
	return out, nil
}

// comparison returns what simulates steps as simulate has them, of which g is one, on m.
func (p *planner) comparison(g *graph.Graph, m *hw.Machine, batch, seq, past int64, s *strategy.Strategy) (*strategies.Comparison, error) {
	how := strategies.Config{Batch: batch, Strategy: s, OneShot: true, Clock: func() float64 { return 0 }}
	family := func(n int64) (*graph.Graph, error) { return p.model(n, seq, past) }
	return strategies.NewComparison(problem.Source{Graph: g}, family, m, how)
}
