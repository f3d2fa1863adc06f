package sim

import (
	"cmp"
	"slices"
)

// window sharpens work near the ends of the step, where dependencies leave
// devices idle. Give op i the value v = min over c of w[c] seconds[c]. A device
// of class c gains value at a rate of at most w[c], so all devices together at a
// rate of at most 1. By time a, op i has run for at most a-head[i], which is at
// most the fraction (a-head[i])/fastest[i] of it; so until a at most
//
//	A(a) = sum of v clamp((a-head)/fastest, 0, 1)
//
// has been gained, and likewise at most B(z), with tail for head, in the last z
// seconds. What is left takes its value in seconds. For a+z <= T therefore
//
//	T >= a + z + V - A(a) - B(z), where V is the sum of v,
//
// and a+z <= path, a bound already proven, suffices. The best a and z are found
// among the instants where A and B bend.
func (b *bounder) window(weight []float64, path float64) float64 {
	value, total := make([]float64, b.n), 0.0
	for i := range value {
		value[i] = inf
		for c, class := range b.classes {
			if b.items[b.itemOf[i]].seconds[c] != inf {
				value[i] = min(value[i], weight[c]*b.seconds[class.device][i])
			}
		}
		total += value[i]
	}
	early, late := b.headroom(value, b.head), b.headroom(value, b.tail)
	// early descends in time as late ascends; best is the best late gain so far.
	bestA, bestZ, most := 0.0, 0.0, 0.0
	z, best := 0, gain{}
	for k := len(early) - 1; k >= 0; k-- {
		for ; z < len(late) && late[z].at+early[k].at <= path; z++ {
			if late[z].gain > best.gain {
				best = late[z]
			}
		}
		if x := early[k].gain + best.gain; x > most && early[k].at <= path {
			bestA, bestZ, most = early[k].at, best.at, x
		}
	}
	// The search above sums with cancellation; the bound itself does not.
	return bestA + bestZ + total - b.gained(value, b.head, bestA) - b.gained(value, b.tail, bestZ)
}

func (b *bounder) gained(value, head []float64, at float64) (sum float64) {
	for i, v := range value {
		sum += v * min(1, max(0, (at-head[i])/b.fastest[i]))
	}
	return sum
}

// gain says that a window of at seconds raises the bound by gain.
type gain struct{ at, gain float64 }

// headroom returns t - A(t) at the bends of A, by ascending t.
func (b *bounder) headroom(value, head []float64) []gain {
	type bend struct{ at, slope float64 }
	bends := make([]bend, 0, 2*b.n)
	for i, v := range value {
		slope := v / b.fastest[i]
		bends = append(bends, bend{head[i], slope}, bend{head[i] + b.fastest[i], -slope})
	}
	slices.SortFunc(bends, func(x, y bend) int { return cmp.Compare(x.at, y.at) })
	out := make([]gain, 0, len(bends))
	at, slope, gained := 0.0, 0.0, 0.0
	for _, x := range bends {
		gained += float64(slope * (x.at - at))
		at, slope = x.at, slope+x.slope
		if k := len(out); k > 0 && out[k-1].at == at {
			continue
		}
		out = append(out, gain{at, at - gained})
	}
	return out
}
