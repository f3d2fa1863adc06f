package schedule_test

import (
	"fmt"
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/schedule"
	"placer/sim"
	"placer/units"
)

type costs []float64

func (c costs) OpSeconds(i graph.OpID, _ int) units.Seconds { return units.Seconds(c[i]) }

// forked is an op with two readers: b takes 3 s, c 1 s and what follows it 1 s.
func forked() *plan.Problem {
	b := graph.NewBuilder("fork")
	a := b.Op(graph.Op{Name: "a", Kind: "Add"}, nil, graph.Tensor{Bytes: 10})
	b.Op(graph.Op{Name: "b", Kind: "Add"}, []graph.TensorID{b.Output(a, 0)}, graph.Tensor{Bytes: 10})
	c := b.Op(graph.Op{Name: "c", Kind: "Add"}, []graph.TensorID{b.Output(a, 0)}, graph.Tensor{Bytes: 20})
	b.Op(graph.Op{Name: "d", Kind: "Add"}, []graph.TensorID{b.Output(c, 0)}, graph.Tensor{Bytes: 20})
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	m := &hw.Machine{Name: "pair", Routes: [][]int32{nil, {0}, {1}, nil}}
	for d := range 2 {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprint("gpu:", d), Kind: hw.GPU, Memory: 1000, MemoryBandwidth: 1, Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1})
		m.Links = append(m.Links, hw.Link{Name: fmt.Sprint("link", d), Latency: 1, Bandwidth: 10})
	}
	s, err := sim.New(g, m, costs{1, 3, 1, 1}, sim.Default())
	if err != nil {
		panic(err)
	}
	return &plan.Problem{Graph: g, Machine: m, Evaluator: s}
}

// Without transfers the ranks are a 4, b 3, c 2, d 1.
func TestUpwardRank(t *testing.T) {
	p := forked()
	seconds := p.Evaluator.OpSeconds(0)
	if got := schedule.UpwardRank(p.Graph, seconds, nil); !slices.Equal(got, []float64{4, 3, 2, 1}) {
		t.Errorf("ranks %v", got)
	}
	// b and c read 10 B of a, d 20 B of c.
	got := schedule.UpwardRank(p.Graph, seconds, func(e schedule.Edge, rank float64) float64 { return rank + float64(e.Bytes) })
	if !slices.Equal(got, []float64{33, 3, 22, 1}) {
		t.Errorf("ranks with transfers %v", got)
	}
}

func TestPlacedCriticalPath(t *testing.T) {
	p := forked()
	if got := schedule.PlacedCriticalPath(p, make([]uint8, 4)); !slices.Equal(got, sim.CriticalPathPriority(p.Graph, p.Evaluator.OpSeconds(0))) {
		t.Errorf("critical path on one device: %v", got)
	}
	// d elsewhere: 20 B take 1 + 20/10 s, so c's level is 1 + 3 + 1 = 5.
	if got := schedule.PlacedCriticalPath(p, []uint8{0, 0, 0, 1}); !slices.Equal(got, []int32{0, 2, 1, 3}) {
		t.Errorf("critical path with a transfer: %v", got)
	}
}

func Example() {
	p := forked()
	fmt.Println(schedule.UpwardRank(p.Graph, p.Evaluator.OpSeconds(0), nil), schedule.PlacedCriticalPath(p, []uint8{0, 0, 0, 1}))
	// Output:
	// [4 3 2 1] [0 2 1 3]
}
