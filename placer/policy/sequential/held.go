package sequential

import "placer/nn/vec"

// keyRows are the keys of what devices hold, row by row, [rows,A]; nil without encoder.
type keyRows []float32

// rows returns rows lo to hi.
func (k keyRows) rows(lo, hi int) []float32 {
	if k == nil {
		return nil
	}
	return k[lo*affinityWidth : hi*affinityWidth]
}

// heldKeys are the keys of the units that each device holds in each of K rollouts,
// summed by their share of a device's mean load.
type heldKeys struct {
	pass *pass
	keys keyRows // [K*D,A]; nil without encoder, or where nobody asks for them
}

// reset empties all devices of k rollouts; they have no keys where none are asked for.
func (h *heldKeys) reset(f *pass, k int, asked bool) {
	h.pass = f
	if f.n.encoder == nil || !asked {
		h.keys = nil
		return
	}
	h.keys = resized(h.keys, k*f.s.d*affinityWidth)
	clear(h.keys)
}

// move puts unit u of rollout k on a device, away from the one that it was on, or none.
func (h *heldKeys) move(k int, u, from, to int32) {
	if h.keys == nil || from == to {
		return
	}
	s, key := h.pass.s, h.pass.key(u)
	weight := float32(s.own[u] / s.mean)
	vec.Axpy(keysOf(h.keys, k*s.d+int(to)), key, weight)
	if from != none {
		vec.Axpy(keysOf(h.keys, k*s.d+int(from)), key, -weight)
	}
}

// recordedKeys returns the keys that devices held at each recorded decision,
// [T*K*D,A], under the present weights.
func (e *rollouts) recordedKeys() keyRows {
	if e.pass.n.encoder == nil {
		return nil
	}
	var held heldKeys
	held.reset(e.pass, e.k, true)
	for k, x := range e.states[:e.k] {
		for u := range x.previous {
			if x.refining {
				held.move(k, int32(u), none, x.previous[u])
			}
		}
	}
	width := e.d * affinityWidth
	all := make(keyRows, len(e.of)*width)
	for r, u := range e.of {
		k := r % e.k
		copy(all[r*width:(r+1)*width], held.keys[k*width:(k+1)*width])
		held.move(k, u, e.states[k].before(u), e.chosen[r])
	}
	return all
}

// keysBackward adds to the embeddings' gradient what flows into the keys of units by
// way of the keys that devices held, given the gradient of these, [T*K*D,A]. A unit
// is on its device from its decision on, and before it, while a placement is refined,
// on that of the placement before.
func (e *rollouts) keysBackward(gradient keyRows) {
	width := e.d * affinityWidth
	later := make([]float32, e.k*width) // of the decisions after the present one
	total := make([]float32, e.k*width)
	for r := range e.of {
		k := r % e.k
		vec.Add(total[k*width:(k+1)*width], total[k*width:(k+1)*width], gradient[r*width:(r+1)*width])
	}
	for r := len(e.of) - 1; r >= 0; r-- {
		k, u, to := r%e.k, e.of[r], e.chosen[r]
		weight := float32(e.own[u] / e.mean)
		d := e.pass.dEmbedding.Row(int(u))[affinityWidth : 2*affinityWidth]
		after := later[k*width : (k+1)*width]
		vec.Axpy(d, keysOf(after, int(to)), weight)
		if from := e.states[k].before(u); from != none {
			vec.Axpy(d, keysOf(total[k*width:(k+1)*width], int(from)), weight)
			vec.Axpy(d, keysOf(after, int(from)), -weight)
		}
		vec.Add(after, after, gradient[r*width:(r+1)*width])
	}
}
