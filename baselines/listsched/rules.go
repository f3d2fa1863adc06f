package listsched

import (
	"context"
	"fmt"

	"placer/baselines/budget"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

// Rules is "listsched", critical-path list scheduling of units (chains, segments or
// cells): nodes are visited by falling upward rank, and the first visit of a unit
// decides its device, for all its nodes, by when the node would end there and by how
// much work the device would have.
//
// It is HEFT with these differences: decisions are per unit; transfers wait for the
// links of their route; there is no insertion into gaps; a device whose memory the
// unit would overflow is not offered while another has room; variables wait for their
// first reader, because they are ready everywhere; and several rules are tried in a
// fixed order, of which the best result is kept.
func Rules() plan.Placer { return method{"listsched", placeByRules} }

// rule is one way to choose a device.
type rule struct {
	level unit.Level
	// balance weighs the work that a device would have, as a share of the mean,
	// against the time at which the unit's first node would end.
	balance float64
	// operands weighs the time that the node's operands take to get to the device,
	// beside what they delay it: links are busy with what follows, too.
	operands float64
}

// rules are coarse before fine, so that a short budget sees the safer ones.
func rules() []rule {
	var rs []rule
	for _, l := range []unit.Level{unit.Chain, unit.Segment, unit.Cell} {
		for _, b := range []float64{1, 0.3, 0} {
			for _, o := range []float64{0, 1, 4} {
				rs = append(rs, rule{l, b, o})
			}
		}
	}
	return rs
}

// placeByRules evaluates one placement per rule.
func placeByRules(ctx context.Context, p *plan.Problem, name string) (*plan.Outcome, error) {
	track := budget.New(ctx, p, name)
	device := make([]uint8, p.Graph.NumOps())
	var s *scheduler
	for k, r := range rules() {
		if k > 0 && track.Done() {
			break
		}
		if s == nil || s.level != r.level {
			var err error
			if s, err = newScheduler(p, r.level); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		s.follow(r)
		s.expand(s.of, device)
		track.Try(device)
	}
	return track.Outcome()
}

// scheduler list-schedules one problem at one level; its groups are the units.
type scheduler struct {
	*state
	level unit.Level
	order []graph.OpID
}

func newScheduler(p *plan.Problem, l unit.Level) (*scheduler, error) {
	n, err := newNodes(p, l, byUnit(p.Units.Levels[l].NumUnits()))
	if err != nil {
		return nil, err
	}
	room := make([]units.Bytes, n.d)
	for d := range room {
		room[d] = p.Machine.Devices[d].Memory
	}
	s := &scheduler{state: newState(n, room), level: l}
	s.elsewhere = s.emptiest
	s.order = schedule.ByRank(n.g, schedule.MeanRank(n.g, p.Machine, n.seconds))
	return s, nil
}

// follow decides every unit by rule r.
func (s *scheduler) follow(r rule) {
	s.reset()
	roles := s.p.Units.Roles[s.level]
	for _, v := range s.order {
		u := s.group[v]
		if s.of[u] == none {
			if roles != nil && roles[u] == unit.Weights && len(s.g.Inputs(v)) == 0 {
				continue // variables wait for their first reader
			}
			s.fix(u, s.choose(v, r))
		}
		d := s.of[u]
		s.run(v, d, s.ready(v, d, true))
	}
}

// choose returns the device of node v's unit: that of its counterpart, if that is
// decided; freely chosen, gradients end up far from the activations that they
// read.
func (s *scheduler) choose(v graph.OpID, r rule) int {
	u := s.group[v]
	if ps := s.p.Units.Counterparts[s.level]; ps != nil && ps[u] >= 0 {
		if d := s.of[ps[u]]; d != none && s.fits(u, d) {
			return d
		}
	}
	best, at := none, 0.0
	for d := range s.d {
		if !s.fits(u, d) {
			continue
		}
		x := max(s.free[d], s.ready(v, d, false)) + s.seconds[d][v] + r.operands*s.moving(v, d)
		x += r.balance * (s.load[d] + s.work[d][u])
		if best == none || x < at {
			best, at = d, x
		}
	}
	if best == none { // nothing fits
		return s.emptiest(0)
	}
	return best
}

// moving returns the time that transfers of node v's operands to device d take.
func (s *scheduler) moving(v graph.OpID, d int) (sum float64) {
	for _, t := range s.g.Inputs(v) {
		x := s.g.Tensor(t)
		if from := s.of[s.group[x.Producer]]; from != none && from != d && !s.arrival.Sent(t, d) {
			sum += float64(s.p.Machine.TransferSeconds(from, d, x.Bytes))
		}
	}
	return sum
}

// emptiest returns the device that holds least; ties go to d, then to the lower one.
func (s *scheduler) emptiest(d int) int {
	for e := range s.d {
		if s.held[e] < s.held[d] {
			d = e
		}
	}
	return d
}
