package transfer

import (
	"math"
	"math/rand/v2"

	"placer/nn/vec"
)

// episodes are samples of one scene, made side by side, with what learning needs
// of them. Decision t of sample k is row t*K+k.
type episodes struct {
	scene  *Scene
	k      int
	of     []int32   // [T*K] unit decided
	y      []float32 // [T*K*D, F]
	ok     []bool    // [T*K*D] allowed
	chosen []int32   // [T*K] device
	logp   []float32 // [T*K] at temperature 1
	states []*state
}

// chooser picks the device of a decision: k is the sample, scores and ok are [D].
type chooser func(k int, u int32, scores []float32, ok []bool) int32

// roll places s once per guide, in samples side by side, after a number of drafts:
// each but the first pass knows the one before. With keep, it keeps what learning
// needs of the last pass. It reuses e.
func (e *episodes) roll(s *Scene, f *pass, guides []Guide, drafts int, keep bool, choose chooser) {
	k := len(guides)
	if e.scene != s || len(e.states) < k {
		e.scene, e.states = s, nil
		for range k {
			e.states = append(e.states, newState(s))
		}
	}
	e.k = k
	for i, x := range e.states[:k] {
		x.reset(guides[i])
	}
	for range drafts {
		e.pass(s, f, false, choose)
		for _, x := range e.states[:k] {
			x.keep()
			x.revise()
		}
	}
	e.pass(s, f, keep, choose)
	for _, x := range e.states[:k] {
		x.keep()
	}
}

// pass decides every unit in every sample.
func (e *episodes) pass(s *Scene, f *pass, keep bool, choose chooser) {
	d, k := s.d, e.k
	width := d * numDynamic
	rows := k
	if keep {
		rows = s.turns * k
	}
	if cap(e.of) < rows || cap(e.ok) < rows*d || cap(e.y) < rows*width {
		e.of, e.y, e.ok = make([]int32, rows), make([]float32, rows*width), make([]bool, rows*d)
		e.chosen, e.logp = make([]int32, rows), make([]float32, rows)
	}
	e.of, e.y, e.ok, e.chosen, e.logp = e.of[:rows], e.y[:rows*width], e.ok[:rows*d], e.chosen[:rows], e.logp[:rows]
	t := 0
	for _, st := range s.steps {
		if st.unit == none {
			for _, x := range e.states[:k] {
				x.run(st.node)
			}
			continue
		}
		lo := 0
		if keep {
			lo = t * k
		}
		for i, x := range e.states[:k] {
			r := lo + i
			e.of[r] = st.unit
			x.allowed(st.unit, e.ok[r*d:(r+1)*d])
			x.columns(st.unit, st.node, e.ok[r*d:(r+1)*d], e.y[r*width:(r+1)*width])
		}
		scores := f.forward(e.of[lo:lo+k], e.y[lo*width:(lo+k)*width], d)
		for i, x := range e.states[:k] {
			r := lo + i
			e.chosen[r] = choose(i, st.unit, scores[i*d:(i+1)*d], e.ok[r*d:(r+1)*d])
			e.logp[r] = logSoftmaxAt(scores[i*d:(i+1)*d], e.ok[r*d:(r+1)*d], e.chosen[r])
			x.decide(st.unit, e.chosen[r])
		}
		t++
	}
}

// placement writes the device of every op, [N], in the last draft of sample k.
func (e *episodes) placement(k int, device []uint8) {
	x := e.states[k]
	for i, u := range e.scene.part.Of {
		device[i] = uint8(x.device[u])
	}
}

// softmax writes the probabilities of the allowed devices at scores.
func softmax(scores []float32, ok []bool, to []float32) {
	top := float32(math.Inf(-1))
	for d, s := range scores {
		if ok[d] {
			top = max(top, s)
		}
	}
	for d, s := range scores {
		to[d] = 0
		if ok[d] {
			to[d] = float32(math.Exp(float64(s - top)))
		}
	}
	vec.Scale(to, 1/vec.Sum(to))
}

func logSoftmaxAt(scores []float32, ok []bool, at int32) float32 {
	top := float32(math.Inf(-1))
	for d, s := range scores {
		if ok[d] {
			top = max(top, s)
		}
	}
	sum := 0.0
	for d, s := range scores {
		if ok[d] {
			sum += math.Exp(float64(s - top))
		}
	}
	return scores[at] - top - float32(math.Log(sum))
}

// sampler chooses by the probabilities at temperature[k]; at 0 it takes the best.
func sampler(temperature []float32, random *rand.Rand, devices int) chooser {
	p := make([]float32, devices)
	z := make([]float32, devices)
	return func(k int, _ int32, scores []float32, ok []bool) int32 {
		if temperature[k] == 0 {
			best := int32(none)
			for d := range scores {
				if ok[d] && (best == none || scores[d] > scores[best]) {
					best = int32(d)
				}
			}
			return best
		}
		for d := range scores {
			z[d] = scores[d] / temperature[k]
		}
		softmax(z, ok, p)
		x := random.Float32()
		last := int32(none)
		for d, q := range p {
			if !ok[d] {
				continue
			}
			last = int32(d)
			if x -= q; x < 0 {
				return last
			}
		}
		return last
	}
}
