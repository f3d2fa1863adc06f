package sched

// Name returns the problem's name.
func (p *Problem) Name() string { return p.name }

// Machine returns the devices.
func (p *Problem) Machine() Machine { return p.machine }

// N returns the number of ops.
func (p *Problem) N() int { return len(p.time) }

// T returns the number of tensors, control included.
func (p *Problem) T() int { return len(p.producer) }

// D returns the number of devices.
func (p *Problem) D() int { return p.machine.Devices }

// Time returns the times of the ops, [N].
func (p *Problem) Time() []float64 { return p.time }

// Internal returns what op i uses inside; the model does not count it.
func (p *Problem) Internal(i int32) int64 {
	if p.internal == nil {
		return 0
	}
	return p.internal[i]
}

// Order returns the ops in topological order, [N].
func (p *Problem) Order() []int32 { return p.order }

// Producer returns the op that makes tensor t.
func (p *Problem) Producer(t int32) int32 { return p.producer[t] }

// Size returns the size of tensor t.
func (p *Problem) Size(t int32) int64 { return p.size[t] }

// Control reports whether tensor t only orders.
func (p *Problem) Control(t int32) bool { return p.control[t] }

// Consumers returns the ops that read tensor t, ascending, each once.
func (p *Problem) Consumers(t int32) []int32 { return p.use[p.useAt[t]:p.useAt[t+1]] }

// Inputs returns the tensors that op i reads, ascending, each once.
func (p *Problem) Inputs(i int32) []int32 { return p.in[p.inAt[i]:p.inAt[i+1]] }

// Outputs returns the half-open range of the tensors that op i makes.
func (p *Problem) Outputs(i int32) (first, end int32) { return p.outAt[i], p.outAt[i+1] }

// Memory returns the most that op i needs at once on its device: its inputs and
// outputs.
func (p *Problem) Memory(i int32) (sum int64) {
	for _, t := range p.Inputs(i) {
		sum += p.size[t]
	}
	for t := p.outAt[i]; t < p.outAt[i+1]; t++ {
		sum += p.size[t]
	}
	return sum
}

// Items of a schedule: op i is item i, the transfer of tensor t to device d is
// item N + t*D + d.

// Items returns the number of items, N + T*D.
func (p *Problem) Items() int { return p.N() + p.T()*p.D() }

// Transfer returns the item that brings tensor t to device d.
func (p *Problem) Transfer(t int32, d int) int32 {
	return int32(p.N()) + t*int32(p.D()) + int32(d)
}

// Keys returns the length of a chromosome: N*D affinities, then a priority for
// each item (A.5).
func (p *Problem) Keys() int { return p.N()*p.D() + p.Items() }

// minHeap is a binary heap, lowest number first.
type minHeap []int32

func (h *minHeap) push(x int32) {
	s := append(*h, x)
	for i := len(s) - 1; i > 0 && s[i] < s[(i-1)/2]; i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
	*h = s
}

func (h *minHeap) pop() int32 {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < last && s[c+1] < s[c] {
			c++
		}
		if c >= last || s[i] <= s[c] {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	*h = s
	return top
}
