package sequential

import (
	"context"
	"slices"
)

// rollouts are placements of one instance, made side by side, with what learning
// needs of them. Decision t of rollout k is row t*K+k.
type rollouts struct {
	*instance
	pass   *pass
	k      int
	of     []int32   // [T*K] unit decided
	y      []float32 // [T*K*D, F] device features
	ok     []bool    // [T*K*D] allowed
	chosen []int32   // [T*K] device
	logp   []float32 // [T*K] at temperature 1; of recorded ones
	states []*state
	held   heldKeys  // of an encoder
	scores []float32 // [K*D] scratch of priorScores

	withFeatures bool // the chooser reads y beside the scores
	priorsOnly   bool // no prior has learning beside it and nobody reads y: the network is not asked
	recording    bool // the present pass is kept for learning
	encoded      bool // pass has the units, under the network's present weights

	// stopped says that no more is wanted: roll and each then end before they are done.
	// What is recorded is then not to be used; the passes that were made are. It is nil where
	// nothing stops them.
	stopped func() bool
}

// on prepares e for s under the network's present weights.
func (e *rollouts) on(s *instance) {
	if e.instance != s {
		e.instance, e.states = s, nil
	}
	e.encoded = false
}

// newRollouts returns rollouts of s under n.
func newRollouts(n *network, s *instance) *rollouts {
	e := &rollouts{pass: &pass{n: n}}
	e.on(s)
	return e
}

// until has e stop when ctx ends.
func (e *rollouts) until(ctx context.Context) *rollouts {
	e.stopped = func() bool { return ctx.Err() != nil }
	return e
}

// rolling says how rollouts are made.
type rolling struct {
	choose      chooser
	refinements int  // passes after the first, each in knowledge of the placement before
	record      bool // keep what learning needs of the last pass
	// untilUnchanged ends where a pass changes nothing any more: by a chooser that takes
	// the best the next would be the same.
	untilUnchanged bool
}

// roll places the instance once per prior, side by side, and refines each placement. It
// returns where each got, and nothing where it was stopped in the first pass.
func (e *rollouts) roll(priors []heuristic, how rolling) []*state {
	e.begin(priors, how.record)
	var made []*state
	for left := how.refinements; ; left-- {
		e.recording = how.record && left == 0
		e.decideAll(how.choose)
		if e.done() {
			return made
		}
		made = e.states[:e.k]
		final := how.untilUnchanged
		for _, x := range made {
			x.keep()
			final = final && x.unchanged()
		}
		if left == 0 || final {
			return made
		}
		for _, x := range made {
			x.refine()
		}
	}
}

// greedy places the instance once per prior, side by side, by the best device of each
// decision, in passes passes, fewer where one changes nothing any more. It returns where
// each got, and nothing where it was stopped in the first.
func (e *rollouts) greedy(priors []heuristic) []*state {
	return e.roll(priors, rolling{choose: sampler(make([]float32, len(priors)), nil, e.d), refinements: passes - 1, untilUnchanged: true})
}

// begin resets a state for each prior, and encodes the units if the network is asked, or what
// is made recorded.
func (e *rollouts) begin(priors []heuristic, record bool) {
	e.k, e.priorsOnly = len(priors), !e.withFeatures
	for len(e.states) < e.k {
		e.states = append(e.states, newState(e.instance))
	}
	for i, x := range e.states[:e.k] {
		x.reset(priors[i])
		e.priorsOnly = e.priorsOnly && priors[i].learned == 0
	}
	asked := !e.priorsOnly || record
	if asked && !e.encoded {
		e.pass.encode(e.instance)
		e.encoded = true
	}
	e.held.reset(e.pass, e.k, asked)
}

// decideAll goes through the steps of the instance in every rollout.
func (e *rollouts) decideAll(choose chooser) {
	rows := e.k
	if e.recording {
		rows *= e.decisions
	}
	e.reserve(rows)
	for _, x := range e.states[:e.k] {
		x.ungrouped = e.byPriors() && x.prior.rule == listRule
	}
	lo := 0
	for _, st := range e.steps {
		if st.unit == none {
			for _, x := range e.states[:e.k] {
				x.run(st.node)
			}
			continue
		}
		if e.done() {
			return
		}
		e.decide(st, lo, choose)
		if e.recording {
			lo += e.k
		}
	}
}

// byPriors reports whether decisions are the priors' alone: nothing is read of a unit
// but what its prior needs.
func (e *rollouts) byPriors() bool { return e.priorsOnly && !e.recording }

func (e *rollouts) done() bool { return e.stopped != nil && e.stopped() }

// decide decides the unit of st in every rollout, in rows lo on.
func (e *rollouts) decide(st step, lo int, choose chooser) {
	for i, x := range e.states[:e.k] {
		e.of[lo+i] = st.unit
		x.allowed(st.unit, e.okOf(lo+i))
	}
	var scores []float32 // [K*D]
	if e.byPriors() {
		scores = e.priorScores(st, lo)
	} else {
		scores = e.networkScores(st, lo)
	}
	for i, x := range e.states[:e.k] {
		r, scores, ok := lo+i, scores[i*e.d:(i+1)*e.d], e.okOf(lo+i)
		e.chosen[r] = choose(i, st.unit, scores, ok)
		if e.recording {
			e.logp[r] = logSoftmaxAt(scores, ok, e.chosen[r])
		}
		e.held.move(i, st.unit, x.before(st.unit), e.chosen[r])
		x.decide(st.unit, e.chosen[r])
	}
}

// networkScores writes the device features of the unit of st, in rows lo on, and returns
// the network's scores, [K*D].
func (e *rollouts) networkScores(st step, lo int) []float32 {
	for i, x := range e.states[:e.k] {
		x.survey(st.unit, st.node, e.okOf(lo+i))
		x.write(e.featuresOf(lo+i, lo+i+1))
	}
	y := e.featuresOf(lo, lo+e.k)
	if e.pass.n.unguided {
		unguide(y)
	}
	return e.pass.forward(e.of[lo:lo+e.k], y, e.held.keys, e.d)
}

// priorScores returns what the network's scores would be for the unit of st, [K*D], had it
// learned nothing: those of the priors' choices.
func (e *rollouts) priorScores(st step, lo int) []float32 {
	e.scores = resized(e.scores, e.k*e.d)
	clear(e.scores)
	if e.pass.n.unguided {
		return e.scores
	}
	for i, x := range e.states[:e.k] {
		d := x.follow(st.unit, st.node, e.okOf(lo+i))
		e.scores[i*e.d+int(d)] = priorWeight
	}
	return e.scores
}

// reserve makes room for a number of rows.
func (e *rollouts) reserve(rows int) {
	e.of, e.chosen, e.logp = resized(e.of, rows), resized(e.chosen, rows), resized(e.logp, rows)
	e.ok, e.y = resized(e.ok, rows*e.d), resized(e.y, rows*e.d*numDeviceFeatures)
}

// resized returns x with n elements, which are undefined.
func resized[T any](x []T, n int) []T { return slices.Grow(x[:0], n)[:n] }

// okOf returns which devices decision row r allows, [D].
func (e *rollouts) okOf(r int) []bool { return e.ok[r*e.d : (r+1)*e.d] }

// featuresOf returns the device features of decision rows lo to hi, [(hi-lo)*D,F].
func (e *rollouts) featuresOf(lo, hi int) []float32 {
	width := e.d * numDeviceFeatures
	return e.y[lo*width : hi*width]
}
