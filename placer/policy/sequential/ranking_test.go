package sequential

import (
	"context"
	"math"
	"slices"
	"testing"

	"placer/plan"
)

// TestChooseWeighsWork: of two that gain about as much the one of less work comes first,
// and the work of what is made once, as the description of a level, counts until a proposal
// that needs it is chosen.
func TestChooseWeighsWork(t *testing.T) {
	logs := [][]float64{{-1}, {-0.9}, {-0.3}}
	all := []float64{1}
	for _, c := range []struct {
		name string
		w    work
		want []int
	}{
		{"alike", work{of: []float64{1, 1, 1}, needs: [][]int{nil, nil, nil}}, []int{0}},
		{"work", work{of: []float64{8, 1, 8}, needs: [][]int{nil, nil, nil}}, []int{1, 0}},
		{"level", work{of: []float64{1, 1, 1}, needs: [][]int{{0}, nil, nil}, once: []float64{7}}, []int{1, 0}},
		{"open level", work{of: []float64{1, 9, 1}, needs: [][]int{{0}, nil, {0}}, once: []float64{7}}, []int{0}},
		{"embedding too", work{of: []float64{1, 1, 1}, needs: [][]int{{0, 1}, {0}, nil}, once: []float64{2, 5}}, []int{2, 1, 0}},
	} {
		if got := choose(logs, all, c.w, 3); !slices.Equal(got, c.want) {
			t.Errorf("%s: chose %v, want %v", c.name, got, c.want)
		}
	}
}

// TestChooseGreedily: what is skipped because its gain was too small before would not have
// been chosen.
func TestChooseGreedily(t *testing.T) {
	r := stream(1, "choose", 0)
	const graphs, columns, n = 9, 60, 12
	logs, w, weight := make([][]float64, columns), work{of: make([]float64, columns), needs: make([][]int, columns), once: []float64{3, 1}}, make([]float64, graphs)
	for g := range weight {
		weight[g] = r.Float64()
	}
	for c := range logs {
		logs[c] = make([]float64, graphs)
		for g := range logs[c] {
			logs[c][g] = r.NormFloat64()
		}
	}
	for c := range columns {
		w.of[c], w.needs[c] = 0.5+r.Float64(), [][]int{nil, {0}, {0, 1}}[r.IntN(3)]
	}
	got := choose(logs, weight, w, n)
	best, made := slices.Repeat([]float64{math.Log(infeasibleExpert)}, graphs), []bool{false, false}
	for k, at := range got {
		rate := func(c int) float64 {
			gain, cost := 0.0, w.of[c]
			for g := range weight {
				gain += weight[g] * max(0, best[g]-logs[c][g])
			}
			for _, i := range w.needs[c] {
				if !made[i] {
					cost += w.once[i]
				}
			}
			return gain / cost
		}
		for c := range columns {
			if rate(c) > rate(at)+1e-9 {
				t.Fatalf("choice %d is %d, which gains %g for its work, %d gains %g", k, at, rate(at), c, rate(c))
			}
		}
		for _, i := range w.needs[at] {
			made[i] = true
		}
		for g := range best {
			best[g] = min(best[g], logs[at][g])
		}
	}
}

// TestExpected: what was tried by time steps counts by how the cuts of the graph at hand
// compare beside those of the graph on which it was tried; the rest as it is.
func TestExpected(t *testing.T) {
	x := trials{Cuts: []float64{0.4}, Graphs: make([][]float32, 1), Times: [][]float32{slices.Repeat([]float32{1}, len(proposals()))}}
	x.read()
	got := x.expected(-0.5)
	for c, y := range proposals() {
		want := 0.0
		if y.Level == timeStepName {
			want = -0.9
		}
		if math.Abs(got[c][0]-want) > 1e-12 {
			t.Fatalf("%v: expected %g, want %g", y, got[c][0], want)
		}
	}
}

// TestCut: a device had better take a time step in Transformer-XL, whose segments give back
// no gradients, and not in a recurrent network; a graph without time steps has no such cut.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		workload string
		sign     float64
	}{
		{"trfxl:layers=2,batch=8,sequence=128,segment=32,hidden=256,ffn=256,heads=4,head_dim=64,vocab=1000", -1},
		{"rnnlm:layers=4,unroll=6,batch=64,hidden=512,vocab=1000", 1},
		{"inception:batch=8,size=139", 0},
	} {
		f, _ := views(t, Case{Workload: c.workload, GPU: "p100", Devices: 4})
		if cut := f.cut(); cut*c.sign < 0 || (cut == 0) != (c.sign == 0) {
			t.Errorf("%s: the cut by time steps compares as %g, want the sign of %g", c.workload, cut, c.sign)
		}
	}
}

// TestProposalsHaveCuts: the balanced cuts that annealing begins with, by layers and by time
// steps, are among the proposals, under other names of devices at most.
func TestProposalsHaveCuts(t *testing.T) {
	c := small
	c.Devices = 2
	f, _ := views(t, c)
	p := f.problem
	seconds := p.Evaluator.OpSeconds(0)
	for level, want := range map[string][]uint8{
		"chain":      p.Units.Blocks(seconds, 2),
		timeStepName: p.Units.ByTimeStep(p.Graph).Blocks(seconds, 2),
	} {
		got := policy(t, 8).rollOut(context.Background(), f, []Proposal{{Level: level, Prior: 1}})[0].Device
		names := map[uint8]uint8{}
		for i, d := range got {
			if was, ok := names[want[i]]; ok && was != d {
				t.Fatalf("%s: op %d is not with its block", level, i)
			}
			names[want[i]] = d
		}
		if len(names) != 2 || names[0] == names[1] {
			t.Errorf("%s: two blocks became %v", level, names)
		}
	}
}

// TestDecisionOfPlacementAlone needs no decoder and decides what one would.
func TestDecisionOfPlacementAlone(t *testing.T) {
	f, _ := views(t, small)
	p, device := policy(t, 8), make([]uint8, f.problem.Graph.NumOps())
	f.problem.Tasks = plan.Place
	got := f.decision(p, 0, device)
	want := f.decoder(f.instance(atCells)).decide(device, p.levels(f.instance(atCells)))
	if !slices.Equal(got.Device, want.Device) || !slices.Equal(got.Priority, want.Priority) || !slices.Equal(got.Fusion, want.Fusion) {
		t.Error("placement alone and the decoder differ")
	}
}
