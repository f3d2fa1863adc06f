package workloads

import (
	"testing"

	"placer/graph"
	"placer/graph/train"

	"pgregory.net/rapid"
)

// TestDeterministic builds every workload twice.
func TestDeterministic(t *testing.T) {
	for _, s := range List() {
		a, b := build(t, s.Name), fresh(t, s.Name)
		if a.Hash() != b.Hash() {
			t.Errorf("%s: hashes %.12s and %.12s", s.Name, a.Hash(), b.Hash())
		}
		if a.Name() != s.Name {
			t.Errorf("%s: graph is named %q", s.Name, a.Name())
		}
	}
}

// TestAnnotations checks what baselines read: every forward and backward op has
// one of the model's layers, every layer has work, and the ops of a co-location
// group have one layer.
func TestAnnotations(t *testing.T) {
	for _, s := range List() {
		checkAnnotations(t, build(t, s.Name), s.Layers)
	}
}

func checkAnnotations(t *testing.T, g *graph.Graph, layers int) {
	t.Helper()
	flops := make([]float64, layers+1)
	group := map[int32]int32{}
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		if o.Layer < 0 || int(o.Layer) > layers || o.Layer == 0 && o.Phase != graph.Update {
			t.Errorf("%s: op %s is on layer %d of %d", g.Name(), o.Name, o.Layer, layers)
			return
		}
		flops[o.Layer] += float64(o.GEMM.FLOPs())
		if o.Group > 0 && o.Layer > 0 {
			if l, ok := group[o.Group]; ok && l != o.Layer {
				t.Errorf("%s: op %s is on layer %d, its group on %d", g.Name(), o.Name, o.Layer, l)
				return
			}
			group[o.Group] = o.Layer
		}
	}
	for l := 1; l <= layers; l++ {
		if flops[l] == 0 {
			t.Errorf("%s: layer %d of %d has no products", g.Name(), l, layers)
		}
	}
}

// TestVariablesAreTrained checks that every trainable variable is updated once,
// in its group, and that nothing else is.
func TestVariablesAreTrained(t *testing.T) {
	for _, name := range []string{"rnnlm2", "gnmt2", "trfxl2", "inception", "amoebanet", "wavenet2", "llama", "moe:layers=2", "vit"} {
		g := build(t, name)
		updates := map[graph.TensorID]int{}
		for i := range g.NumOps() {
			switch o := g.Op(graph.OpID(i)); o.Kind {
			case "ApplyAdam", "ApplyMomentum", "AssignSub":
				if o.Phase == graph.Update {
					v := g.Inputs(graph.OpID(i))[0]
					updates[v]++
					if owner := g.Op(g.Tensor(v).Producer); owner.Group != o.Group || owner.Params == 0 {
						t.Errorf("%s: %s updates %s with %d parameters, groups %d and %d", name, o.Name, owner.Name, owner.Params, o.Group, owner.Group)
					}
				}
			}
		}
		for i := range g.NumOps() {
			if o := g.Op(graph.OpID(i)); o.Params > 0 {
				first, _ := g.Outputs(graph.OpID(i))
				if updates[first] != 1 {
					t.Errorf("%s: variable %s is updated %d times", name, o.Name, updates[first])
				}
			}
		}
	}
}

