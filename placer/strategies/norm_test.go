package strategies

import (
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/units"
)

// TestNorm: ranks that have some of the gradients agree on the norm of all by one all-reduce of one
// number a step, and clip behind it: under ZeRO, in a pipeline and where products are split; replicas
// that have all gradients send nothing for it (Megatron-LM, megatron/core/optimizer/clip_grads.py).
func TestNorm(t *testing.T) {
	for _, c := range []struct {
		text          string
		groups, ranks int
	}{
		{"ddp=4", 0, 0},
		{"zero-1=4", 1, 4},
		{"zero-2=4 mb=2", 1, 4},
		{"zero-3=4", 1, 4},
		{"tp=2", 1, 2},
		{"tp=2 vocab sp mb=2", 1, 2},
		{"ddp=2 tp=2", 2, 2},
		{"1f1b=2 mb=4", 1, 2},
		{"ddp=2 1f1b=2 mb=2", 2, 2},
		{"zero-1=2 1f1b=2 tp=2 mb=2", 1, 8},
	} {
		s, err := strategy.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, fold := range []bool{false, true} {
			x, j := models8(t, small[0])
			x.family = capturedAs(t, clipped)
			step, err := x.derive(j, s, fold)
			if err != nil {
				t.Fatal(err)
			}
			groups := c.groups
			if fold {
				groups = min(1, groups)
			}
			found := 0
			for _, k := range step.Collectives {
				if k.Axis != strategy.NormAxis {
					continue
				}
				found++
				if k.Kind != strategy.AllReduce || k.Bytes != 4 || k.Ranks != c.ranks {
					t.Errorf("%s: %+v, want one number among %d", c.text, k, c.ranks)
				}
				members := s.Groups(k)
				if len(members) != c.groups {
					t.Errorf("%s: %v, want %d groups", c.text, members, c.groups)
				}
			}
			if found != groups {
				t.Errorf("%s: the norm is all-reduced %d times, want %d", c.text, found, groups)
			}
			clippedBehind(t, c.text, x, step)
			if s.Pipeline > 1 { // nothing but activations
				other := s.Rank(0, 1, 0)
				want := units.Bytes(4 * samples / s.Data * 8 * columns)
				if to, back := between(step, 0, other), between(step, other, 0); to != want || back != want {
					t.Errorf("%s: stages send %v and %v, want %v each", c.text, to, back, want)
				}
			}
		}
	}
}

// clippedBehind holds that each clipped gradient is behind the norms of all gradients of all stages.
func clippedBehind(t *testing.T, text string, x *models, step *strategy.Step) {
	t.Helper()
	g := step.Graph
	micro, err := x.graph(variant{16, strategy.RecomputeNothing, 0})
	if err != nil {
		t.Fatal(err)
	}
	isNorm := func(i graph.OpID) bool { // of one gradient, not of the norms
		o := g.Op(i)
		from := step.From[i]
		return from != graph.None && o.Kind == "ReduceL2" && micro.Op(micro.Tensor(micro.Inputs(from)[0]).Producer).Kind != "Pack"
	}
	all := map[int32]int{}
	for i := range graph.OpID(g.NumOps()) {
		if isNorm(i) {
			all[step.Rank[i]]++
		}
	}
	clips := 0
	for i := range graph.OpID(g.NumOps()) {
		from := step.From[i]
		if g.Op(i).Phase != graph.Update || g.Op(i).Kind != "Mul" || from == graph.None || micro.Op(from).FLOPs < 2 {
			continue
		}
		clips++
		behind := before(g, i)
		seen := map[int32]int{}
		for p := range behind {
			if isNorm(p) {
				seen[step.Rank[p]]++
			}
		}
		s := step.Strategy
		for rank, n := range all {
			width := s.Data * s.Tensor // of a stage; its ranks are alike, and one op stands for the part of each
			if int(rank)%width == int(step.Rank[i])%width && seen[rank] != n {
				t.Fatalf("%s: %s on rank %d is behind %d norms of rank %d, want %d", text, g.Op(i).Name, step.Rank[i], seen[rank], rank, n)
			}
		}
	}
	if clips < 28 {
		t.Errorf("%s: %d gradients are clipped, want 28 or more", text, clips)
	}
}

// TestNormOfTensorFlow: tf.clip_by_global_norm, halves of squares that are added up, likewise.
func TestNormOfTensorFlow(t *testing.T) {
	x, j := models8(t, "gnmt:layers=2,source=4,target=4,hidden=64,vocab=500")
	for text, want := range map[string]int{"ddp=4": 0, "zero-1=4": 1, "1f1b=2 mb=2": 1} {
		s, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		step, err := x.derive(j, s, true)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, k := range step.Collectives {
			if k.Axis == strategy.NormAxis {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: the norm is all-reduced %d times, want %d", text, n, want)
		}
	}
}
