package exact

import (
	"cmp"
	"slices"

	"placer/sim"
)

// job is something that a device or a link must do alone: not before head, and
// with tail still to come afterwards.
type job struct{ head, seconds, tail float64 }

// alone returns a lower bound of the time in which one machine can do all jobs: for
// every set of them, the least head, the sum and the least tail. Only the sets of
// all jobs from some head on, and from some tail on, need a look. It reorders jobs.
func alone(jobs []job) (bound float64) {
	slices.SortFunc(jobs, func(a, b job) int { return cmp.Compare(b.tail, a.tail) })
	for _, from := range jobs {
		sum := 0.0
		for _, x := range jobs {
			if x.head >= from.head {
				sum += x.seconds
				bound = max(bound, from.head+sum+x.tail)
			}
		}
	}
	return bound
}

// bounder computes bounds of partial placements.
type bounder struct {
	*table
	head, tail []float64 // [N]
	jobs       [][]job   // [D+L]
}

func newBounder(t *table) *bounder {
	return &bounder{t, make([]float64, t.n), make([]float64, t.n), make([][]job, t.d+len(t.p.Machine.Links))}
}

// placement returns a lower bound of every plan that places op i on device[i], or
// anywhere where that is none. It leaves heads and tails behind.
func (b *bounder) placement(device []int8) (bound float64) {
	clear(b.head)
	clear(b.tail)
	for k := range b.jobs {
		b.jobs[k] = b.jobs[k][:0]
	}
	work := 0.0
	for i := range b.n { // ids are in topological order
		end := b.head[i] + b.length(i, device)
		work += b.length(i, device)
		for _, m := range b.sends[i] {
			x := &b.messages[m]
			for _, v := range x.users {
				b.head[v] = max(b.head[v], end+b.crossing(x, v, device))
			}
		}
	}
	for i := b.n - 1; i >= 0; i-- {
		for _, m := range b.sends[i] {
			x := &b.messages[m]
			for _, v := range x.users {
				b.tail[i] = max(b.tail[i], b.crossing(x, v, device)+b.length(int(v), device)+b.tail[v])
			}
		}
		bound = max(bound, b.head[i]+b.length(i, device)+b.tail[i])
		if d := device[i]; d != none {
			b.jobs[d] = append(b.jobs[d], job{b.head[i], b.seconds[d][i], b.tail[i]})
			if b.contention == sim.FIFO {
				b.transfers(i, device)
			}
		}
	}
	for _, jobs := range b.jobs {
		bound = max(bound, alone(jobs))
	}
	return max(bound, work/float64(b.d))
}

// length returns the time of op i where it is, the least where that is open.
func (b *bounder) length(i int, device []int8) float64 {
	if d := device[i]; d != none {
		return b.seconds[d][i]
	}
	return b.least[i]
}

// crossing returns the time that message x certainly needs to get to user v.
func (b *bounder) crossing(x *message, v int32, device []int8) float64 {
	from, to := device[x.from], device[v]
	if from == to || from == none || to == none {
		return 0
	}
	return b.routes[int(from)*b.d+int(to)].seconds(x.bytes)
}

// transfers adds the certain transfers of op i to the links' jobs.
func (b *bounder) transfers(i int, device []int8) {
	from := int(device[i])
	for _, m := range b.sends[i] {
		x := &b.messages[m]
		for to := range b.d {
			if to == from {
				continue
			}
			tail, sent := 0.0, false
			for _, v := range x.users {
				if int(device[v]) == to {
					sent, tail = true, max(tail, b.seconds[to][v]+b.tail[v])
				}
			}
			if !sent {
				continue
			}
			r := &b.routes[from*b.d+to]
			for _, l := range r.links {
				b.jobs[b.d+int(l)] = append(b.jobs[b.d+int(l)], job{b.head[i] + b.seconds[from][i], r.seconds(x.bytes), tail})
			}
		}
	}
}
