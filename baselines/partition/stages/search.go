package stages

import (
	"context"
	"slices"

	"placer/baselines/budget"
	"placer/plan"
	"placer/plan/formats"
)

// maxMoves bounds the evaluations of moving single parts.
const maxMoves = 4096

// Search returns the best placement that t can take and that it finds, on any number of
// devices, within the budget of p. For a target of stages it moves the bounds of the
// balanced stages of every number, and of the nearest ones to device, [N]; for others it
// moves single parts from the best stages and from the device of most of each part in
// device. The result is never worse than Nearest's of device, from which it cannot be
// moved by the moves of Nearest.
func Search(ctx context.Context, p *plan.Problem, t formats.Target, device []uint8) (*plan.Outcome, error) {
	m := newModel(p)
	near, most, err := Nearest(ctx, p, t, device)
	if err != nil {
		return nil, err
	}
	track := budget.New(ctx, p, t.Name)
	var legal *formats.Target // of which bounds are checked; others take any
	if t.Stages {
		legal = &t
	}
	best, score := near.Device, track.Try(near.Device)
	for s := range min(len(m.order), len(m.parts.List)) {
		bounds := m.balanced(s + 1)
		if t.Stages {
			bounds = m.fit(&t, bounds)
		}
		bounds = m.climb(track, legal, bounds)
		placed := m.spread(bounds)
		if x := p.Evaluator.Evaluate(plan.Decision{Device: placed}); x.Better(score) && m.legal(legal, bounds) {
			best, score, most = placed, x, m.device(bounds)
		}
	}
	if !t.Stages {
		best = m.moveParts(track, most)
	}
	out, err := track.Outcome()
	if err != nil {
		return nil, err
	}
	out.Device = best // of what is legal
	return out, nil
}

// moveParts moves single parts between devices as long as that helps. It returns the
// device of each op.
func (m *model) moveParts(track *budget.Tracker, device []uint8) []uint8 {
	device = slices.Clone(device)
	score := track.Try(m.parts.Spread(m.p.Graph, device))
	end := track.Evaluations() + maxMoves
	for again := true; again && !track.Done(); {
		again = false
		for k := range device {
			for _, d := range m.order {
				was := device[k]
				if d == was || track.Evaluations() >= end || track.Done() {
					continue
				}
				device[k] = d
				if x := track.Try(m.parts.Spread(m.p.Graph, device)); x.Better(score) {
					score, again = x, true
				} else {
					device[k] = was
				}
			}
		}
	}
	return m.parts.Spread(m.p.Graph, device)
}