// siblings draws small settings of every family.
var siblings = map[string]func(*rapid.T) (Params, int){
	"rnnlm": func(t *rapid.T) (Params, int) {
		c := RNNLMConfig{Layers: small(t, "layers"), Unroll: small(t, "unroll"), Batch: small(t, "batch"), Hidden: 8 * small(t, "hidden"),
			Vocab: 10 + small(t, "vocab"), Dropout: rapid.Bool().Draw(t, "dropout"), Train: training(t)}
		return c, c.Layers
	},
	"gnmt": func(t *rapid.T) (Params, int) {
		c := GNMTConfig{Layers: small(t, "layers"), Source: small(t, "source"), Target: small(t, "target"), Batch: small(t, "batch"),
			Hidden: 8 * small(t, "hidden"), Vocab: 10 + small(t, "vocab"), Dropout: rapid.Bool().Draw(t, "dropout"), Train: training(t)}
		return c, c.Layers
	},
	"trfxl": func(t *rapid.T) (Params, int) {
		c := TransformerXLConfig{Layers: small(t, "layers"), Batch: small(t, "batch"), Segment: 1 + small(t, "segment"), Hidden: 8 * small(t, "hidden"),
			FFN: 8, Heads: small(t, "heads"), HeadDim: small(t, "dim"), Vocab: 10, Dropout: rapid.Bool().Draw(t, "dropout"), Train: training(t)}
		c.Sequence = c.Segment * small(t, "segments")
		return c, c.Layers
	},
	"inception": func(t *rapid.T) (Params, int) {
		c := InceptionConfig{Batch: small(t, "batch"), Size: 107 + 32*small(t, "size"), Classes: 10, Auxiliary: rapid.Bool().Draw(t, "auxiliary"),
			FusedNorm: rapid.Bool().Draw(t, "fused"), Averages: rapid.Bool().Draw(t, "averages"), Train: training(t)}
		return c, inceptionLayers
	},
	"amoebanet": func(t *rapid.T) (Params, int) {
		c := AmoebaNetConfig{Cells: 3 * rapid.IntRange(1, 2).Draw(t, "groups"), Filters: 16 * small(t, "filters"), Batch: small(t, "batch"), Size: 31 + small(t, "size"), Classes: 10,
			FusedNorm: rapid.Bool().Draw(t, "fused"), Averages: rapid.Bool().Draw(t, "averages"), Decay: rapid.Bool().Draw(t, "decay"), Train: training(t)}
		return c, c.Cells + 4
	},
	"wavenet": func(t *rapid.T) (Params, int) {
		c := WaveNetConfig{Stacks: small(t, "stacks"), LayersPerStack: small(t, "per stack"), Batch: small(t, "batch"), Length: 32 * small(t, "length"),
			Residual: 8, Skip: 8, Levels: 16, Train: training(t)}
		return c, c.Stacks * c.LayersPerStack
	},
	"decoder": func(t *rapid.T) (Params, int) {
		c := DecoderConfig{Layers: small(t, "layers"), KVHeads: small(t, "kv heads"), FFN: 8, Vocab: 10, Seq: 8 * small(t, "seq"), Batch: small(t, "batch"),
			Experts: rapid.IntRange(0, 3).Draw(t, "experts"), Capacity: 100, DType: graph.BF16, Train: training(t)}
		c.Heads = c.KVHeads * small(t, "group")
		c.Hidden = 2 * c.Heads * small(t, "dim")
		if c.Experts > 0 {
			c.TopK = rapid.IntRange(1, c.Experts).Draw(t, "top k")
		}
		return c, c.Layers
	},
	"vit": func(t *rapid.T) (Params, int) {
		c := ViTConfig{Layers: small(t, "layers"), Heads: small(t, "heads"), FFN: 8, Batch: small(t, "batch"), Patch: small(t, "patch"), Classes: 10, DType: graph.F32, Train: training(t)}
		c.Hidden, c.Size = 4*c.Heads, c.Patch*small(t, "patches")
		return c, c.Layers
	},
}

func small(t *rapid.T, name string) int { return rapid.IntRange(1, 4).Draw(t, name) }

func training(t *rapid.T) train.Config {
	return train.Config{
		Optimizer:      rapid.SampledFrom([]train.Optimizer{train.SGD, train.Momentum, train.Adam}).Draw(t, "optimizer"),
		StaticShapes:   rapid.Bool().Draw(t, "static"),
		GateGradients:  rapid.Bool().Draw(t, "gate"),
		ClipGlobalNorm: rapid.Bool().Draw(t, "clip"),
		InitOps:        rapid.Bool().Draw(t, "init"),
	}
}

// TestSiblings builds random small siblings: each is valid, annotated, and the
// same when built again.
func TestSiblings(t *testing.T) {
	for _, f := range []struct {
		family string
		count  int // fewer of the families whose smallest graph is large
	}{{"rnnlm", 20}, {"gnmt", 20}, {"trfxl", 20}, {"inception", 4}, {"amoebanet", 6}, {"wavenet", 20}, {"decoder", 20}, {"vit", 20}} {
		type sibling struct {
			params Params
			layers int
		}
		draw := rapid.Custom(func(t *rapid.T) sibling {
			p, layers := siblings[f.family](t)
			return sibling{p, layers}
		})
		t.Run(f.family, func(t *testing.T) {
			for seed := range f.count {
				s := draw.Example(seed)
				g, err := s.params.Build()
				if err != nil {
					t.Fatalf("%+v: %v", s.params, err)
				}
				if h, err := s.params.Build(); err != nil || h.Hash() != g.Hash() {
					t.Fatalf("%+v, built again: %v, hash %.12s", s.params, err, g.Hash())
				}
				checkAnnotations(t, g, s.layers)
			}
		})
	}
}

// BenchmarkBuild measures the largest workload.
func BenchmarkBuild(b *testing.B) {
	b.Run("workload=gnmt8", func(b *testing.B) {
		for b.Loop() {
			fresh(b, "gnmt8")
		}
	})
}
