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
		a, b := built(t, s.Name), fresh(t, s.Name)
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
		checkAnnotations(t, built(t, s.Name), s.model.depth())
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
		g := built(t, name)
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
var siblings = map[string]func(*rapid.T) model{
	"rnnlm": func(t *rapid.T) model {
		return &rnnlm{layers: small(t, "layers"), unroll: small(t, "unroll"), common: training(t), hidden: 8 * dim(t, "hidden"),
			vocab: 10 + dim(t, "vocab"), dropout: rapid.Bool().Draw(t, "dropout")}
	},
	"gnmt": func(t *rapid.T) model {
		return &gnmt{layers: small(t, "layers"), source: small(t, "source"), target: small(t, "target"), common: training(t),
			hidden: 8 * dim(t, "hidden"), vocab: 10 + dim(t, "vocab"), dropout: rapid.Bool().Draw(t, "dropout")}
	},
	"trfxl": func(t *rapid.T) model {
		c := &transformerXL{layers: small(t, "layers"), common: training(t), segment: 1 + dim(t, "segment"), hidden: 8 * dim(t, "hidden"),
			ffn: 8, heads: dim(t, "heads"), headDim: dim(t, "dim"), vocab: 10, dropout: rapid.Bool().Draw(t, "dropout")}
		c.sequence = c.segment * dim(t, "segments")
		return c
	},
	"inception": func(t *rapid.T) model {
		return &inception{common: training(t), size: 107 + 32*dim(t, "size"), classes: 10, auxiliary: rapid.Bool().Draw(t, "auxiliary"),
			fusedNorm: rapid.Bool().Draw(t, "fused"), averages: rapid.Bool().Draw(t, "averages")}
	},
	"amoebanet": func(t *rapid.T) model {
		return &amoebaNet{cells: 3 * rapid.IntRange(1, 2).Draw(t, "groups"), filters: 16 * dim(t, "filters"), common: training(t), size: 31 + dim(t, "size"), classes: 10,
			fusedNorm: rapid.Bool().Draw(t, "fused"), averages: rapid.Bool().Draw(t, "averages"), decay: rapid.Bool().Draw(t, "decay")}
	},
	"wavenet": func(t *rapid.T) model {
		return &waveNet{stacks: small(t, "stacks"), layersPerStack: small(t, "per stack"), common: training(t), length: 32 * dim(t, "length"),
			residual: 8, skip: 8, levels: 16}
	},
	"decoder": func(t *rapid.T) model {
		c := &decoder{layers: small(t, "layers"), kvHeads: dim(t, "kv heads"), ffn: 8, vocab: 10, seq: 8 * dim(t, "seq"), common: training(t),
			experts: rapid.Int64Range(0, 3).Draw(t, "experts"), capacity: 100}
		c.dtype = graph.BF16
		c.heads = c.kvHeads * dim(t, "group")
		c.hidden = 2 * c.heads * dim(t, "dim")
		if c.experts > 0 {
			c.topK = rapid.Int64Range(1, c.experts).Draw(t, "top k")
		}
		return c
	},
	"vit": func(t *rapid.T) model {
		c := &vit{layers: small(t, "layers"), heads: dim(t, "heads"), ffn: 8, common: training(t), patch: dim(t, "patch"), classes: 10}
		c.hidden, c.size = 4*c.heads, c.patch*dim(t, "patches")
		return c
	},
	"unet": func(t *rapid.T) model {
		c := &unet{levels: small(t, "levels"), blocks: small(t, "blocks"), heads: dim(t, "heads"), attention: small(t, "attention") - 1, diffusion: rapid.Bool().Draw(t, "diffusion"), common: training(t)}
		c.width, c.size = 4*c.heads, dim(t, "size")<<(c.levels-1)
		return c
	},
	"resnext": func(t *rapid.T) model {
		return &resnext{blocks: small(t, "blocks"), branches: small(t, "branches"), width: 4 * dim(t, "width"), size: 15 + dim(t, "size"), classes: 10, norm: rapid.Bool().Draw(t, "norm"), common: training(t)}
	},
	"densenet": func(t *rapid.T) model {
		return &densenet{layers: small(t, "layers"), growth: 4 * dim(t, "growth"), size: 15 + dim(t, "size"), classes: 10, common: training(t)}
	},
	"recurrent": func(t *rapid.T) model {
		return &recurrent{layers: small(t, "layers"), unroll: small(t, "unroll"), inputs: dim(t, "inputs"), hidden: 8 * dim(t, "hidden"), classes: 10,
			gru: rapid.Bool().Draw(t, "gru"), bidirectional: rapid.Bool().Draw(t, "both"), common: training(t)}
	},
	"seq2seq": func(t *rapid.T) model {
		return &seq2seq{encoder: small(t, "encoder"), decoder: small(t, "decoder"), source: small(t, "source"), target: small(t, "target"), hidden: 8 * dim(t, "hidden"), vocab: 10, common: training(t)}
	},
	"transformer": func(t *rapid.T) model {
		c := &transformer{encoder: small(t, "encoder"), decoder: small(t, "decoder"), heads: dim(t, "heads"), ffn: 8, source: dim(t, "source"), target: dim(t, "target"), vocab: 10, common: training(t)}
		c.hidden = 4 * c.heads
		return c
	},
	"recommender": func(t *rapid.T) model {
		return &recommender{tables: small(t, "tables"), rows: 8, dim: dim(t, "dim"), lookups: dim(t, "lookups"), numbers: dim(t, "numbers"), bottom: small(t, "bottom"), top: small(t, "top"), width: 8,
			towers: small(t, "towers"), experts: small(t, "experts") - 1, common: training(t)}
	},
	"clip": func(t *rapid.T) model {
		c := &clip{images: small(t, "images"), captions: small(t, "captions"), heads: dim(t, "heads"), tokens: dim(t, "tokens"), patch: dim(t, "patch"), vocab: 10, joint: 8, common: training(t)}
		c.hidden, c.size = 4*c.heads, c.patch*dim(t, "patches")
		return c
	},
}

