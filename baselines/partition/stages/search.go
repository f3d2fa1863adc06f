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
// device. Where nothing fits and t may have layers on the host, it moves how many layers, or
// how many layers' experts, are there. The result is never worse than Nearest's of device, from which it cannot be
// moved by the moves of Nearest.
func Search(ctx context.Context, p *plan.Problem, t formats.Target, device []uint8) (*plan.Outcome, error) {
	m := newModel(p)
	near, split, err := Nearest(ctx, p, t, device)
	if err != nil {
		return nil, err
	}
	most := split.Device
	track := budget.New(ctx, p, t.Name)
	best, score := near.Device, track.Try(near.Device)
	for s := range min(len(m.order), len(m.parts.List)) {
		c := cut{bounds: m.balanced(s + 1)}
		if t.Stages {
			c = m.fit(&t, c)
		}
		starts := []cut{c}
		if k := m.output(&t); k > 0 && s > 0 { // the layers balanced over the devices before the output's
			starts = append(starts, m.fit(&t, cut{bounds: append(m.balanced(s), k)}))
		}
		c = m.settle(track, &t, s+1, starts...)
		placed := m.split(c)
		device := placed.Spread()
		if x := p.Evaluator.Evaluate(plan.Decision{Device: device}); x.Better(score) && m.legal(&t, c) {
			best, score, most = device, x, placed.Device
		}
	}
	if !t.Stages {
		best = m.moveParts(track, &t, most)
	}
	for again := t.Host && m.host >= 0; again && !track.Done(); { // what is written must read back as the nearest to itself
		next, _, err := Nearest(ctx, p, t, best)
		if err != nil {
			return nil, err
		}
		if x := track.Try(next.Device); x.Better(score) {
			best, score = next.Device, x
		} else {
			again = false
		}
	}
	out, err := track.Outcome()
	if err != nil {
		return nil, err
	}
	out.Device = best // of what is legal
	return out, nil
}

// moveParts moves single parts between devices that t takes as long as that helps. It returns
// the device of each op.
func (m *model) moveParts(track *budget.Tracker, t *formats.Target, device []uint8) []uint8 {
	device = slices.Clone(device)
	score := track.Try(m.parts.Spread(m.p.Graph, device))
	end := track.Evaluations() + maxMoves
	for again := true; again && !track.Done(); {
		again = false
		for k := range device {
			for _, d := range m.order {
				was := device[k]
				if d == was || !t.Takes(m.p.Machine, d) || track.Evaluations() >= end || track.Done() {
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
