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
// moved by the moves of Nearest, but for worthADevice: of placements so near to the best it is the one on the
// fewest devices.
func Search(ctx context.Context, p *plan.Problem, t formats.Target, device []uint8) (*plan.Outcome, error) {
	m := newModel(p)
	near, split, err := Nearest(ctx, p, t, device)
	if err != nil {
		return nil, err
	}
	track := budget.New(ctx, p, t.Name)
	all := []candidate{{near.Device, split.Device, track.Try(near.Device)}}
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
		if m.legal(&t, c) {
			all = append(all, candidate{device, placed.Device, p.Evaluator.Evaluate(plan.Decision{Device: device})})
		}
	}
	if !t.Stages {
		device := m.moveParts(track, &t, leastOf(all).most)
		all = append(all, candidate{device, nil, p.Evaluator.Evaluate(plan.Decision{Device: device})})
	}
	end := thrifty(all)
	for again := t.Host && m.host >= 0; again && !track.Done(); { // what is written must read back as the nearest to itself
		next, _, err := Nearest(ctx, p, t, end.device)
		if err != nil {
			return nil, err
		}
		if x := track.Try(next.Device); x.Better(end.score) {
			end = candidate{device: next.Device, score: x}
		} else {
			again = false
		}
	}
	out, err := track.Outcome()
	if err != nil {
		return nil, err
	}
	out.Device = end.device // of what is legal
	return out, nil
}

// worthADevice is the share of the value below which a placement is no reason to use one more device.
const worthADevice = 1e-3

// candidate is a placement that a target can take.
type candidate struct {
	device []uint8 // [N]
	most   []uint8 // of each part
	score  plan.Score
}

// leastOf returns the best of all, the first of equals.
func leastOf(all []candidate) candidate {
	top := all[0]
	for _, c := range all[1:] {
		if c.score.Better(top.score) {
			top = c
		}
	}
	return top
}

// thrifty returns the one on the fewest devices of those that are as good as the best but for
// worthADevice, and of these the best.
func thrifty(all []candidate) candidate {
	top := leastOf(all)
	limit := top.score.Value * (1 + worthADevice)
	end, least := top, plan.DevicesOf(top.device)
	for _, c := range all {
		n := plan.DevicesOf(c.device)
		if c.score.Overflow == top.score.Overflow && c.score.Value <= limit && (n < least || n == least && c.score.Better(end.score)) {
			end, least = c, n
		}
	}
	return end
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
