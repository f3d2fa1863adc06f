package anneal

import (
	"math"
	"math/rand/v2"

	"placer/plan"
)

// adviser chooses the moves of a replica, by a guide or by chance. Letters: U decisions,
// D devices, F move features, M moves drawn.
type adviser struct {
	w     *replica
	guide Guide        // nil: the first move drawn is made
	learn func(Judged) // nil: nobody learns
	size  int          // M

	perByte  float64 // seconds on a link
	timeline timeline
	age      int // moves judged since the timeline was made

	was    []uint8   // [U] devices before the move that is looked at
	before []float64 // [D] work of each device then
	stamp  []int32   // [U] the last move that had each decision
	round  int32     // the move that is looked at

	moves    []candidate
	changes  []change // of all moves, in order
	x, score []float32
	chosen   int
	rejected map[uint64]struct{} // moves from where the replica is that were judged and not taken
}

// candidate is a move that may be made.
type candidate struct {
	kind   int
	lo, hi int    // in changes
	hash   uint64 // of what it changes to
}

// change is a decision that moves.
type change struct {
	u        int32
	old, now uint8
}

// How many moves may be judged before the timeline is made anew, and how many rejected
// ones are remembered.
const (
	oldTimeline  = 256
	mostRejected = 256
)

func newAdviser(w *replica, p *plan.Problem, g Guide, learn func(Judged), size int) *adviser {
	n := len(w.now)
	return &adviser{
		w: w, guide: g, learn: learn, size: size, perByte: perByte(p), timeline: newTimeline(p.Kernels(), n, w.devices),
		was: make([]uint8, n), before: make([]float64, w.devices), stamp: make([]int32, n),
		x: make([]float32, size*NumMoveFeatures), score: make([]float32, size), rejected: map[uint64]struct{}{},
	}
}

// perByte returns what a byte takes between two devices, in seconds.
func perByte(p *plan.Problem) float64 {
	if p.Machine.NumDevices() < 2 {
		return 0
	}
	const many = 1 << 30
	return float64(p.Machine.TransferSeconds(0, 1, many)-p.Machine.TransferSeconds(0, 1, 0)) / many
}

// choose draws moves and plans one of them. It returns its kind; where there is none
// that changes anything w.undo is empty.
func (a *adviser) choose(temperature float64, run int) int {
	w := a.w
	if !a.timeline.known || a.age >= oldTimeline {
		a.timeline.update(w)
		a.age = 0
	}
	copy(a.was, w.now)
	a.moves, a.changes = a.moves[:0], a.changes[:0]
	n := a.size
	if a.guide != nil && w.rng.Float64() < byChance {
		n = 1
	}
	for tries := 0; len(a.moves) < n && tries < 2*n; tries++ {
		w.undo = w.undo[:0]
		a.consider(w.draw(run), temperature, run)
		w.forget()
	}
	w.undo = w.undo[:0]
	if len(a.moves) == 0 {
		return moveRun
	}
	a.chosen = a.pick()
	c := &a.moves[a.chosen]
	for _, x := range a.changes[c.lo:c.hi] {
		w.set(x.u, x.now)
	}
	return c.kind
}

// consider notes the move that w plans, unless it changes nothing or was rejected here.
func (a *adviser) consider(kind int, temperature float64, run int) {
	c := candidate{kind: kind, lo: len(a.changes)}
	a.round++
	for _, x := range a.w.undo {
		now := a.w.now[x.u]
		if a.stamp[x.u] == a.round || now == a.was[x.u] {
			continue
		}
		a.stamp[x.u] = a.round
		a.changes = append(a.changes, change{x.u, a.was[x.u], now})
		h := (uint64(x.u)<<8 | uint64(now)) * 0x9e3779b97f4a7c15
		c.hash += h ^ h>>29
	}
	c.hi = len(a.changes)
	if _, known := a.rejected[c.hash]; known || c.hi == c.lo {
		a.changes = a.changes[:c.lo]
		return
	}
	a.describe(&c, temperature, run, a.x[len(a.moves)*NumMoveFeatures:][:NumMoveFeatures])
	a.moves = append(a.moves, c)
}

// pick draws the move to make; where there is one alone it is that.
func (a *adviser) pick() int {
	if len(a.moves) == 1 {
		return 0
	}
	score := a.score[:len(a.moves)]
	a.guide.Rank(a.x[:len(score)*NumMoveFeatures], score)
	return drawSoftmax(score, a.w.rng)
}

// drawSoftmax draws from the softmax of scores over noise: the largest of the scores with
// noise of Gumbel's distribution.
func drawSoftmax(score []float32, rng *rand.Rand) (at int) {
	best := math.Inf(-1)
	for k, s := range score {
		if y := float64(s) - noise*math.Log(-math.Log(1-rng.Float64())); y > best {
			best, at = y, k
		}
	}
	return at
}

// judged takes note of what the move made has come to.
func (a *adviser) judged(taken bool, before, after float64) {
	a.age++
	if a.learn != nil {
		a.learn(Judged{a.x[a.chosen*NumMoveFeatures:][:NumMoveFeatures], max(0, (before-after)/before)})
	}
	if taken || len(a.rejected) >= mostRejected {
		clear(a.rejected)
	}
	if !taken {
		a.rejected[a.moves[a.chosen].hash] = struct{}{}
	}
}

// moved says that the replica is elsewhere.
func (a *adviser) moved() { clear(a.rejected) }
