package sequential

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"placer/graph"
	"placer/schedule"
	"placer/units"
)

// improver shortens placements of an instance by simulated annealing under the policy's
// own schedule: no step is simulated. A move puts a unit, alone or with others that are on
// its device, on another device. Letters: V nodes, U units, D devices.
type improver struct {
	s       *instance
	config  improverConfig
	order   []graph.OpID // [V] in which nodes are scheduled
	tail    []float64    // [V] seconds from a node's start to the end, at least
	finish  []float64    // [V]
	devices []schedule.Timeline
	arrival *schedule.Arrivals
	held    []units.Bytes // [D]
	moved   []int32       // units of a move
}

// improverConfig bounds the work of an improver.
type improverConfig struct {
	moves  int     // tried for each unit, at most
	fewest int     // moves for each unit with which a placement is improved at all
	work   int     // nodes scheduled in all at most, which leaves large graphs fewer moves
	warmth float64 // temperature at first, as a share of the step; it falls to 0
	widest float64 // share of the units that move at once, at most
}

func defaultImprover() improverConfig {
	return improverConfig{moves: 20, fewest: 5, work: 10_000_000, warmth: 0.003, widest: 0.25}
}

func newImprover(s *instance, c improverConfig) *improver {
	g := s.nodes.Graph
	x := &improver{
		s: s, config: c, tail: make([]float64, g.NumOps()), finish: make([]float64, g.NumOps()), devices: make([]schedule.Timeline, s.d),
		arrival: schedule.NewArrivals(s.problem.Machine, g.NumTensors()), held: make([]units.Bytes, s.d),
	}
	for d := range x.devices {
		x.devices[d].MostGaps = mostGaps
	}
	for _, step := range s.steps {
		if step.unit == none {
			x.order = append(x.order, step.node)
		}
	}
	for _, v := range slices.Backward(x.order) {
		least := s.seconds[0][v]
		for d := range s.d {
			least = min(least, s.seconds[d][v])
		}
		x.tail[v] += least
		for _, t := range g.Inputs(v) {
			q := g.Tensor(t).Producer
			x.tail[q] = max(x.tail[q], x.tail[v])
		}
		for _, q := range g.Control(v) {
			x.tail[q] = max(x.tail[q], x.tail[v])
		}
	}
	return x
}

// perUnit returns the nodes scheduled in one move for each unit of s.
func perUnit(s *instance) int { return max(1, s.nodes.Graph.NumOps()*s.part.NumUnits()) }

// placements returns how many of n placements of s there is work to improve.
func (c improverConfig) placements(s *instance, n int) int {
	if s.d < 2 || s.part.NumUnits() < 2 {
		return 0
	}
	return min(n, c.work/(c.fewest*perUnit(s)))
}

// movesOf returns how many moves each of n placements of s is given.
func (c improverConfig) movesOf(s *instance, n int) int {
	return min(c.moves*s.part.NumUnits(), c.work/(max(1, n)*max(1, s.nodes.Graph.NumOps())))
}

// improve returns the placement, [U], whose own schedule ends soonest of those that so many
// moves lead to from one, with that end in seconds. It ends early when ctx does. At is
// overwritten.
func (x *improver) improve(ctx context.Context, at []int32, moves int, random *rand.Rand) (best []int32, soonest float64) {
	now := x.clock(at, math.Inf(1))
	best, soonest = slices.Clone(at), now
	clear(x.held)
	for u, d := range at {
		x.held[d] += x.s.resident[u]
	}
	for k := range moves {
		if k%256 == 0 && ctx.Err() != nil {
			break
		}
		from, to, bytes := x.draw(at, random)
		if len(x.moved) == 0 || x.held[to]+bytes > x.s.memory[to] {
			continue
		}
		for _, u := range x.moved {
			at[u] = to
		}
		cold := float64(k) / float64(moves)
		limit := now - soonest*x.config.warmth*(1-cold)*math.Log(1-random.Float64())
		end := x.clock(at, limit)
		if end > limit {
			for _, u := range x.moved {
				at[u] = from
			}
			continue
		}
		x.held[from] -= bytes
		x.held[to] += bytes
		if now = end; now < soonest {
			soonest = now
			copy(best, at)
		}
	}
	return best, soonest
}

// draw leaves in moved the units of a move, which are on one device, none where there is
// none; it returns that device, the one to move to, which a neighbour of a unit is on or
// any, and the bytes that the units keep there.
func (x *improver) draw(at []int32, random *rand.Rand) (from, to int32, bytes units.Bytes) {
	s, u := x.s, int32(random.IntN(len(at)))
	near, _ := s.exchanges.Neighbours(u)
	from, to = at[u], int32(random.IntN(s.d))
	if len(near) > 0 && random.IntN(2) == 0 {
		to = at[near[random.IntN(len(near))]]
	}
	x.moved = x.moved[:0]
	if to == from {
		return from, to, 0
	}
	x.moved = append(x.moved, u)
	switch random.IntN(4) {
	case 0: // with its forward part or its gradient
		if c := s.counterpart[u]; c != none && at[c] == from {
			x.moved = append(x.moved, c)
		}
	case 1: // with some of those that it exchanges tensors with
		for _, v := range near {
			if at[v] == from && random.IntN(2) == 0 {
				x.moved = append(x.moved, v)
			}
		}
	case 2: // with its group of some kind
		of := s.groups[random.IntN(numGroupings)].of
		for v := range at {
			if int32(v) != u && of[v] == of[u] && at[v] == from {
				x.moved = append(x.moved, int32(v))
			}
		}
		if float64(len(x.moved)) > x.config.widest*float64(len(at)) {
			x.moved = x.moved[:1]
		}
	}
	for _, v := range x.moved {
		bytes += s.resident[v]
	}
	return from, to, bytes
}

// clock returns when the own schedule of a placement, [U], ends, in seconds, and infinity
// as soon as that is known to be beyond limit.
func (x *improver) clock(at []int32, limit float64) (end float64) {
	s := x.s
	x.arrival.Reset()
	for d := range x.devices {
		x.devices[d].Reset()
	}
	for _, v := range x.order {
		d := int(at[s.unit[v]])
		w := s.seconds[d][v]
		start := x.devices[d].Earliest(x.arrival.Ready(s.nodes.Graph, v, s.unit, at, x.finish, d, true), w)
		if start+x.tail[v] > limit {
			return math.Inf(1)
		}
		x.devices[d].Take(start, w)
		x.finish[v] = start + w
		end = max(end, x.finish[v])
	}
	return end
}
