package stages

import (
	"context"
	"slices"

	"placer/baselines/budget"
	"placer/graph"
	"placer/plan"
	"placer/plan/formats"
)

// roomShares are the shares of a device's memory that are tried for weights; the rest is for
// activations.
var roomShares = []float64{1, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.3, 0.1}

// fitting returns cuts in so many stages that fit because of what is on the host, least
// of it each: the first layers, the experts of layers, and these with their weights sent. Of
// what does not fit at all it returns the last that it tried.
func (m *model) fitting(track *budget.Tracker, t *formats.Target, stages int) (list []cut) {
	first := func(of func(share float64) cut) {
		var c cut
		for _, share := range roomShares {
			if c = of(share); !m.legal(t, c) {
				continue
			}
			if track.Done() || track.Try(m.split(c).Spread()).Feasible() {
				break
			}
		}
		list = append(list, c)
	}
	first(func(share float64) cut { return m.fit(t, cut{bounds: m.filled(stages, share)}) })
	if m.parts.Role == nil {
		return list
	}
	bounds := []cut{m.fit(t, cut{bounds: m.balanced(stages)})}
	if own, ok := m.cutOf(&formats.Split{Device: m.byMemory()}); ok {
		if own = m.fit(t, own); len(own.bounds) == stages {
			bounds = append(bounds, own)
		}
	}
	for _, b := range bounds {
		for _, sent := range []bool{false, true} {
			if b.sent = sent; sent && !m.sends(t, b) {
				continue
			}
			first(func(share float64) cut { return m.without(b, share) })
		}
	}
	return list
}

// sends reports whether t sends weights of experts at all.
func (m *model) sends(t *formats.Target, c cut) bool {
	c = c.clone()
	c.experts = make([]int, len(c.bounds))
	for j := range c.experts {
		c.experts[j] = len(c.layers(m, j))
	}
	return m.legal(t, c)
}

// room returns the bytes of that share of the memory of stage j's device.
func (m *model) room(j int, share float64) float64 {
	return share * float64(m.p.Machine.Devices[m.order[j]].Memory)
}

// filled returns the first part of each of s stages that have as many of the last parts as
// that share of their memory holds.
func (m *model) filled(s int, share float64) []int {
	bounds := make([]int, s)
	k := len(m.parts.List)
	for j := s - 1; j >= 0; j-- {
		for room := m.room(j, share); k > 0 && m.bytes[k-1] <= room; k-- {
			room -= m.bytes[k-1]
		}
		bounds[j] = k
	}
	return bounds
}

// without returns c with the experts of as few layers on the host as leave no more than that
// share of each stage's memory.
func (m *model) without(c cut, share float64) cut {
	c = c.clone()
	c.experts = make([]int, len(c.bounds))
	experts := m.expertBytes()
	for j := range c.bounds {
		over := -m.room(j, share)
		for k := c.bounds[j]; k < c.end(m, j); k++ {
			over += m.bytes[k]
		}
		for _, k := range c.layers(m, j) {
			if over <= 0 {
				break
			}
			over -= experts[k]
			c.experts[j]++
		}
	}
	return c
}

// expertBytes returns the resident bytes of each part's experts, [P].
func (m *model) expertBytes() []float64 {
	of := make([]float64, len(m.parts.List))
	for i, r := range m.parts.Role {
		if r == formats.ExpertWeights {
			of[m.parts.Of[i]] += float64(m.p.Graph.Op(graph.OpID(i)).Resident)
		}
	}
	return of
}

// cutOf returns s as a cut, if it is one.
func (m *model) cutOf(s *formats.Split) (c cut, ok bool) {
	c.sent = s.Sent
	for k, d := range s.Device {
		j := len(c.bounds)
		if j > 0 && d == m.order[j-1] || j == 0 && int(d) == m.host {
			continue
		}
		if j == len(m.order) || d != m.order[j] {
			return c, false
		}
		c.bounds = append(c.bounds, k)
	}
	if len(c.bounds) == 0 {
		return c, false
	}
	if s.Experts == nil {
		return c, true
	}
	c.experts = make([]int, len(c.bounds))
	for j := range c.bounds {
		for _, k := range c.layers(m, j) {
			if s.Experts[k] != s.Device[k] {
				c.experts[j]++
			}
		}
	}
	c.even = !slices.Equal(m.split(c).Experts, s.Experts)
	return c, true
}