func small(t *rapid.T, name string) int { return rapid.IntRange(1, 4).Draw(t, name) }

func dim(t *rapid.T, name string) int64 { return int64(small(t, name)) }

func training(t *rapid.T) common {
	return common{batch: dim(t, "batch"), train: train.Config{
		Optimizer:      rapid.SampledFrom([]train.Optimizer{train.SGD, train.Momentum, train.Adam}).Draw(t, "optimizer"),
		StaticShapes:   rapid.Bool().Draw(t, "static"),
		GateGradients:  rapid.Bool().Draw(t, "gate"),
		ClipGlobalNorm: rapid.Bool().Draw(t, "clip"),
		InitOps:        rapid.Bool().Draw(t, "init"),
	}}
}

// TestSiblings builds random small siblings: each is valid, annotated, and the
// same when built again.
func TestSiblings(t *testing.T) {
	for _, f := range []struct {
		family string
		count  int // fewer of the families whose smallest graph is large
	}{{"rnnlm", 20}, {"gnmt", 20}, {"trfxl", 20}, {"inception", 4}, {"amoebanet", 6}, {"wavenet", 20}, {"decoder", 20}, {"vit", 20},
		{"unet", 8}, {"resnext", 6}, {"densenet", 8}, {"recurrent", 20}, {"seq2seq", 10}, {"transformer", 10}, {"recommender", 20}, {"clip", 10}} {
		draw := rapid.Custom(siblings[f.family])
		t.Run(f.family, func(t *testing.T) {
			for seed := range f.count {
				m := draw.Example(seed)
				g, err := build(m, "sibling")
				if err != nil {
					t.Fatalf("%+v: %v", m, err)
				}
				if h, err := build(m, "sibling"); err != nil || h.Hash() != g.Hash() {
					t.Fatalf("%+v, built again: %v, hash %.12s", m, err, g.Hash())
				}
				checkAnnotations(t, g, m.depth())
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
