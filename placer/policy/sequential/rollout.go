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
	y      []float32 // [T*K*D, F]
	ok     []bool    // [T*K*D] allowed
	chosen []int32   // [T*K] device
	logp   []float32 // [T*K] at temperature 1; of recorded ones
	states []*state
	held   heldKeys  // of an encoder
	read   bool      // the chooser reads features beside the scores
	muted  bool      // no prior has learning beside it, so the network is not asked
	scores []float32 // [K*D] scratch of those that are muted
	// stopped says that no more is wanted: roll, greedy and each then end before they are done.
	// What is recorded is then not to be used; the passes that were made are. It is nil where
	// nothing stops them.
	stopped func() bool
}

// on prepares e for s under the network's present weights.
func (e *rollouts) on(s *instance) {
	if e.instance != s {
		e.instance, e.states = s, nil
	}
	e.pass.encode(s)
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

// roll places the instance once per prior, side by side, and refines each placement a
// number of times, in knowledge of it. With record, it keeps what learning needs of the
// last pass. It returns where each got, and nothing where it was stopped in the first pass.
func (e *rollouts) roll(priors []heuristic, refinements int, record bool, choose chooser) []*state {
	var made []*state
	for left := e.begin(priors, refinements); ; left-- {
		e.decideAll(record && left == 0, choose)
		if e.done() {
			return made
		}
		made = e.states[:e.k]
		for _, x := range made {
			x.keep()
		}
		if left == 0 {
			return made
		}
		for _, x := range made {
			x.refine()
		}
	}
}

// greedy places the instance once per prior, side by side, by the best device of each
// decision, in passes passes, fewer where one changes nothing any more: the next would
// be the same. It returns where each got, and nothing where it was stopped in the first.
func (e *rollouts) greedy(priors []heuristic) []*state {
	choose := sampler(make([]float32, len(priors)), nil, e.d)
	var made []*state
	for left := e.begin(priors, passes-1); ; left-- {
		e.decideAll(false, choose)
		if e.done() {
			return made
		}
		settled := true
		made = e.states[:e.k]
		for _, x := range made {
			x.keep()
			settled = settled && x.settled()
		}
		if left == 0 || settled {
			return made
		}
		for _, x := range made {
			x.refine()
		}
	}
}

// begin resets a state for each prior, and returns the number of refinements to come.
func (e *rollouts) begin(priors []heuristic, refinements int) int {
	e.k, e.muted = len(priors), !e.read
	for len(e.states) < e.k {
		e.states = append(e.states, newState(e.instance))
	}
	for i, x := range e.states[:e.k] {
		x.reset(priors[i])
		e.muted = e.muted && priors[i].learned == 0
	}
	e.held.reset(e.pass, e.k)
	return refinements
}

// decideAll decides every unit in every rollout.
func (e *rollouts) decideAll(record bool, choose chooser) {
	k, rows := e.k, e.k
	if record {
		rows *= e.decisions
	}
	e.reserve(rows)
	for _, x := range e.states[:k] {
		x.bare = e.muted && !record && x.prior.rule == listRule
	}
	lo := 0
	for _, st := range e.steps {
		if st.unit == none {
			for _, x := range e.states[:k] {
				x.run(st.node)
			}
			continue
		}
		if e.done() {
			return
		}
		for i, x := range e.states[:k] {
			r := lo + i
			e.of[r] = st.unit
			x.allowed(st.unit, e.okOf(r))
			if e.muted && !record {
				x.facts.prior = x.follow(st.unit, st.node, e.okOf(r))
				continue
			}
			x.survey(st.unit, st.node, e.okOf(r))
			x.write(e.featuresOf(r, r+1))
		}
		scores := e.scored(lo, record)
		for i, x := range e.states[:k] {
			r, scores, ok := lo+i, scores[i*e.d:(i+1)*e.d], e.okOf(lo+i)
			e.chosen[r] = choose(i, st.unit, scores, ok)
			if record {
				e.logp[r] = logSoftmaxAt(scores, ok, e.chosen[r])
			}
			e.held.move(i, st.unit, x.before(st.unit), e.chosen[r])
			x.decide(st.unit, e.chosen[r])
		}
		if record {
			lo += k
		}
	}
}

func (e *rollouts) done() bool { return e.stopped != nil && e.stopped() }

// scored returns the scores, [K*D], of the decisions in rows lo on. Without learning they
// are those of the priors alone, and what devices offer counts only where it is recorded.
func (e *rollouts) scored(lo int, record bool) []float32 {
	unguided := e.pass.n.unguided
	if e.muted && !record {
		e.scores = resized(e.scores, e.k*e.d)
		clear(e.scores)
		for i, x := range e.states[:e.k] {
			if !unguided {
				e.scores[i*e.d+int(x.facts.prior)] = priorWeight
			}
		}
		return e.scores
	}
	y := e.featuresOf(lo, lo+e.k)
	if unguided {
		unguide(y)
	}
	return e.pass.forward(e.of[lo:lo+e.k], y, e.held.keys, e.d)
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
