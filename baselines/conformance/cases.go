package conformance

import (
	"fmt"
	"math/rand/v2"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Case is a small placement problem.
type Case struct {
	Name    string
	Graph   *graph.Graph
	Machine *hw.Machine
	Costs   Costs
	// Impossible says that nothing fits, whatever the placement.
	Impossible bool
	// Spread says that the graph fits, but one device alone cannot hold it.
	Spread bool
	// Optimum is the least time in seconds of all placements under all priorities, as
	// exhaustive search finds it; 0 where that is not known.
	Optimum float64
	// Levels are the units; nil stands for unit.Find's.
	Levels *unit.Hierarchy
}

// Costs are op times in microseconds on the first device; device d takes d/2
// times as long again, so that devices differ.
type Costs struct {
	Micros  []float64
	Uniform bool // all devices are as fast as the first
}

// OpSeconds returns the time of op i on device d.
func (c Costs) OpSeconds(i graph.OpID, d int) units.Seconds {
	slow := 1.0
	if !c.Uniform {
		slow += float64(d) / 2
	}
	return units.Seconds(c.Micros[i] * slow * 1e-6)
}

// Problem returns a new problem of c, with exact memory.
func (c *Case) Problem() (*plan.Problem, error) {
	s, err := sim.New(c.Graph, c.Machine, c.Costs, sim.Default())
	if err != nil {
		return nil, err
	}
	h := c.Levels
	if h == nil {
		if h, err = unit.Find(c.Graph, s.OpSeconds(0)); err != nil {
			return nil, err
		}
	}
	return &plan.Problem{Graph: c.Graph, Machine: c.Machine, Units: h, Evaluator: s, Kernels: s.KernelCosts, Decision: plan.Decision{Priority: sim.CriticalPathPriority(c.Graph, s.OpSeconds(0))}, Seed: 1}, nil
}

// Cases returns the problems that every method is run on.
func Cases() []Case {
	return []Case{
		{Name: "one op", Graph: chain(1), Machine: box(2, 1<<30), Costs: costs(1, 1)},
		{Name: "one device", Graph: layered(2, 12, 0), Machine: box(1, 1<<30), Costs: costs(2, 12)},
		{Name: "chain", Graph: chain(20), Machine: box(3, 1<<30), Costs: costs(3, 20)},
		{Name: "layered", Graph: layered(4, 40, 0), Machine: box(4, 1<<30), Costs: costs(4, 40)},
		{Name: "groups", Graph: layered(5, 40, 6), Machine: box(3, 1<<30), Costs: costs(5, 40)},
		{Name: "fewer ops than devices", Graph: layered(6, 3, 0), Machine: box(8, 1<<30), Costs: costs(6, 3)},
		{Name: "tight memory", Graph: layered(7, 30, 0), Machine: box(3, 40_000), Costs: costs(7, 30)},
		{Name: "nothing fits", Graph: layered(8, 20, 0), Machine: box(2, 5_000), Costs: costs(8, 20), Impossible: true},
		{Name: "training step", Graph: training(4), Machine: box(2, 1<<30), Costs: Costs{Micros: trainingMicros(4), Uniform: true}},
		{Name: "must spread", Graph: heavy(24), Machine: box(3, 48_000), Costs: costs(9, 24), Spread: true},
	}
}

// Tiny returns problems of at most 8 units whose every level is the op level, so
// that exhaustive search and every method decide the same. In the last three the
// best order is not that of the problem's scheduler.
func Tiny() []Case {
	var cases []Case
	for k := range 6 {
		d := 2 + k%2
		n, groups := 6+k%3, k/3*2
		c := Case{Name: fmt.Sprintf("tiny %d", k), Graph: layered(uint64(20+k), n, groups), Machine: box(d, 1<<30), Costs: costs(uint64(20+k), n)}
		if k == 5 {
			c.Machine = box(d, 52_000)
		}
		cases = append(cases, c)
	}
	for k, seed := range []uint64{43, 76, 83} {
		n := 7 + int(seed%2)
		cases = append(cases, Case{Name: fmt.Sprintf("tiny %d", 6+k), Graph: wide(seed, n), Machine: box(2, 1<<30), Costs: costs(seed, n)})
	}
	for k, micros := range []float64{172.925830835, 296.802409709, 276.868845769, 291.571070485, 241.884477448, 307.724022514, 319.583681055, 215.429146439, 276.318490707} {
		cases[k].Levels, cases[k].Optimum = flat(cases[k].Graph), micros*1e-6
	}
	return cases
}

func costs(seed uint64, n int) Costs {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := Costs{Uniform: seed%2 == 0}
	for range n {
		c.Micros = append(c.Micros, 5+100*rng.Float64())
	}
	return c
}

// box returns a machine of d devices in which every pair has a link each way.
func box(d int, memory units.Bytes) *hw.Machine {
	m := &hw.Machine{Name: fmt.Sprintf("box%d", d), Routes: make([][]int32, d*d)}
	for i := range d {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprintf("gpu:%d", i), Model: fmt.Sprintf("m%d", i), Kind: hw.GPU, Memory: memory,
			MemoryBandwidth: 1e11, Peak: map[string]units.FLOPsPerSecond{"f32": 1e12}, SMs: 1, Source: "made up"})
		for j := range d {
			if i != j {
				m.Routes[i*d+j] = []int32{int32(len(m.Links))}
				m.Links = append(m.Links, hw.Link{Name: fmt.Sprintf("%d>%d", i, j), Bandwidth: 1e9, Latency: 1e-6, Source: "made up"})
			}
		}
	}
	if err := m.Check(); err != nil {
		panic(err)
	}
	return m
}

