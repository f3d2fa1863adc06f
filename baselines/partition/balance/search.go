package balance

import (
	"context"
	"math"
	"math/rand/v2"

	"placer/sim/throughput"
)

// Config says how long to search.
type Config struct {
	Moves int    // proposed in all
	Seed  uint64 // of every random choice
	// hot and Cold are the first and the last temperature, in units of the energy of
	// a device at the best load.
	hot, cold float64
	rounds    int // annealings, each from the best so far
}

// Default proposes sixteen million moves, some seconds.
func Default() Config { return Config{Moves: 16 << 20, Seed: 1, hot: 0.3, cold: 1e-3, rounds: 4} }

// Search anneals from block, [B], and returns the best placement and its
// largest load. It stops soon after ctx ends, or when tick, called every B moves
// with the best so far, returns false; tick may be nil.
func Search(ctx context.Context, x *throughput.Instance, block []uint8, c Config, tick func(best []uint8) bool) ([]uint8, float64) {
	s := newState(x, block)
	a := &annealer{state: s, rng: rand.New(rand.NewPCG(c.Seed, 0x62616c616e6365)), best: append([]uint8(nil), block...), seconds: s.most()}
	if s.d < 2 || x.NumBlocks() == 0 {
		return a.best, a.seconds
	}
	every := max(64, x.NumBlocks())
	for round := range max(1, c.rounds) {
		s.set(a.best)
		n := c.Moves / max(1, c.rounds)
		hot := c.hot
		if round > 0 {
			hot /= float64(int(1) << min(round, 4))
		}
		cool := math.Pow(c.cold/hot, 1/float64(max(n, 1)))
		a.temperature = hot
		a.scale()
		for k := range n {
			a.step()
			a.temperature *= cool
			if (k+1)%every == 0 {
				if ctx.Err() != nil || tick != nil && !tick(a.best) {
					return a.best, a.seconds
				}
			}
		}
	}
	return a.best, a.seconds
}

type annealer struct {
	*state
	rng         *rand.Rand
	temperature float64
	unit        float64 // 1 / load of energy 1
	best        []uint8
	seconds     float64
}

// scale sets the load of energy 1 to the best; where none fits, to more than any
// device can have, so that memory comes first.
func (a *annealer) scale() {
	ref := a.seconds
	if math.IsInf(ref, 1) {
		ref = 0
		for b := range a.block {
			if l := a.x.Longest(int32(b)); !math.IsInf(l, 1) {
				ref += l
			}
		}
		for e := range a.x.Nets {
			ref += a.x.Nets[e].Seconds
		}
	}
	a.unit = 1 / max(ref, 1e-30)
}

// energy of a device: its load to the eighth, and its memory beyond the limit.
func (a *annealer) energy(d uint8, load float64, bytes int64) float64 {
	r := load * a.unit
	r *= r
	r *= r
	r *= r
	if over := bytes - a.room[d]; over > 0 {
		r += 1 + 10*float64(over)/float64(a.room[d]+1)
	}
	return r
}

// step proposes one move or one exchange.
func (a *annealer) step() {
	b := int32(a.rng.IntN(len(a.block)))
	p := a.block[b]
	q, other := a.target(b)
	if q == p {
		return
	}
	before := a.energy(p, a.load[p], a.bytes[p]) + a.energy(q, a.load[q], a.bytes[q])
	from, to := a.delta(b, q)
	if other < 0 {
		after := a.energy(p, a.load[p]+from, a.bytes[p]-a.x.Size[b]) + a.energy(q, a.load[q]+to, a.bytes[q]+a.x.Size[b])
		if !a.accept(after - before) {
			return
		}
		a.move(b, q, from, to)
	} else {
		a.move(b, q, from, to)
		back, there := a.delta(other, p)
		a.move(other, p, back, there)
		after := a.energy(p, a.load[p], a.bytes[p]) + a.energy(q, a.load[q], a.bytes[q])
		if !a.accept(after - before) {
			a.move(other, q, -there, -back)
			a.move(b, p, -to, -from)
			return
		}
	}
	if a.load[p] < a.seconds && a.load[q] < a.seconds {
		if now := a.most(); now < a.seconds*(1-1e-12) {
			a.seconds = now
			copy(a.best, a.block)
			a.scale()
		}
	}
}

// target chooses where block b goes: mostly where a neighbour is; sometimes it
// changes places with a block there.
func (a *annealer) target(b int32) (q uint8, other int32) {
	r := a.rng.Uint32()
	if nets := a.x.NetsOf[b]; len(nets) > 0 && r&3 != 0 {
		blocks := a.x.Nets[nets[a.rng.IntN(len(nets))]].Blocks
		q = a.block[blocks[a.rng.IntN(len(blocks))]]
	} else {
		q = uint8(a.rng.IntN(a.d))
	}
	if r>>2&7 == 0 {
		other = int32(a.rng.IntN(len(a.block)))
		if v := a.block[other]; v != a.block[b] {
			return v, other
		}
	}
	return q, -1
}

func (a *annealer) accept(change float64) bool {
	return change <= 0 || a.rng.Float64() < math.Exp(-change/a.temperature)
}
