package rivals

import (
	"math/rand/v2"

	"placer/baselines/regal/sched"
)

// link is an edge of the undirected graph: what two ops send each other.
type link struct {
	to     int32
	weight float64
}

// links returns for each op the sizes that edges with others carry. A control
// edge weighs nothing.
func links(p *sched.Problem) [][]link {
	at := make([][]link, p.N())
	for t := range int32(p.T()) {
		u, w := p.Producer(t), float64(p.Size(t))
		for _, v := range p.Consumers(t) {
			if w > 0 {
				at[u] = append(at[u], link{v, w})
				at[v] = append(at[v], link{u, w})
			}
		}
	}
	return at
}

// bisect places the ops of p on its devices, [N], in equal numbers, so that
// little is sent: from a random placement, passes of Kernighan and Lin over every
// pair of devices until none helps.
func bisect(p *sched.Problem, r *rand.Rand) []uint8 {
	device := make([]uint8, p.N())
	for k, i := range r.Perm(p.N()) {
		device[i] = uint8(k % p.D())
	}
	at := links(p)
	const passes = 20 // of all pairs; two or three are usual
	for range passes {
		helped := false
		for a := range uint8(p.D()) {
			for b := range a {
				helped = improve(device, at, a, b) || helped
			}
		}
		if !helped {
			break
		}
	}
	return device
}

// improve is one pass over devices a and b: it exchanges pairs of ops, the best
// pair first even where it costs, each op once, and keeps the exchanges up to the
// best point. The pair is the op of largest gain on a and its best partner on b,
// so that a pass takes O(n²).
func improve(device []uint8, at [][]link, a, b uint8) bool {
	gain := make([]float64, len(device)) // of moving the op to the other side
	var left, right []int32
	for i, d := range device {
		if d != a && d != b {
			continue
		}
		if d == a {
			left = append(left, int32(i))
		} else {
			right = append(right, int32(i))
		}
		for _, l := range at[i] {
			switch other := device[l.to]; {
			case other == d:
				gain[i] -= l.weight
			case other == a || other == b:
				gain[i] += l.weight
			}
		}
	}
	type pair struct{ x, y int32 }
	var done []pair
	sum, best, keep := 0.0, 1e-9, 0
	between := make([]float64, len(device)) // weights of links with x
	for len(left) > 0 && len(right) > 0 {
		i := largest(left, func(v int32) float64 { return gain[v] })
		x := left[i]
		for _, l := range at[x] {
			between[l.to] += l.weight
		}
		j := largest(right, func(v int32) float64 { return gain[v] - 2*between[v] })
		y := right[j]
		sum += gain[x] + gain[y] - 2*between[y]
		for _, l := range at[x] {
			between[l.to] = 0
		}
		done = append(done, pair{x, y})
		if sum > best {
			best, keep = sum, len(done)
		}
		left[i], left = left[len(left)-1], left[:len(left)-1]
		right[j], right = right[len(right)-1], right[:len(right)-1]
		for _, v := range [2]int32{x, y} {
			from := device[v]
			device[v] = a + b - from
			for _, l := range at[v] {
				switch device[l.to] {
				case from:
					gain[l.to] += 2 * l.weight
				case a + b - from:
					gain[l.to] -= 2 * l.weight
				}
			}
		}
	}
	for _, e := range done[keep:] {
		device[e.x], device[e.y] = device[e.y], device[e.x]
	}
	return keep > 0
}

// largest returns the index of the op with the largest value, the first of
// equals.
func largest(ops []int32, value func(int32) float64) int {
	best, most := 0, value(ops[0])
	for i := 1; i < len(ops); i++ {
		if x := value(ops[i]); x > most {
			best, most = i, x
		}
	}
	return best
}
