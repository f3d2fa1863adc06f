package listsched

import (
	"context"
	"fmt"
	"math"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// The worked example of the HEFT paper (figure 2 and table 3 there): ten tasks,
// three processors, times per task and processor, transfers in the same unit on a
// network without start-up cost.
var (
	paperTimes = [10][3]float64{{14, 16, 9}, {13, 19, 18}, {11, 13, 19}, {13, 8, 17}, {12, 13, 10}, {13, 16, 9}, {7, 15, 11}, {5, 11, 14}, {18, 12, 20}, {21, 7, 16}}
	paperEdges = [][3]int{{1, 2, 18}, {1, 3, 12}, {1, 4, 9}, {1, 5, 11}, {1, 6, 14}, {2, 8, 19}, {2, 9, 16}, {3, 7, 23}, {4, 8, 27}, {4, 9, 23}, {5, 9, 13}, {6, 8, 15}, {7, 10, 17}, {8, 10, 11}, {9, 10, 13}}
	paperRanks = [10]float64{108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667}
)

const paperMakespan = 80

const (
	// noLatency stands for the example's start-up cost of nothing; a machine's must
	// be positive.
	noLatency = 1.0 / (1 << 30)
	// scale makes the means of three times whole, so that tasks 3 and 4, whose ranks
	// are equal, tie exactly.
	scale = 3
)

type paperCosts struct{}

func (paperCosts) OpSeconds(i graph.OpID, d int) units.Seconds {
	return units.Seconds(scale * paperTimes[i][d])
}

func paperProblem(t *testing.T) *plan.Problem {
	t.Helper()
	b := graph.NewBuilder("paper")
	for i := range 10 {
		// A tensor per edge: the example's edges out of a task have different sizes.
		var in []graph.TensorID
		var outs []graph.Tensor
		for _, e := range paperEdges {
			if e[0] == i+1 {
				outs = append(outs, graph.Tensor{Bytes: units.Bytes(scale * e[2])})
			}
			if e[1] == i+1 {
				slot := 0
				for _, f := range paperEdges {
					if f[0] == e[0] && f[1] < e[1] {
						slot++
					}
				}
				in = append(in, b.Output(graph.OpID(e[0]-1), slot))
			}
		}
		b.Op(graph.Op{Name: fmt.Sprintf("t%d", i+1), Kind: "MatMul", Forward: graph.None}, in, outs...)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return newProblem(t, g, line(3), paperCosts{})
}

// line is a machine of d devices with a link of 1 B/s each way between any two.
func line(d int) *hw.Machine {
	m := &hw.Machine{Name: "three", Routes: make([][]int32, d*d)}
	for i := range d {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprint(i), Model: fmt.Sprint(i), Kind: hw.GPU, Memory: 1000, MemoryBandwidth: 1, Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1})
		for j := range d {
			if i != j {
				m.Routes[i*d+j] = []int32{int32(len(m.Links))}
				m.Links = append(m.Links, hw.Link{Name: fmt.Sprint(i, ">", j), Bandwidth: 1, Latency: noLatency})
			}
		}
	}
	return m
}

func newProblem(t *testing.T, g *graph.Graph, m *hw.Machine, c sim.CostModel) *plan.Problem {
	t.Helper()
	s, err := sim.New(g, m, c, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	ops := &unit.Partition{}
	for i := range g.NumOps() {
		ops.Of = append(ops.Of, int32(i))
		ops.Ops = append(ops.Ops, []graph.OpID{graph.OpID(i)})
	}
	h := &unit.Hierarchy{}
	for l := range h.Levels {
		h.Levels[l] = ops
	}
	return &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s}
}

func TestUpwardRank(t *testing.T) {
	for i, r := range upwardRank(newGapFilling(paperProblem(t))) {
		if math.Abs(r/scale-paperRanks[i]) > 1e-3 {
			t.Errorf("rank of task %d is %.3f, the paper's is %.3f", i+1, r/scale, paperRanks[i])
		}
	}
}

// TestPaperSchedule: the schedule of the paper's figure 3, which takes 80.
func TestPaperSchedule(t *testing.T) {
	s := newGapFilling(paperProblem(t))
	s.idle = true
	s.heft(context.Background())
	want := []int{2, 0, 2, 1, 2, 1, 2, 0, 1, 1}
	for i, d := range s.device {
		if d != want[i] {
			t.Errorf("task %d is on processor %d, the paper has it on %d", i+1, d+1, want[i]+1)
		}
	}
	if got := s.finish[9] / scale; math.Abs(got-paperMakespan) > 1e-3 {
		t.Errorf("the schedule takes %v, the paper's takes %v", got, paperMakespan)
	}
}

// TestETF: of two ready ops the one that can start first goes first, on the
// device where it can, and a consumer stays with its producer when a transfer
// would take longer than waiting.
func TestETF(t *testing.T) {
	b := graph.NewBuilder("fork")
	root := b.Op(graph.Op{Name: "root", Kind: "MatMul", Forward: graph.None}, nil, graph.Tensor{Bytes: 2}, graph.Tensor{Bytes: 50})
	b.Op(graph.Op{Name: "light", Kind: "MatMul", Forward: graph.None}, []graph.TensorID{b.Output(root, 0)})
	b.Op(graph.Op{Name: "heavy", Kind: "MatMul", Forward: graph.None}, []graph.TensorID{b.Output(root, 1)})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ETF().Place(context.Background(), newProblem(t, g, line(2), times{1, 3, 4}))
	if err != nil {
		t.Fatal(err)
	}
	// At 1 both are ready on device 0; heavy has the higher level (4 against 3) and
	// takes it until 5. light could start there at 5, on device 1 at 1 + 2.
	if want := []uint8{0, 1, 0}; string(out.Device) != string(want) {
		t.Errorf("devices %v, want %v", out.Device, want)
	}
}

type times []float64

func (c times) OpSeconds(i graph.OpID, _ int) units.Seconds { return units.Seconds(c[i]) }
