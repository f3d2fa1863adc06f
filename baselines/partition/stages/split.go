package stages

import (
	"math"
	"slices"

	"placer/graph"
	"placer/plan"
	"placer/plan/formats"
)

// model is a problem in terms of parts.
type model struct {
	p     *plan.Problem
	parts *formats.Parts
	order []uint8   // devices of the stages
	load  []float64 // [P+1] seconds of the parts before each
	cross []float64 // [P] bytes that pass from parts before each to it and those behind
	bytes []float64 // [P] resident bytes of each
	host  int       // the device that weights can wait on, or -1
}

// newModel returns p in terms of its modules, or of its ops where it names none.
func newModel(p *plan.Problem) *model {
	parts, err := formats.FindParts(p.Graph)
	if err != nil {
		parts = opParts(p.Graph)
	}
	return modelOf(p, parts)
}

// opParts returns the ops of g as parts. One that reads nothing, such as a weight, belongs to
// the first op that reads it: it is no work to be divided.
func opParts(g *graph.Graph) *formats.Parts {
	n := g.NumOps()
	parts := &formats.Parts{Of: make([]int32, n)}
	for i := n - 1; i >= 0; i-- { // readers stand behind what they read
		id := graph.OpID(i)
		parts.Of[i] = int32(i)
		first, end := g.Outputs(id)
		if len(g.Inputs(id)) > 0 {
			continue
		}
		reader := int32(n)
		for t := first; t < end; t++ {
			for _, c := range g.Consumers(t) {
				reader = min(reader, parts.Of[c])
			}
		}
		if reader < int32(n) {
			parts.Of[i] = reader
		}
	}
	at := make([]int32, n) // part of each op that is one
	for i := range n {
		if parts.Of[i] == int32(i) {
			at[i] = int32(len(parts.List))
			parts.List = append(parts.List, formats.Part{Path: g.Op(graph.OpID(i)).Name, Layer: int(at[i])})
		}
	}
	for i, of := range parts.Of {
		parts.Of[i] = at[of]
	}
	return parts
}

// modelOf returns p in terms of parts.
func modelOf(p *plan.Problem, parts *formats.Parts) *model {
	n := len(parts.List)
	m := &model{p: p, parts: parts, order: p.Machine.Accelerators(), load: make([]float64, n+1), cross: make([]float64, n+1), bytes: make([]float64, n), host: p.Machine.Host()}
	seconds := p.Evaluator.OpSeconds(int(m.order[0]))
	for i, k := range parts.Of {
		o := p.Graph.Op(graph.OpID(i))
		m.load[k+1] += seconds[i]
		m.bytes[k] += float64(o.Resident)
		first, end := p.Graph.Outputs(graph.OpID(i))
		for t := first; t < end; t++ {
			low, high := k, k
			for _, c := range p.Graph.Consumers(t) {
				low, high = min(low, parts.Of[c]), max(high, parts.Of[c])
			}
			b := float64(p.Graph.Tensor(t).Bytes)
			m.cross[low+1] += b // crosses every cut behind low and not behind high
			m.cross[high+1] -= b
		}
	}
	for k := range n {
		m.load[k+1] += m.load[k]
	}
	for k := 1; k <= n; k++ {
		m.cross[k] += m.cross[k-1]
	}
	return m
}

// balanced returns the first part of each of s stages, whose largest load is least: the
// seconds of its parts and of what crosses its ends (the dynamic program over cuts of a
// chain). No stage is empty.
func (m *model) balanced(s int) []int {
	n := len(m.parts.List)
	s = min(s, n)
	transfer := make([]float64, n+1)
	if len(m.order) > 1 {
		if _, bandwidth := m.p.Machine.Transfer(int(m.order[0]), int(m.order[1])); bandwidth > 0 {
			for k := 1; k < n; k++ {
				transfer[k] = m.cross[k] / float64(bandwidth)
			}
		}
	}
	cost := func(from, to int) float64 { return m.load[to] - m.load[from] + transfer[from] + transfer[to] }
	best := make([][]float64, s+1)
	cut := make([][]int, s+1)
	for j := range best {
		best[j], cut[j] = make([]float64, n+1), make([]int, n+1)
		for k := range best[j] {
			best[j][k] = math.Inf(1)
		}
	}
	best[0][0] = 0
	for j := 1; j <= s; j++ {
		for k := j; k <= n; k++ {
			for from := k - 1; from >= j-1; from-- {
				if m.load[k]-m.load[from] > best[j][k] {
					break // longer stages are slower still
				}
				if x := max(best[j-1][from], cost(from, k)); x < best[j][k] {
					best[j][k], cut[j][k] = x, from
				}
			}
		}
	}
	bounds := make([]int, s)
	for j, k := s, n; j > 0; j-- {
		k = cut[j][k]
		bounds[j-1] = k
	}
	return bounds
}

// cut is a placement of the parts in stages. For a target that may have layers on the host,
// what is before the first stage is there.
type cut struct {
	bounds []int // first part of each stage
	// experts says of how many layers of each stage the experts are on the host; nil: of none.
	experts []int
	even    bool // these are spread over the stage; otherwise its first
	sent    bool // their weights are sent to the first accelerator, which computes with them
}

// clone returns a copy that shares no memory with c.
func (c cut) clone() cut {
	c.bounds, c.experts = slices.Clone(c.bounds), slices.Clone(c.experts)
	return c
}

// spilled reports whether anything is on the host.
func (c cut) spilled() bool {
	return c.bounds[0] > 0 || slices.ContainsFunc(c.experts, func(n int) bool { return n > 0 })
}

// split returns the placement of the parts that c describes.
func (m *model) split(c cut) *formats.Split {
	s := &formats.Split{Graph: m.p.Graph, Machine: m.p.Machine, Parts: m.parts, Device: make([]uint8, len(m.parts.List)), Sent: c.sent}
	for k := range s.Device {
		if m.host >= 0 {
			s.Device[k] = uint8(m.host)
		}
		for j, b := range c.bounds {
			if k >= b {
				s.Device[k] = m.order[j]
			}
		}
	}
	for j, n := range c.experts {
		if n == 0 {
			continue
		}
		if s.Experts == nil {
			s.Experts = slices.Clone(s.Device)
		}
		for _, k := range c.apart(m, j) {
			s.Experts[k] = uint8(m.host)
		}
	}
	return s
}

// end returns the part behind stage j.
func (c cut) end(m *model, j int) int {
	if j+1 < len(c.bounds) {
		return c.bounds[j+1]
	}
	return len(m.parts.List)
}

// layers returns the parts of stage j that have experts.
func (c cut) layers(m *model, j int) (of []int) {
	for k := c.bounds[j]; k < c.end(m, j); k++ {
		if m.parts.HasExperts(k) {
			of = append(of, k)
		}
	}
	return of
}

// apart returns the parts of stage j whose experts are on the host.
func (c cut) apart(m *model, j int) (of []int) {
	layers := c.layers(m, j)
	n := min(c.experts[j], len(layers))
	if !c.even {
		return layers[:n]
	}
	for i, k := range layers {
		if (i+1)*n/len(layers) > i*n/len(layers) {
			of = append(of, k)
		}
	}
	return of
}

// legal reports whether t can take c.
func (m *model) legal(t *formats.Target, c cut) bool { return t == nil || t.Legal(m.split(c)) == nil }
