package uncontended

import (
	"context"
	"math"

	"placer/graph"
	"placer/hw"
	"placer/plan"
)

// Clock evaluates placements. It serves one goroutine.
type Clock struct {
	n, d    int
	seconds [][]float64 // [D][N]
	at      []int32     // [N+1] into the next two: readers of each op's outputs
	reader  []int32
	route   []float64 // [readers*D*D] or, where all routes are alike, [readers]
	alike   bool
	wait    []int32   // [N] inputs of each op, from distinct (producer, output)
	left    []int32   // [N]
	ready   []float64 // [N]
	free    []float64 // [D]
	heap    []int32
}

// NewClock returns a clock of p. Transfers take the time of their route, alone.
func NewClock(p *plan.Problem) *Clock {
	g, m := p.Graph, p.Machine
	c := &Clock{n: g.NumOps(), d: m.NumDevices(), alike: alike(m)}
	c.wait, c.left, c.ready, c.free = make([]int32, c.n), make([]int32, c.n), make([]float64, c.n), make([]float64, c.d)
	for d := range c.d {
		c.seconds = append(c.seconds, p.Evaluator.OpSeconds(d))
	}
	waiters := make([][]graph.OpID, c.n)
	for i := range graph.OpID(c.n) {
		for _, u := range g.Control(i) {
			waiters[u] = append(waiters[u], i)
		}
	}
	c.at = append(c.at, 0)
	for i := range graph.OpID(c.n) {
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			for _, v := range g.Consumers(t) {
				c.link(m, v, float64(g.Tensor(t).Bytes))
			}
		}
		for _, v := range waiters[i] {
			c.link(m, v, 0)
		}
		c.at = append(c.at, int32(len(c.reader)))
	}
	return c
}

// link notes that op v waits for bytes of the op under way.
func (c *Clock) link(m *hw.Machine, v graph.OpID, bytes float64) {
	c.reader = append(c.reader, int32(v))
	c.wait[v]++
	for a := range c.d {
		for b := range c.d {
			if c.alike && (a != 0 || b != min(1, c.d-1)) {
				continue
			}
			seconds := 0.0
			if a != b {
				latency, bandwidth := m.Transfer(a, b)
				seconds = float64(latency) + bytes/float64(bandwidth)
			}
			c.route = append(c.route, seconds)
		}
	}
}

// alike reports whether all routes of m have one latency and one bandwidth.
func alike(m *hw.Machine) bool {
	var latency, bandwidth float64
	for a := range m.Devices {
		for b := range m.Devices {
			if a == b {
				continue
			}
			l, w := m.Transfer(a, b)
			if bandwidth == 0 {
				latency, bandwidth = float64(l), float64(w)
			}
			if float64(l) != latency || float64(w) != bandwidth {
				return false
			}
		}
	}
	return true
}

// between is how many ops are clocked between two looks at a context.
const between = 1 << 15

// Seconds returns the step time with op i on device[i], [N]; +Inf when ctx ends before it
// is known. It allocates nothing.
func (c *Clock) Seconds(ctx context.Context, device []uint8) (end float64) {
	copy(c.left, c.wait)
	clear(c.ready)
	clear(c.free)
	c.heap = c.heap[:0]
	for i, w := range c.wait {
		if w == 0 {
			c.push(int32(i))
		}
	}
	for left := between; len(c.heap) > 0; left-- {
		if left == 0 {
			if left = between; ctx.Err() != nil {
				return math.Inf(1)
			}
		}
		i := c.pop()
		d := device[i]
		start := max(c.ready[i], c.free[d])
		done := start + c.seconds[d][i]
		c.free[d] = done
		end = max(end, done)
		for k := c.at[i]; k < c.at[i+1]; k++ {
			v := c.reader[k]
			there := done
			if e := device[v]; e != d {
				if c.alike {
					there += c.route[k]
				} else {
					there += c.route[(int(k)*c.d+int(d))*c.d+int(e)]
				}
			}
			c.ready[v] = max(c.ready[v], there)
			if c.left[v]--; c.left[v] == 0 {
				c.push(v)
			}
		}
	}
	return end
}

func (c *Clock) before(a, b int32) bool {
	return c.ready[a] < c.ready[b] || c.ready[a] == c.ready[b] && a < b
}

func (c *Clock) push(x int32) {
	c.heap = append(c.heap, x)
	h := c.heap
	for i := len(h) - 1; i > 0; {
		p := (i - 1) / 2
		if !c.before(x, h[p]) {
			break
		}
		h[i], h[p] = h[p], x
		i = p
	}
}

func (c *Clock) pop() int32 {
	h := c.heap
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	c.heap = h
	for i := 0; ; {
		k := 2*i + 1
		if k >= len(h) {
			if i < len(h) {
				h[i] = x
			}
			return top
		}
		if k+1 < len(h) && c.before(h[k+1], h[k]) {
			k++
		}
		if !c.before(h[k], x) {
			h[i] = x
			return top
		}
		h[i] = h[k]
		i = k
	}
}
