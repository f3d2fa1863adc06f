package anneal

import (
	"math"
	"math/rand/v2"

	"placer/plan"
	"placer/units"
)

// replica is one annealing run.
type replica struct {
	*neighbourhood
	objective *objective
	rng       *rand.Rand
	ahead     *lookahead // of rng's source
	devices   int
	now       []uint8 // [decisions]
	cost      float64
	score     plan.Score
	best      []uint8 // [decisions] the best seen in this stage
	bestAt    plan.Score
	bestCost  float64
	fresh     bool      // best has changed since it was last looked at
	busy      []float64 // [D] seconds of the decisions on each device
	// undo lists the changes of the move under way.
	undo    []changed
	stale   int  // evaluations since the last new best or restart
	settled bool // it never starts over
	moves   kinds
	// recreation makes decisions anew; nil where no move does.
	recreation *recreation
	adviser    *adviser    // chooses moves; nil: chance alone does
	screen     *screen     // looks at them before they are evaluated; nil: none does
	allowance  *allowance  // nil: everything is allowed
	used       units.Bytes // of it
	spent      int         // evaluations so far
	accounted  int         // of those, the ones its run knows of
}

// changed is a decision that the move under way has changed.
type changed struct {
	u   int32
	old uint8
}

func newReplica(t *neighbourhood, a *objective, devices int, source *rand.PCG) *replica {
	n := len(t.seconds)
	return &replica{neighbourhood: t, objective: a, rng: rand.New(source), ahead: newLookahead(source), devices: devices, now: make([]uint8, n), best: make([]uint8, n), busy: make([]float64, devices), undo: make([]changed, 0, 4*n)}
}

// start puts the replica at decisions from and evaluates them. Its objective may hold any.
func (w *replica) start(from []uint8) {
	for u, d := range w.now {
		w.busy[d] += w.seconds[u]
	}
	for u, d := range from {
		if w.now[u] != d {
			w.book(int32(u), d)
		}
		w.objective.set(int32(u), d)
	}
	if w.allowance != nil {
		w.used = w.allowance.spend(w.now)
	}
	w.afford()
	w.evaluate()
	copy(w.best, w.now)
	w.bestAt, w.bestCost, w.fresh = w.score, w.cost, true
	n := moveRecreate
	if w.recreation != nil {
		n++
	}
	w.moves.reset(n)
}

// visit moves the replica to decisions x and evaluates them.
func (w *replica) visit(x []uint8) {
	for u, d := range x {
		if w.now[u] != d {
			w.put(int32(u), d)
		}
	}
	w.evaluate()
}

// evaluate evaluates where the replica is.
func (w *replica) evaluate() {
	w.score, w.cost = w.objective.evaluate(math.Inf(1))
	w.spent++
	if w.screen != nil {
		w.screen.moved(w.now)
	}
	if w.adviser != nil {
		w.adviser.moved()
	}
}

// set plans to move decision u to device d: the objective does not know yet.
func (w *replica) set(u int32, d uint8) {
	old := w.now[u]
	if old == d {
		return
	}
	w.undo = append(w.undo, changed{u, old})
	w.book(u, d)
}

// put moves decision u to device d.
func (w *replica) put(u int32, d uint8) {
	w.book(u, d)
	w.objective.set(u, d)
}

// book notes that decision u is for device d.
func (w *replica) book(u int32, d uint8) {
	w.busy[w.now[u]] -= w.seconds[u]
	w.busy[d] += w.seconds[u]
	if w.allowance != nil {
		if cost := w.allowance.cost[u]; cost != nil {
			w.used += cost[d] - cost[w.now[u]]
		}
	}
	w.now[u] = d
}

// step proposes one move at temperature (a fraction of the cost) and run length
// and takes it or not. It reports whether it found a new best.
func (w *replica) step(temperature float64, run int) bool {
	w.undo = w.undo[:0]
	if w.stale > patience*len(w.now) && !w.settled {
		return w.restart()
	}
	kind := w.next(temperature, run)
	if len(w.undo) == 0 {
		w.moves.tell(kind, 0)
		return false
	}
	if w.screen != nil && !w.screen.passes(w.undo, w.now, temperature) {
		w.forget()
		w.moves.tell(kind, 0)
		return false
	}
	for _, c := range w.undo {
		w.objective.set(c.u, w.now[c.u])
	}
	score, cost := w.objective.evaluate(w.ahead.accepted(w.cost, temperature))
	w.spent++
	w.stale++
	if cost > w.cost && w.rng.Float64() >= math.Exp((w.cost-cost)/(temperature*w.cost)) {
		for k := len(w.undo) - 1; k >= 0; k-- {
			w.put(w.undo[k].u, w.undo[k].old)
		}
		if w.screen != nil {
			w.screen.refused(w.undo)
		}
		w.tellAdviser(false, cost)
		w.moves.tell(kind, 0)
		return false
	}
	if w.screen != nil {
		w.screen.taken()
	}
	w.tellAdviser(true, cost)
	gain := w.cost - cost
	w.score, w.cost = score, cost
	if gain > 0 {
		w.moves.tell(kind, 1)
	} else {
		w.moves.tell(kind, 0)
	}
	if score.Better(w.bestAt) {
		w.bestAt, w.bestCost, w.fresh, w.stale = score, cost, true, 0
		copy(w.best, w.now)
		return true
	}
	return false
}

// forget takes back the move planned.
func (w *replica) forget() {
	for k := len(w.undo) - 1; k >= 0; k-- {
		w.book(w.undo[k].u, w.undo[k].old)
	}
}

// next plans a move and returns its kind.
func (w *replica) next(temperature float64, run int) int {
	if w.adviser != nil {
		return w.adviser.choose(temperature, run)
	}
	return w.draw(run)
}

// draw plans a random move and returns its kind, the first one's where it is several
// together.
func (w *replica) draw(run int) int {
	kind := w.propose(run)
	for w.rng.IntN(4) == 0 { // sometimes only two moves together help
		w.propose(run)
	}
	w.comply()
	return kind
}

// tellAdviser tells the adviser what the move under way has come to.
func (w *replica) tellAdviser(taken bool, cost float64) {
	if w.adviser != nil {
		w.adviser.judged(taken, w.cost, cost)
	}
}

// patience is how many evaluations for each decision may pass without a new best
// before a replica starts over, unless it is settled. Only small problems get there.
const patience = 20

// restart moves the replica to random decisions. It reports whether they are a new
// best.
func (w *replica) restart() bool {
	for u := range w.now {
		w.put(int32(u), uint8(w.rng.IntN(w.devices)))
	}
	w.afford()
	w.evaluate()
	w.stale = 0
	if w.adviser != nil {
		w.adviser.moved()
	}
	if !w.score.Better(w.bestAt) {
		return false
	}
	w.bestAt, w.bestCost, w.fresh = w.score, w.cost, true
	copy(w.best, w.now)
	return true
}
