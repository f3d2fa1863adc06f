package strategies

import (
	"math"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/units"
)

// training is a step of 8 experts, two a token, with room for an even share. Sizes divide.
const training = "moe:layers=2,hidden=256,heads=8,kv_heads=8,ffn=512,seq=64,vocab=512,experts=8,top_k=2,capacity=100,master_weights=true"

// ofExpert reports whether an op of the model holds, computes or updates an expert's part.
func ofExpert(o *graph.Op) bool {
	for _, name := range []string{"experts/expert_", "experts/gate", "experts/up", "experts/down", "experts/BatchMatMul"} {
		if strings.Contains(o.Name, name) {
			return true
		}
	}
	return false
}

// TestExpertsOfTraining: of a step that trains, replicas hold the weights, master weights and
// moments of their experts alone, each expert as often as there are groups; products of experts do
// as much as those of the whole batch, forward and backward; rows are sent to experts and back
// in both passes, again where layers are computed again; and gradients of experts are reduced among
// those that have them alone.
func TestExpertsOfTraining(t *testing.T) {
	for _, form := range []string{"", ",grouped=true"} {
		t.Run("experts"+form, func(t *testing.T) { expertsOfTraining(t, training+form) })
	}
}

func expertsOfTraining(t *testing.T, training string) {
	_, j := models8(t, small[0])
	const batch, layers = 32, 2
	const hidden, ffn, experts = 256, 512, 8
	for _, text := range []string{"ddp=8 ep", "ddp=8 ep=4", "ddp=8 ep=2 mb=2", "zero-1=8 ep", "zero-1=8 ep=4", "zero-2=8 ep=2 mb=2", "zero-3=8 ep", "zero-3=8 ep=2 recompute", "ddp=4 ep tp=2", "ddp=4 ep tp=2 vocab sp", "ddp=4 ep=2 tp=2 sp mb=2 recompute", "zero-1=2 ep 1f1b=2 tp=2 sp mb=2", "ddp=2 ep 1f1b=2 tp=2 mb=2", "ddp=8 ep recompute", "ddp=4 ep=2 1f1b=2 mb=2 recompute"} {
		at, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		x := newModels(family(training), batch)
		step, err := x.derive(j, at, false)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all, err := x.graph(variant{batch, at.Recompute, 0})
		if err != nil {
			t.Fatal(err)
		}
		sum := func(g *graph.Graph, what func(o *graph.Op) float64) (n float64) {
			for i := range graph.OpID(g.NumOps()) {
				if o := g.Op(i); ofExpert(o) && !strings.Contains(o.Name, "AllToAll") && !strings.Contains(o.Name, "AllReduce") {
					n += what(o)
				}
			}
			return n
		}
		groups := float64(at.Data / at.Experts)
		if at.Sharding == strategy.ShardAll { // of the weights that each expert's replicas have a share each
			groups = 1
		}
		params := func(o *graph.Op) float64 { return float64(o.Params) }
		if got, want := sum(step.Graph, params), groups*sum(all, params); got != want || want != groups*layers*experts*3*hidden*ffn {
			t.Errorf("%s: ranks hold %g parameters of experts, want %g", text, got, want)
		}
		// Weights of bf16 and what Adam holds in f32: the weights again and two moments.
		state := func(o *graph.Op) float64 {
			if o.Phase == graph.Update {
				return float64(o.Resident)
			}
			return 0
		}
		copies := float64(at.Data / at.Experts)
		if at.Sharding >= strategy.ShardOptimizer {
			copies = 1
		}
		if got, want := sum(step.Graph, state), copies*sum(all, state); got != want || want != copies*layers*experts*3*hidden*ffn*12 {
			t.Errorf("%s: ranks hold %g bytes of the state of experts, want %g", text, got, want)
		}
		flops := func(o *graph.Op) float64 {
			if o.GEMM.IsZero() {
				return 0
			}
			return float64(o.FLOPs)
		}
		if got, want := sum(step.Graph, flops), sum(all, flops); got != want {
			t.Errorf("%s: experts do %g FLOPs, want %g", text, got, want)
		}
		var sent, reduced units.Bytes
		for _, c := range step.Collectives {
			switch {
			case c.Kind == strategy.AllToAll:
				sent += c.Sent() * units.Bytes(c.Ranks)
			case c.Axis == strategy.ReplicaAxis && c.Kind != strategy.AllGather:
				reduced += c.Bytes
			}
		}
		rows := units.Bytes(batch * 64 * 2 * hidden * 2) // of bf16, in a layer
		// There and back, twice, each row once, whatever ranks share products. Layers but the last are
		// computed again.
		times := units.Bytes(layers * 4)
		if at.Recompute == strategy.RecomputeLayers {
			times += (layers - 1) * 2
		}
		want := times * rows * units.Bytes(at.Experts-1) / units.Bytes(at.Experts)
		if sent != want {
			t.Errorf("%s: %v of rows are sent, want %v", text, sent, want)
		}
		weights := units.Bytes(layers * experts * 3 * hidden * ffn * 2)
		if at.Sharding >= strategy.ShardGradients {
			weights *= units.Bytes(at.MicroBatches)
		}
		if at.Experts == at.Data {
			weights = 0
		}
		if reduced != weights {
			t.Errorf("%s: %v of experts' gradients are reduced, want %v", text, reduced, weights)
		}
		r, err := j.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		if at.Pipeline > 1 {
			continue
		}
		folded, err := x.derive(j, at, true)
		if err != nil {
			t.Fatal(err)
		}
		one, err := j.Run(folded)
		if err != nil {
			t.Fatal(err)
		}
		// Rings of one op and of many take and hold parts at other times.
		if d := one.Seconds/r.Seconds - 1; math.Abs(d) > 0.08 {
			t.Errorf("%s: %g s where one rank stands for all, %g s as all", text, one.Seconds, r.Seconds)
		}
		if d := float64(one.Peak[0])/float64(r.Peak[0]) - 1; math.Abs(d) > 0.08 {
			t.Errorf("%s: rank 0 holds %v where it stands for all, %v as one of them", text, one.Peak[0], r.Peak[0])
		}
	}
}