func build(b *graph.Builder) *graph.Graph {
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// chain is n ops in a row.
func chain(n int) *graph.Graph {
	b := graph.NewBuilder(fmt.Sprintf("chain%d", n))
	var last []graph.TensorID
	for i := range n {
		id := b.Op(graph.Op{Name: fmt.Sprintf("op%d", i), Kind: "MatMul", FLOPs: 1e6, Bytes: 1000, Forward: graph.None}, last, graph.Tensor{Bytes: 2000})
		last = []graph.TensorID{b.Output(id, 0)}
	}
	return build(b)
}

// layered is a random graph of n ops with one output each, some control
// dependencies, some resident memory, and groups co-location groups.
func layered(seed uint64, n, groups int) *graph.Graph {
	rng := rand.New(rand.NewPCG(seed, 7))
	b := graph.NewBuilder(fmt.Sprintf("layered%d", seed))
	for i := range n {
		var in []graph.TensorID
		for k := 0; i > 0 && k < 1+rng.IntN(3); k++ {
			in = append(in, b.Output(graph.OpID(max(0, i-1-rng.IntN(6))), 0))
		}
		op := graph.Op{Name: fmt.Sprintf("op%d", i), Kind: []graph.Kind{"MatMul", "Add", "Tanh", "Identity"}[rng.IntN(4)], FLOPs: 1e6, Bytes: 1000, Layer: int32(1 + i*4/n), Forward: graph.None}
		if rng.IntN(4) == 0 {
			op.Resident = units.Bytes(rng.IntN(4000))
		}
		if groups > 0 && rng.IntN(3) == 0 {
			op.Group = int32(1 + rng.IntN(groups))
		}
		id := b.Op(op, in, graph.Tensor{Bytes: units.Bytes(500 + rng.IntN(20000))})
		if i > 4 && rng.IntN(5) == 0 {
			b.Control(graph.OpID(rng.IntN(i-1)), id)
		}
	}
	return build(b)
}

// wide is a random graph of n ops in which most read one earlier op, so that
// several are ready at once.
func wide(seed uint64, n int) *graph.Graph {
	rng := rand.New(rand.NewPCG(seed, 11))
	b := graph.NewBuilder(fmt.Sprintf("wide%d", seed))
	for i := range n {
		var in []graph.TensorID
		for k := 0; i > 0 && k < 1+rng.IntN(2)*(i/4); k++ {
			in = append(in, b.Output(graph.OpID(rng.IntN(min(i, 4))), 0))
		}
		b.Op(graph.Op{Name: fmt.Sprintf("op%d", i), Kind: "MatMul", FLOPs: 1e6, Forward: graph.None}, in, graph.Tensor{Bytes: units.Bytes(500 + rng.IntN(60000))})
	}
	return build(b)
}

// heavy is n ops, each with weights of 4,000 bytes and a small output that the next
// two read.
func heavy(n int) *graph.Graph {
	b := graph.NewBuilder(fmt.Sprintf("heavy%d", n))
	var last []graph.TensorID
	for i := range n {
		id := b.Op(graph.Op{Name: fmt.Sprintf("op%d", i), Kind: "MatMul", FLOPs: 1e6, Resident: 4000, Forward: graph.None}, last, graph.Tensor{Bytes: 300})
		if last = append(last, b.Output(id, 0)); len(last) > 2 {
			last = last[1:]
		}
	}
	return build(b)
}

// training is a step of an n-layer perceptron: variables, forward, backward and
// updates, with the variable and its update co-located.
func training(n int) *graph.Graph {
	b := graph.NewBuilder(fmt.Sprintf("perceptron%d", n))
	x := b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{Bytes: 4000})
	at := b.Output(x, 0)
	var reads, inputs []graph.TensorID
	var forward []graph.OpID
	for l := range n {
		v := b.Op(graph.Op{Name: fmt.Sprintf("w%d", l), Kind: "VariableV2", Resident: 8000, Params: 2000, Layer: int32(l + 1), Group: int32(l + 1), Forward: graph.None}, nil, graph.Tensor{Bytes: 8000, Resident: true})
		reads, inputs = append(reads, b.Output(v, 0)), append(inputs, at)
		f := b.Op(graph.Op{Name: fmt.Sprintf("f%d", l), Kind: "MatMul", FLOPs: 1e6, Bytes: 1000, Layer: int32(l + 1), Forward: graph.None}, []graph.TensorID{at, b.Output(v, 0)}, graph.Tensor{Bytes: 4000})
		forward = append(forward, f)
		at = b.Output(f, 0)
	}
	for l := n - 1; l >= 0; l-- {
		op := func(name string, phase graph.Phase, kind graph.Kind, group int32, in []graph.TensorID, bytes units.Bytes) graph.TensorID {
			id := b.Op(graph.Op{Name: fmt.Sprintf("%s%d", name, l), Kind: kind, Phase: phase, FLOPs: 1e6, Bytes: 1000, Layer: int32(l + 1), Group: group, Forward: forward[l]}, in, graph.Tensor{Bytes: bytes})
			return b.Output(id, 0)
		}
		dw := op("dw", graph.Backward, "MatMul", 0, []graph.TensorID{inputs[l], at}, 8000)
		op("u", graph.Update, "ApplyGradientDescent", int32(l+1), []graph.TensorID{reads[l], dw}, 0)
		at = op("dx", graph.Backward, "MatMul", 0, []graph.TensorID{at, reads[l]}, 4000)
	}
	return build(b)
}

func trainingMicros(n int) []float64 {
	c := make([]float64, training(n).NumOps())
	for i := range c {
		c[i] = float64(10 + 7*(i%5))
	}
	return c
}

// flat returns a hierarchy whose levels are all the op level, all of it forward.
func flat(g *graph.Graph) *unit.Hierarchy {
	p := &unit.Partition{Of: make([]int32, g.NumOps())}
	of := map[int32]int32{}
	for i := range g.NumOps() {
		k := g.Op(graph.OpID(i)).Group
		u, ok := of[k]
		if !ok || k == 0 {
			u = int32(len(p.Ops))
			p.Ops = append(p.Ops, nil)
			of[k] = u
		}
		p.Of[i] = u
		p.Ops[u] = append(p.Ops[u], graph.OpID(i))
	}
	h := &unit.Hierarchy{}
	for l := range h.Levels {
		h.Levels[l] = p
		if unit.Level(l) == unit.Op {
			continue
		}
		h.Roles[l] = make([]unit.Role, p.NumUnits())
		h.Reads[l] = make([][]int32, p.NumUnits())
		for range p.Ops {
			h.Counterparts[l] = append(h.Counterparts[l], -1)
		}
	}
	return h
}
