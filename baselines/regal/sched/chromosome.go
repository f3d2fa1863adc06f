package sched

import (
	"fmt"
	"math/bits"
)

// Cost decodes a chromosome of Keys numbers in [0,1] and returns the cost of its
// schedule (A.5): op i runs on the device of its largest affinity, keys
// [i*D,(i+1)*D), the first of equals; ops and transfers are sorted topologically,
// of those that are ready the one with the largest priority first. Priorities are
// compared to 24 bits; equal ones go by item.
func (e *Evaluator) Cost(keys []float32) float64 {
	return e.objective.Cost(e.p.machine, e.Decode(keys))
}

// Decode is Cost before the objective. Device and Sequence are then the decoded
// schedule.
func (e *Evaluator) Decode(keys []float32) Score {
	p := e.p
	if len(keys) != p.Keys() {
		panic(fmt.Sprintf("sched: chromosome of %d keys, want %d", len(keys), p.Keys()))
	}
	n, d := p.N(), p.D()
	if d == 2 {
		for i := range e.device {
			e.device[i] = 0
			if keys[2*i+1] > keys[2*i] {
				e.device[i] = 1
			}
		}
	} else {
		for i := range e.device {
			e.device[i] = argMax(keys[i*d : i*d+d])
		}
	}
	if e.pin >= 0 {
		e.device[e.pin] = 0
	}
	e.findNeeded()
	e.sortByPriority(keys[n*d:])
	e.topologicalSort()
	return e.score()
}

func argMax(x []float32) uint8 {
	best := 0
	for i := range x {
		if x[i] > x[best] {
			best = i
		}
	}
	return uint8(best)
}

// sortByPriority ranks the needed items by falling priority: a radix sort of
// three bytes.
func (e *Evaluator) sortByPriority(priority []float32) {
	const one = 1 << 24
	m := len(e.needed)
	a, b := e.keys[:m], e.spare[:m]
	var count [3][256]int32
	for k, x := range e.needed {
		v := uint64(one - 1 - min(uint32(priority[x]*one), one-1))
		count[0][v&255]++
		count[1][v>>8&255]++
		count[2][v>>16]++
		a[k] = v<<32 | uint64(x)
	}
	for pass := range 3 {
		c := &count[pass]
		sum := int32(0)
		for k := range c {
			c[k], sum = sum, sum+c[k]
		}
		shift := 32 + 8*pass
		for _, v := range a {
			k := &c[v>>shift&255]
			b[*k] = v
			*k++
		}
		a, b = b, a
	}
	for r, v := range a {
		x := int32(uint32(v))
		e.byRank[r] = x
		e.rank[x] = int32(r)
	}
}

// topologicalSort writes the needed items into sequence, of the ready ones the
// lowest rank first. A tensor reaches the consumers on its device with its
// producer, those elsewhere with its transfer.
func (e *Evaluator) topologicalSort() {
	p, n, d := e.p, int32(e.p.N()), int32(e.p.D())
	ready := e.ready[:len(e.needed)/64+1]
	clear(ready)
	copy(e.waits, e.waits0)
	sequence := e.sequence[:0]
	low := len(ready) // no bit below this word
	push := func(x int32) {
		r := e.rank[x]
		w := int(r >> 6)
		ready[w] |= 1 << (r & 63)
		low = min(low, w)
	}
	for i, w := range e.waits {
		if w == 0 {
			push(int32(i))
		}
	}
	for {
		for low < len(ready) && ready[low] == 0 {
			low++
		}
		if low == len(ready) {
			break
		}
		x := e.byRank[low<<6+bits.TrailingZeros64(ready[low])]
		ready[low] &= ready[low] - 1
		sequence = append(sequence, x)
		if x >= n {
			m := e.moves[x-n]
			for _, v := range p.use[p.useAt[m.tensor]:p.useAt[m.tensor+1]] {
				if e.device[v] == m.to {
					if e.waits[v]--; e.waits[v] == 0 {
						push(v)
					}
				}
			}
			continue
		}
		at := e.device[x]
		for t := p.outAt[x]; t < p.outAt[x+1]; t++ {
			for _, v := range p.use[p.useAt[t]:p.useAt[t+1]] {
				if e.device[v] == at {
					if e.waits[v]--; e.waits[v] == 0 {
						push(v)
					}
				}
			}
			for to := e.abroad[t]; to != 0; to &= to - 1 {
				push(n + t*d + int32(bits.TrailingZeros64(to)))
			}
		}
	}
	e.sequence = sequence
}
