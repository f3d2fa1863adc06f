package serving

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/placer/strategies"
	"placer/units"
)

// Model returns a step of a decoder: seq tokens of each of batch sequences, behind past others.
type Model func(batch, seq, past int64) (*graph.Graph, error)

// step is a simulated step.
type step struct {
	seconds float64
	every   float64       // seconds from step to step, where they follow one another
	peak    []units.Bytes // [D] of the replica
	held    []units.Bytes // [D] throughout
}

// stepKey names a step of a planner.
type stepKey struct {
	captured         bool
	strategy         strategy.Strategy
	batch, seq, past int64
}

// steps are those that are known. Two goroutines that ask for one may both simulate it.
type steps struct {
	mu sync.Mutex
	of map[stepKey]*step
}

func (k *steps) get(key stepKey) *step {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[key]
}

func (k *steps) put(key stepKey, x *step) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[stepKey]*step{}
	}
	k.of[key] = x
}

// simulate returns a step of batch sequences divided by s on the first devices, of replayed graphs where
// captured.
func (p *Planner) simulate(ctx context.Context, captured bool, s strategy.Strategy, batch, seq, past int64) (*step, error) {
	key := stepKey{captured, s, batch, seq, past}
	if x := p.known.get(key); x != nil {
		return x, nil
	}
	m := p.Machine
	if captured {
		m = p.Captured
	}
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
	r := rows[0].Result
	out := &step{r.Seconds, rows[0].Seconds, r.Peak, r.Held}
	if rows[0].Stream != nil {
		out.every = rows[0].Stream.Every
	}
	if !(out.every > 0) {
		return nil, fmt.Errorf("a step of %v takes no time", s)
	}
	p.known.put(key, out)
	return out, nil
}

// comparison returns what simulates steps as simulate has them, of which g is one, on m.
func (p *Planner) comparison(g *graph.Graph, m *hw.Machine, batch, seq, past int64, s *strategy.Strategy) (*strategies.Comparison, error) {
	how := strategies.Config{Batch: batch, Strategy: s, OneShot: true, Clock: func() float64 { return 0 }}
	family := func(n int64) (*graph.Graph, error) { return p.model(n, seq, past) }
	return strategies.NewComparison(problem.Source{Graph: g}, family, m, how)
}
