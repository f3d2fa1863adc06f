package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

// costTable is a CostModel: seconds by device and op.
type costTable [][]float64

func (c costTable) OpSeconds(op graph.OpID, device int) units.Seconds {
	return units.Seconds(c[device][op])
}

// problem is a random case. Every number is a small multiple of 1/4, so that
// ties are common and sums exact.
type problem struct {
	g        *graph.Graph
	m        *hw.Machine
	cost     costTable
	device   []uint8
	priority []int32 // nil in every other case
}

func randomProblem(r *rand.Rand, maxOps, maxDevices int) *problem {
	p := &problem{g: randomGraph(r, 1+r.IntN(maxOps)), m: randomMachine(r, 1+r.IntN(maxDevices))}
	p.cost = randomCosts(r, p.g.NumOps(), p.m.NumDevices())
	p.device = randomPlacement(r, p.g, p.m.NumDevices())
	if r.IntN(2) == 0 {
		p.priority = randomPriority(r, p.g.NumOps())
	}
	return p
}

func randomGraph(r *rand.Rand, n int) *graph.Graph {
	return randomGraphOf(r, n, func(*graph.Op) {})
}

// randomGraphOf calls change with every op before it is added.
func randomGraphOf(r *rand.Rand, n int, change func(*graph.Op)) *graph.Graph {
	b := graph.NewBuilder("random")
	made := 0           // tensors so far
	reach := r.IntN(12) // how far back inputs reach: long thin graphs as well as wide ones
	span := func(k int) int { return max(0, k-reach-1) }
	for i := range n {
		op := graph.Op{Name: fmt.Sprint("op", i), Kind: "Add"}
		if r.IntN(4) == 0 {
			op.Resident = units.Bytes(r.IntN(8))
		}
		if r.IntN(4) == 0 {
			op.Workspace = units.Bytes(r.IntN(8))
		}
		if r.IntN(8) == 0 {
			op.Group = int32(1 + r.IntN(3))
		}
		change(&op)
		var in []graph.TensorID
		for k := r.IntN(4); k > 0 && made > 0; k-- {
			from := span(made)
			in = append(in, graph.TensorID(from+r.IntN(made-from)))
			if r.IntN(8) == 0 { // the same tensor twice
				in = append(in, in[len(in)-1])
			}
		}
		outs := make([]graph.Tensor, min(r.IntN(5), 3))
		for k := range outs {
			outs[k] = graph.Tensor{Bytes: units.Bytes(r.IntN(6)), Resident: r.IntN(6) == 0}
		}
		if len(in) > 0 && op.Resident == 0 && r.IntN(4) == 0 { // a view, mostly
			op.Kind = "Reshape"
			outs = []graph.Tensor{{Bytes: max(0, b.TensorAt(in[0]).Bytes-units.Bytes(r.IntN(6)/5)+units.Bytes(r.IntN(6)/5))}}
		}
		id := b.Op(op, in, outs...)
		made += len(outs)
		for k := r.IntN(4) - 2; k > 0 && i > 0; k-- {
			from := span(i)
			b.Control(graph.OpID(from+r.IntN(i-from)), id)
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// randomMachine draws one of five topologies: a link for every pair, a port in
// and out of every device, one bus for all, ports behind a switch trunk, and a
// bus with links for some pairs.
func randomMachine(r *rand.Rand, d int) *hw.Machine {
	m := &hw.Machine{Name: "random", Routes: make([][]int32, d*d)}
	for i := range d {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprint("gpu:", i), Kind: hw.GPU, Memory: units.Bytes(20 + r.IntN(60)),
			MemoryBandwidth: 1, Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1})
	}
	same := r.IntN(2) == 0 // equal links make ties
	link := func(name string) int32 {
		l := hw.Link{Name: name, Bandwidth: 2, Latency: 1}
		if !same {
			l.Bandwidth, l.Latency = units.BytesPerSecond([]float64{1, 2, 4}[r.IntN(3)]), units.Seconds(1+r.IntN(8))/4
		}
		m.Links = append(m.Links, l)
		return int32(len(m.Links) - 1)
	}
	topology := r.IntN(5)
	var out, in []int32
	var shared int32
	if topology == 1 || topology == 3 {
		for i := range d {
			out, in = append(out, link(fmt.Sprint("out", i))), append(in, link(fmt.Sprint("in", i)))
		}
	}
	if topology >= 2 {
		shared = link("shared")
	}
	for s := range d {
		for t := range d {
			if s == t {
				continue
			}
			route := &m.Routes[s*d+t]
			switch topology {
			case 0:
				*route = []int32{link(fmt.Sprint(s, "-", t))}
			case 1:
				*route = []int32{out[s], in[t]}
			case 2:
				*route = []int32{shared}
			case 4:
				*route = []int32{shared}
				if (s+t)%3 == 0 {
					*route = []int32{link(fmt.Sprint(s, "-", t))}
				}
			case 3: // devices of one half reach each other without the trunk
				if s%2 == t%2 {
					*route = []int32{out[s], in[t]}
				} else {
					*route = []int32{out[s], shared, in[t]}
				}
			}
		}
	}
	return m
}

func randomCosts(r *rand.Rand, n, d int) costTable {
	c := make(costTable, d)
	alike := r.IntN(2) == 0
	for k := range c {
		if alike && k > 0 {
			c[k] = c[0]
			continue
		}
		c[k] = make([]float64, n)
		for i := range c[k] {
			c[k][i] = float64(1+r.IntN(8)) / 2
		}
	}
	return c
}

// randomPlacement keeps groups together.
func randomPlacement(r *rand.Rand, g *graph.Graph, d int) []uint8 {
	device := make([]uint8, g.NumOps())
	group := map[int32]uint8{}
	for i := range device {
		device[i] = uint8(r.IntN(d))
		if k := g.Op(graph.OpID(i)).Group; k > 0 {
			if x, ok := group[k]; ok {
				device[i] = x
			}
			group[k] = device[i]
		}
	}
	return device
}

func randomPriority(r *rand.Rand, n int) []int32 {
	p := make([]int32, n)
	for i, x := range r.Perm(n) {
		p[i] = int32(x)
	}
	return p
}

func newSimulatorFor(t testing.TB, p *problem, cfg Config) *Simulator {
	t.Helper()
	s, err := New(p.g, p.m, p.cost, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pairMachine has d equal devices with a link for every ordered pair.
func pairMachine(d int, latency units.Seconds, bandwidth units.BytesPerSecond) *hw.Machine {
	m := &hw.Machine{Name: "pairs", Routes: make([][]int32, d*d)}
	for s := range d {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprint("gpu:", s), Kind: hw.GPU, Memory: 1 << 40,
			MemoryBandwidth: 1, Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1})
		for e := range d {
			if s != e {
				m.Routes[s*d+e] = []int32{int32(len(m.Links))}
				m.Links = append(m.Links, hw.Link{Name: fmt.Sprint(s, "-", e), Latency: latency, Bandwidth: bandwidth})
			}
		}
	}
	return m
}
