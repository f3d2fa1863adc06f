package baechi

import (
	"context"
	"fmt"

	"placer/baselines/judge"
	"placer/plan"
	"placer/units"
)

// Placer is one of the three algorithms.
type Placer struct {
	Algorithm Algorithm
}

// Algorithm is one of Baechi's.
type Algorithm uint8

// Algorithms.
const (
	TOPO Algorithm = iota
	ETF
	SCT
)

var names = [...]string{"m-topo", "m-etf", "m-sct"}

var _ plan.Placer = Placer{}

// Name returns "m-topo", "m-etf" or "m-sct".
func (b Placer) Name() string { return names[b.Algorithm] }

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// shares are the parts of each device's memory that are given away, in turn until
// the simulator finds that the placement fits.
var shares = [...]float64{1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3}

// Place decides for the whole memory, and again for less while the placement does
// not fit.
func (b Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	j := judge.New(ctx, p, b.Name())
	m, err := newModel(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	var favourites []int32
	if b.Algorithm == SCT && ctx.Err() == nil {
		f := m.favourites(ctx)
		favourites = f.child
		if f.note != "" {
			j.Note("%s", f.note)
		}
	}
	device := make([]uint8, p.Graph.NumOps())
	room := make([]units.Bytes, m.d)
	for k, share := range shares {
		if k > 0 && j.Done() {
			break
		}
		for v := range room {
			room[v] = units.Bytes(share * float64(p.Machine.Devices[v].Memory))
		}
		of, ok := []int(nil), true
		if b.Algorithm == TOPO {
			of = m.topo(room)
		} else {
			of, ok = m.etf(ctx, room, favourites)
		}
		if !ok {
			break
		}
		m.expand(of, device)
		if j.Try(device).Feasible() {
			break
		}
	}
	return j.Outcome()
}
