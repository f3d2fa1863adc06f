package sequential

import "slices"

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
	held   heldKeys // of an encoder
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

// roll places the instance once per prior, side by side, and refines each placement a
// number of times, in knowledge of it. With record, it keeps what learning needs of the
// last pass.
func (e *rollouts) roll(priors []heuristic, refinements int, record bool, choose chooser) {
	e.k = len(priors)
	for len(e.states) < e.k {
		e.states = append(e.states, newState(e.instance))
	}
	states := e.states[:e.k]
	for i, x := range states {
		x.reset(priors[i])
	}
	e.held.reset(e.pass, e.k)
	for left := refinements; ; left-- {
		e.decideAll(record && left == 0, choose)
		for _, x := range states {
			x.keep()
		}
		if left == 0 {
			return
		}
		for _, x := range states {
			x.refine()
		}
	}
}

// decideAll decides every unit in every rollout.
func (e *rollouts) decideAll(record bool, choose chooser) {
	k, rows := e.k, e.k
	if record {
		rows *= e.decisions
	}
	e.reserve(rows)
	lo := 0
	for _, st := range e.steps {
		if st.unit == none {
			for _, x := range e.states[:k] {
				x.run(st.node)
			}
			continue
		}
		for i, x := range e.states[:k] {
			r := lo + i
			e.of[r] = st.unit
			x.allowed(st.unit, e.okOf(r))
			x.observe(st.unit, st.node, e.okOf(r), e.featuresOf(r, r+1))
		}
		if e.pass.n.unguided {
			unguide(e.featuresOf(lo, lo+k))
		}
		scores := e.pass.forward(e.of[lo:lo+k], e.featuresOf(lo, lo+k), e.held.keys, e.d)
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
