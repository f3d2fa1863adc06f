package strategies

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Of the chain's ops: a forward pass takes 1 s, a backward pass 2 s, all else no time that
// counts.
const (
	forwardSeconds  = 1
	backwardSeconds = 2
	noSeconds       = 1e-12
	saved           = 1 << 20 // bytes of a micro-batch that a layer keeps for its gradients
)

// chain is a model of n equal layers.
func chain(t testing.TB, n int) *strategy.Model {
	t.Helper()
	b := graph.NewBuilder("chain")
	word := graph.Tensor{DType: graph.F32, Bytes: 4}
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Layer: 1, Forward: graph.None}, nil, word), 0)
	weight, forward := make([]graph.TensorID, n), make([]graph.OpID, n)
	for k := range n {
		layer := int32(k + 1)
		w := b.Op(graph.Op{Name: fmt.Sprintf("w%d", k), Kind: "VariableV2", Layer: layer, Group: layer, Params: 1, Resident: 4, Forward: graph.None}, nil, graph.Tensor{DType: graph.F32, Bytes: 4, Resident: true})
		weight[k] = b.Output(w, 0)
		forward[k] = b.Op(graph.Op{Name: fmt.Sprintf("f%d", k), Kind: "MatMul", Layer: layer, FLOPs: 8, Forward: graph.None}, []graph.TensorID{x, weight[k]}, word, graph.Tensor{DType: graph.F32, Bytes: saved})
		x = b.Output(forward[k], 0)
	}
	for k := n - 1; k >= 0; k-- {
		layer := int32(k + 1)
		g := b.Op(graph.Op{Name: fmt.Sprintf("b%d", k), Kind: "MatMul", Phase: graph.Backward, Layer: layer, FLOPs: 16, Forward: forward[k]}, []graph.TensorID{x, b.Output(forward[k], 1), weight[k]}, word, word)
		x = b.Output(g, 0)
		b.Op(graph.Op{Name: fmt.Sprintf("u%d", k), Kind: "ApplyGradientDescent", Phase: graph.Update, Layer: layer, Group: layer, Forward: graph.None}, []graph.TensorID{weight[k], b.Output(g, 1)})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, err := strategy.NewModel(g, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// chainCosts times a step of a chain.
type chainCosts struct{ step *strategy.Step }

func (c chainCosts) OpSeconds(i graph.OpID, _ int) units.Seconds {
	o := c.step.Graph.Op(i)
	switch {
	case o.Kind != "MatMul":
		return noSeconds
	case o.Phase == graph.Backward:
		return backwardSeconds
	}
	return forwardSeconds
}

// star is a machine of n devices behind a switch, a link each way.
func star(t testing.TB, n int, bandwidth units.BytesPerSecond, latency units.Seconds) *hw.Machine {
	t.Helper()
	m := &hw.Machine{Name: "star"}
	var cables []hw.Cable
	for k := range n {
		name := fmt.Sprintf("gpu:%d", k)
		m.Devices = append(m.Devices, hw.Device{Name: name, Kind: hw.GPU, Memory: 1 << 40, MemoryBandwidth: 1e12, Peak: map[string]units.FLOPsPerSecond{"f32": 1e12}, SMs: 1})
		cables = append(cables, hw.Cable{A: name, B: "switch", Bandwidth: bandwidth, Latency: latency})
	}
	if err := m.Connect(cables); err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); n > 1 && err != nil {
		t.Fatal(err)
	}
	return m
}

// runChain simulates a strategy of a chain of as many layers as it has chunks.
func runChain(t testing.TB, s strategy.Strategy) *sim.Result {
	t.Helper()
	m := chain(t, s.Pipeline*s.Chunks)
	blocks := strategy.NewBlocks(m, make([]float64, m.Micro.NumOps()))
	bounds := make([]int, s.Pipeline*s.Chunks)
	for k := range bounds {
		bounds[k] = k
	}
	step, err := strategy.Derive(m, blocks, s, strategy.Options{Bounds: bounds})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := withStreams(star(t, s.Ranks(), 1e30, 1e-12))
	if err != nil {
		t.Fatal(err)
	}
	x, err := sim.New(step.Graph, machine, chainCosts{step}, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	d := plan.Decision{Priority: make([]int32, len(step.Rank))}
	for i, r := range step.Rank {
		d.Priority[i] = int32(i)
		if step.Stream[i] {
			r += int32(s.Ranks())
		}
		d.Device = append(d.Device, uint8(r))
	}
	r, err := x.Run(&plan.Plan{Decision: d}, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func piped(schedule strategy.Schedule, p, m, v int) strategy.Strategy {
	return strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: p, Tensor: 1}, MicroBatches: m, Schedule: schedule, Chunks: v, Bucket: strategy.DefaultBucket}
}

// TestBubble: the idle share of equal stages is (P-1)/(M+P-1) under GPipe (Huang et al.,
// 2019, section 2.3) and 1F1B, and (P-1)/(V*M+P-1) interleaved: Narayanan et al., SC 2021,
// section 2.2.2, state (P-1)/(V*M) of the time that a stage computes.
func TestBubble(t *testing.T) {
	for _, p := range []int{2, 3, 4, 8} {
		for _, m := range []int{1, 2, 4, 8, 24} {
			for _, schedule := range []strategy.Schedule{strategy.GPipe, strategy.OneFOneB, strategy.Interleaved} {
				for _, v := range []int{1, 2, 3} {
					s := piped(schedule, p, m, v)
					if s.Validate() != nil {
						continue
					}
					r := runChain(t, s)
					busy := 0.0
					for d := range p {
						busy += float64(r.Busy[d])
					}
					got := 1 - busy/(float64(p)*float64(r.Makespan))
					want := float64(p-1) / float64(v*m+p-1)
					if math.Abs(got-want) > 1e-6 {
						t.Errorf("%v: bubble %.8f, want %.8f", s, got, want)
					}
				}
			}
		}
	}
}

// TestStageMemory: stage s, from 0, keeps the activations of min(M, P-s) micro-batches
// under 1F1B and of all M under GPipe (Narayanan et al., SC 2021, section 2.2.1).
func TestStageMemory(t *testing.T) {
	for _, p := range []int{2, 4, 8} {
		for _, m := range []int{1, 3, 8, 16} {
			for _, schedule := range []strategy.Schedule{strategy.GPipe, strategy.OneFOneB} {
				r := runChain(t, piped(schedule, p, m, 1))
				for stage := range p {
					want := m
					if schedule == strategy.OneFOneB {
						want = min(m, p-stage)
					}
					if got := float64(r.PeakBytes[stage]) / saved; math.Abs(got-float64(want)) > 0.01 {
						t.Errorf("%v with %d stages, %d micro-batches: stage %d keeps %.2f, want %d", schedule, p, m, stage, got, want)
					}
				}
			}
		}
	}
}

// TestInterleavedWarmUp: before its first backward pass stage s, from 0, runs as many forward
// passes as Megatron-LM's interleaved schedule warms up with, 2(P-s-1) + (V-1)P of the M*V, and
// the one behind them, or all where M = P (forward_backward_pipelining_with_interleaving:
// "if number of microbatches is just the number of pipeline stages"). It keeps so many.
func TestInterleavedWarmUp(t *testing.T) {
	for _, c := range []struct {
		p, m, v int
		want    []int
	}{
		{4, 8, 2, []int{11, 9, 7, 5}},
		{4, 4, 2, []int{8, 8, 8, 8}},
		{2, 2, 3, []int{6, 6}},
		{2, 4, 3, []int{7, 5}},
		{3, 6, 2, []int{8, 6, 4}},
	} {
		s := piped(strategy.Interleaved, c.p, c.m, c.v)
		r := runChain(t, s)
		for stage, want := range c.want {
			if kept := float64(r.PeakBytes[stage]) / saved; s.WarmUp(stage) != want || math.Abs(kept-float64(want)) > 0.01 {
				t.Errorf("%v: stage %d warms up with %d and keeps %.2f, want %d", s, stage, s.WarmUp(stage), kept, want)
			}
		}
	}
}

// TestCutCountsWarmUp: five layers make four chunks, one of them of two. With as many
// micro-batches as stages either stage counts on all of its four passes: two layers have eight
// activations, which the first stage has room for and the second has not.
func TestCutCountsWarmUp(t *testing.T) {
	m := chain(t, 5)
	seconds := make([]float64, m.Micro.NumOps())
	for i := range seconds {
		seconds[i] = float64(chainCosts{&strategy.Step{Graph: m.Micro}}.OpSeconds(graph.OpID(i), 0))
	}
	machine := star(t, 2, 1e30, 1e-12)
	machine.Devices[0].Memory, machine.Devices[1].Memory = 17*saved/2, 15*saved/2
	bounds, err := cut(machine, strategy.NewBlocks(m, seconds), [][]float64{seconds, seconds}, piped(strategy.Interleaved, 2, 2, 2))
	if want := []int{0, 1, 2, 4}; err != nil || !slices.Equal(bounds, want) {
		t.Errorf("chunks begin at %v, want %v: %v", bounds, want, err)
	}
}

// TestRing: a ring all-reduce takes 2(D-1) steps of a D-th of the tensor each, a
// reduce-scatter or an all-gather half of them (Patarasuk and Yuan, JPDC 2009).
func TestRing(t *testing.T) {
	const bandwidth, latency = 1e11, 3e-6
	for _, d := range []int{2, 3, 4, 8} {
		for _, size := range []units.Bytes{1 << 10, 8 * 3 * 1e6} {
			for _, kind := range []strategy.Kind{strategy.AllReduce, strategy.ReduceScatter, strategy.AllGather, strategy.AllToAll} {
				j, err := NewJudge(source(), star(t, d, bandwidth, latency/2))
				if err != nil {
					t.Fatal(err)
				}
				mesh := strategy.Mesh{Data: d, Pipeline: 1, Tensor: 1}
				got, err := j.ringSeconds(mesh, strategy.Collective{Kind: kind, Bytes: size, Ranks: d})
				if err != nil {
					t.Fatal(err)
				}
				part := math.Ceil(float64(size) / float64(d))
				want := float64(kind.Steps(d)) * (latency + part/bandwidth)
				if math.Abs(got/want-1) > 1e-6 {
					t.Errorf("%v of %v among %d: %.9g s, want %.9g", kind, size, d, got, want)
				}
			}
		}
	}
}
