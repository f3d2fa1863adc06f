package uncontended

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"placer/graph"
)

// Config says how long to search.
type Config struct {
	Steps int    // placements clocked
	Seed  uint64 // of every random choice
	// Hot and Cold are the first and the last temperature, as shares of the step
	// time at the start.
	Hot, Cold float64
	rounds    int // annealings, each from the best so far
}

// Default clocks 400,000 placements, some seconds for 200 ops.
func Default() Config { return Config{Steps: 400_000, Seed: 1, Hot: 0.02, Cold: 2e-5, rounds: 4} }

// Search anneals from device, [N], and returns the best placement and its step
// time, +Inf where ctx ends before that is known. Co-location groups of g stay whole. It
// stops when ctx ends, or when tick, called every 64 steps, returns false; tick may be
// nil.
func Search(ctx context.Context, g *graph.Graph, clock *Clock, device []uint8, c Config, tick func(best []uint8) bool) ([]uint8, float64) {
	a := &annealer{clock: clock, rng: rand.New(rand.NewPCG(c.Seed, 0x756e636f6e)), device: slices.Clone(device), best: slices.Clone(device)}
	a.group(g)
	a.uneven = !clock.alike
	for _, column := range clock.seconds[1:] {
		a.uneven = a.uneven || !slices.Equal(column, clock.seconds[0])
	}
	a.seconds = clock.Seconds(ctx, device)
	if clock.d < 2 {
		return a.best, a.seconds
	}
	for d := range uint8(clock.d) { // no move leads from one device to another for everything
		for i := range a.device {
			a.device[i] = d
		}
		if s := clock.Seconds(ctx, a.device); s < a.seconds {
			a.seconds = s
			copy(a.best, a.device)
		}
	}
	rounds := max(1, c.rounds)
	for round := range rounds {
		n := max(1, c.Steps/rounds)
		copy(a.device, a.best)
		a.now = a.seconds
		hot := c.Hot * a.seconds / float64(int(1)<<min(round, 3))
		cool := math.Pow(c.Cold*a.seconds/hot, 1/float64(n))
		for k, t := 0, hot; k < n; k, t = k+1, t*cool {
			a.step(ctx, t)
			if ctx.Err() != nil || k&63 == 63 && tick != nil && !tick(a.best) {
				return a.best, a.seconds
			}
		}
	}
	return a.best, a.seconds
}

type annealer struct {
	clock   *Clock
	rng     *rand.Rand
	device  []uint8
	now     float64
	best    []uint8
	seconds float64
	set     [][]int32 // [N] the op's co-location group, or the op alone
	near    [][]int32 // [N] ops that it reads from or that read from it
	feeds   [][]int32 // [N] ops whose outputs it alone reads
	uneven  bool      // the devices differ in times or routes
	moved   []int32
	was     []uint8
}

func (a *annealer) group(g *graph.Graph) {
	n := g.NumOps()
	a.set, a.near, a.feeds = make([][]int32, n), make([][]int32, n), make([][]int32, n)
	groups := map[int32][]int32{}
	for i := range n {
		if k := g.Op(graph.OpID(i)).Group; k > 0 {
			groups[k] = append(groups[k], int32(i))
		}
	}
	for i := range n {
		a.set[i] = []int32{int32(i)}
		if k := g.Op(graph.OpID(i)).Group; k > 0 {
			a.set[i] = groups[k]
		}
		readers := a.clock.reader[a.clock.at[i]:a.clock.at[i+1]]
		for _, v := range readers {
			a.near[i] = append(a.near[i], v)
			a.near[v] = append(a.near[v], int32(i))
		}
		if len(readers) == 1 {
			a.feeds[readers[0]] = append(a.feeds[readers[0]], int32(i))
		}
	}
}

// step proposes one move at temperature t.
func (a *annealer) step(ctx context.Context, t float64) {
	i := int32(a.rng.IntN(len(a.device)))
	to := uint8(a.rng.IntN(a.clock.d))
	r := a.rng.Uint32()
	if len(a.near[i]) > 0 && r&3 != 0 {
		to = a.device[a.near[i][a.rng.IntN(len(a.near[i]))]]
	}
	a.moved, a.was = a.moved[:0], a.was[:0]
	switch r >> 2 & 7 {
	case 3: // two devices change places, where they are not equal
		if from := a.device[i]; a.uneven && r>>5&7 == 0 && from != to {
			for j, d := range a.device {
				if d == from || d == to {
					a.moved, a.was = append(a.moved, int32(j)), append(a.was, d)
					a.device[j] = from ^ to ^ d
				}
			}
			break
		}
		a.put(i, to)
	case 0: // two ops change places
		if j := int32(a.rng.IntN(len(a.device))); a.device[j] != a.device[i] && len(a.set[i]) == 1 && len(a.set[j]) == 1 {
			from := a.device[i]
			a.put(i, a.device[j])
			a.put(j, from)
		}
	case 1, 2: // with what feeds it alone
		a.put(i, to)
		for k := 0; k < len(a.moved) && len(a.moved) < 16; k++ {
			for _, u := range a.feeds[a.moved[k]] {
				a.put(u, to)
			}
		}
	default:
		a.put(i, to)
	}
	if len(a.moved) == 0 {
		return
	}
	s := a.clock.Seconds(ctx, a.device)
	if s <= a.now || a.rng.Float64() < math.Exp((a.now-s)/t) {
		if a.now = s; s < a.seconds {
			a.seconds = s
			copy(a.best, a.device)
		}
		return
	}
	for k := len(a.moved) - 1; k >= 0; k-- {
		a.device[a.moved[k]] = a.was[k]
	}
}

// put moves op i, with its group.
func (a *annealer) put(i int32, to uint8) {
	for _, j := range a.set[i] {
		if a.device[j] != to {
			a.moved, a.was = append(a.moved, j), append(a.was, a.device[j])
			a.device[j] = to
		}
	}
}