// hostNeighbours gives visit the cuts that differ from c in what is on the host.
func (m *model) hostNeighbours(c *cut, visit func(cut)) {
	first, _ := m.stack()
	for _, by := range []int{-1, 1, -4, 4} {
		next := c.clone()
		if next.bounds[0] += by; next.bounds[0] <= first { // what is before the stack goes with its first layer
			next.bounds[0] = 0
			if by > 0 {
				next.bounds[0] = first + 1
			}
		}
		if next.bounds[0] != c.bounds[0] && next.bounds[0] < next.end(m, 0) {
			visit(next)
		}
	}
	if m.parts.Role == nil {
		return
	}
	with := func(change func(next *cut) bool) {
		next := c.clone()
		if next.experts == nil {
			next.experts = make([]int, len(next.bounds))
		}
		if change(&next) {
			visit(next)
		}
	}
	for j := range c.bounds {
		for _, by := range []int{-1, 1, -4, 4} {
			with(func(next *cut) bool { return next.hold(m, j, by) })
			if j == 0 || c.experts == nil {
				continue
			}
			with(func(next *cut) bool { // a stage takes layers, and as many experts go to the host
				if next.bounds[j] += by; next.bounds[j] <= next.bounds[j-1] || next.bounds[j] >= next.end(m, j) {
					return false
				}
				if by < 0 {
					return next.hold(m, j, -by)
				}
				return next.hold(m, j-1, by)
			})
		}
	}
	if c.experts != nil {
		with(func(next *cut) bool { next.even = !next.even; return true })
		with(func(next *cut) bool { next.sent = !next.sent; return true })
	}
}

// hold adds by to the layers of stage j whose experts are on the host, if there are as many.
func (c *cut) hold(m *model, j, by int) bool {
	layers := len(c.layers(m, j))
	n := min(c.experts[j], layers) + by
	if n < 0 || n > layers {
		return false
	}
	c.experts[j] = n
	return true
}

// cpuExperts is "n-cpu-moe".
type cpuExperts struct{}

// CPUExperts is "n-cpu-moe": llama.cpp's default split of layers over GPUs, by the memory of
// each, with the experts of the first N layers on the CPU (its option --n-cpu-moe), N being
// the least that fits. With 32 tokens or more their weights are sent to the first GPU.
func CPUExperts() plan.Placer { return cpuExperts{} }

func (cpuExperts) Name() string    { return "n-cpu-moe" }
func (cpuExperts) Kind() plan.Kind { return plan.Baseline }

func (x cpuExperts) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	m := newModel(p)
	track := budget.New(ctx, p, x.Name())
	var layers []int
	for k := range m.parts.List {
		if m.host >= 0 && m.parts.HasExperts(k) {
			layers = append(layers, k)
		}
	}
	s := &formats.Split{Graph: p.Graph, Machine: p.Machine, Parts: m.parts, Device: m.byMemory()}
	s.Sent = formats.SendsWeights(m.parts.Tokens(p.Graph))
	fits := func(n int) bool {
		s.Experts = slices.Clone(s.Device)
		for _, k := range layers[:n] {
			s.Experts[k] = uint8(m.host)
		}
		return track.Try(s.Spread()).Feasible()
	}
	if len(layers) == 0 {
		track.Note("the machine has no CPU beside GPUs, or the model no experts")
	}
	if fits(0) || len(layers) == 0 {
		return track.Outcome()
	}
	low, high := 1, len(layers)
	for low < high && !track.Done() {
		if n := (low + high) / 2; fits(n) {
			high = n
		} else {
			low = n + 1
		}
	}
	if !track.Done() {
		fits(high)
	}
	return track.Outcome()
}
