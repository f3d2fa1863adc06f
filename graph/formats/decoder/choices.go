package decoder

import (
	"errors"
	"fmt"
	"slices"

	"placer/graph/formats/foreign"
	"placer/workloads"
)

// A choice makes block i of d another than Llama's; what is no block's, it sets each time. Functions
// that return one are not inlined: the table of families would have a copy of each for every use,
// a hundred kilobytes of program.
type choice func(c *config, d *workloads.Decoder, b *workloads.Block, i int64) error

// when makes a choice where the file says so.
//
//go:noinline
func when(says func(*config) bool, choose choice) choice {
	return func(c *config, d *workloads.Decoder, b *workloads.Block, i int64) error {
		if !says(c) {
			return nil
		}
		return choose(c, d, b, i)
	}
}

// biases gives biases to queries, keys and values, to attention's output, and to the
// perceptron.
//
//go:noinline
func biases(of func(*config) (qkv, out, mlp bool)) choice {
	return func(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
		qkv, out, mlp := of(c)
		for _, l := range []*workloads.Linear{&b.Attention.Query, &b.Attention.Key, &b.Attention.Value, &b.Attention.Fused} {
			l.Bias = qkv
		}
		b.Attention.Out.Bias = out
		for _, l := range []*workloads.Linear{&b.MLP.Gate, &b.MLP.Up, &b.MLP.Fused, &b.MLP.Down} {
			l.Bias = mlp
		}
		return nil
	}
}

// layerNorm has layer norms, with weights and biases or without, in place of root mean
// square norms.
//
//go:noinline
func layerNorm(weight, bias bool) choice {
	return func(_ *config, d *workloads.Decoder, b *workloads.Block, _ int64) error {
		for _, n := range []*workloads.Norm{&b.Before, &b.MLPBefore, &d.Norm} {
			n.Kind, n.Bias = "LayerNormalization", bias
			if !weight {
				n.Dims = nil
			}
		}
		return nil
	}
}

// What the perceptron of a parallel block reads: what attention reads, or a norm of its own.
const (
	sharedNorm = false
	ownNorm    = true
)

// parallel adds attention and the perceptron to the block's input at once.
//
//go:noinline
func parallel(own bool) choice {
	return func(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
		b.Parallel = true
		if !own {
			b.MLPBefore = workloads.Norm{}
		}
		return nil
	}
}

// rms is a root mean square norm of a module within a block.
func rms(path string, dims ...int64) workloads.Norm {
	return workloads.Norm{Path: path, Kind: "RMSNorm", Dims: dims}
}

// normsAfter has norms of what attention and perceptron give, in place of what they read.
func normsAfter(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.Before, b.MLPBefore = workloads.Norm{}, workloads.Norm{}
	b.After, b.MLPAfter = rms(b.Path+".post_attention_layernorm", c.hidden()), rms(b.Path+".post_feedforward_layernorm", c.hidden())
	return nil
}

// normsAround has norms of both.
//
//go:noinline
func normsAround(after, mlpBefore, mlpAfter string) choice {
	return func(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
		b.After, b.MLPBefore, b.MLPAfter = rms(b.Path+"."+after, c.hidden()), rms(b.Path+"."+mlpBefore, c.hidden()), rms(b.Path+"."+mlpAfter, c.hidden())
		return nil
	}
}

// headNorms normalises queries and keys of each head.
func headNorms(c *config, d *workloads.Decoder, b *workloads.Block, i int64) error {
	return headNormsNamed("q_norm", "k_norm")(c, d, b, i)
}

// wholeNorms normalises queries and keys of all heads together.
func wholeNorms(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	a := &b.Attention
	a.QueryNorm, a.KeyNorm = rms(a.Path+".q_norm", a.Heads*a.KeyDim), rms(a.Path+".k_norm", a.KVHeads*a.KeyDim)
	return nil
}

// cohereNorms normalises queries and keys of each head, by weights of each head.
func cohereNorms(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	if a := &b.Attention; c.QKNorm {
		a.QueryNorm, a.KeyNorm = rms(a.Path+".q_norm", a.Heads, a.KeyDim), rms(a.Path+".k_norm", a.KVHeads, a.KeyDim)
		a.QueryNorm.Kind, a.KeyNorm.Kind = "LayerNormalization", "LayerNormalization"
	}
	return nil
}

// noHeadNorms refuses what the family has in some models only.
func noHeadNorms(c *config, _ *workloads.Decoder, _ *workloads.Block, _ int64) error {
	if c.QKLayerNorm {
		return errors.New("qk_layernorm is not read: a norm of each head by itself")
	}
	return nil
}

// headNormsNamed normalises queries and keys of each head, by norms of other names.
//
//go:noinline
func headNormsNamed(query, key string) choice {
	return func(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
		a := &b.Attention
		a.QueryNorm, a.KeyNorm = rms(a.Path+"."+query, a.KeyDim), rms(a.Path+"."+key, a.KeyDim)
		return nil
	}
}

func fusedQKV(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.Attention.Fused.Name = "qkv_proj"
	return nil
}

func fusedMLP(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.MLP.Fused = workloads.Linear{Name: "gate_up_proj", Bias: b.MLP.Up.Bias}
	return nil
}

func noRotary(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.Attention.Rotary = false
	return nil
}

// rotaryIfLocal turns queries and keys in layers with windows alone, where there are any.
func rotaryIfLocal(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.Attention.Rotary = or(c.Window) == 0 || b.Attention.Window > 0
	return nil
}

// turned reports whether layer i of a SmolLM3 or a Llama 4 has rotary positions.
func (c *config) turned(i int64) bool {
	if i < int64(len(c.NoRope)) {
		return c.NoRope[i] != 0
	}
	return c.NoRopeEach <= 0 || (i+1)%c.NoRopeEach != 0
}

func smolRotary(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
	b.Attention.Rotary = c.turned(i)
	return nil
}

// named refuses a field that says something of each layer, but of n of them.
func (c *config) named(field string, n int) error {
	if int64(n) != c.layers() {
		return fmt.Errorf("%s names %d of %d layers", field, n, c.layers())
	}
	return nil
}

// layerType is what layer_types says of layer i.
func (c *config) layerType(i int64) (string, error) {
	if err := c.named("layer_types", len(c.LayerTypes)); err != nil {
		return "", err
	}
	return c.LayerTypes[i], nil
}

func sinks(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.Attention.Sinks = true
	return nil
}

func caps(c *config, d *workloads.Decoder, b *workloads.Block, _ int64) error {
	d.Head.Capped, b.Attention.Capped = c.CapLogits != nil, c.CapScores != nil
	return nil
}

func causal(c *config, _ *workloads.Decoder, _ *workloads.Block, _ int64) error {
	if c.Bidirectional == true {
		return errors.New("use_bidirectional_attention is not read: this is no decoder")
	}
	return nil
}

func headBias(_ *config, d *workloads.Decoder, _ *workloads.Block, _ int64) error {
	d.Head.Bias = true
	return nil
}

func scaledLogits(_ *config, d *workloads.Decoder, _ *workloads.Block, _ int64) error {
	d.Head.Scaled = true
	return nil
}

func scaledEmbedding(_ *config, d *workloads.Decoder, _ *workloads.Block, _ int64) error {
	d.Embedding.Scaled = true
	return nil
}

func scaledBlocks(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.Scaled = true
	return nil
}

//go:noinline
func embeddingNorm(path string) choice {
	return func(c *config, d *workloads.Decoder, _ *workloads.Block, _ int64) error {
		d.Embedding.Norm = workloads.Norm{Path: path, Kind: "LayerNormalization", Dims: []int64{c.hidden()}, Bias: true}
		return nil
	}
}

// multipliers are Granite's.
func multipliers(c *config, d *workloads.Decoder, b *workloads.Block, _ int64) error {
	other := func(x float64) bool { return x != 0 && x != 1 }
	d.Embedding.Scaled, d.Head.Scaled, b.Scaled = other(c.EmbedScale), other(c.LogitScale), other(c.BlockScale)
	return nil
}

// Local layers, where the file has no layer_types.

func everywhere(*config, int64) bool { return true }

func none(*config, int64) bool { return false }

// afterFourth makes every fourth layer one that sees all tokens, the first among them.
func afterFourth(_ *config, i int64) bool { return i%4 != 0 }

// each makes every nth layer one that sees all tokens; the file may say another n.
//
//go:noinline
func each(n int64) func(*config, int64) bool {
	return func(c *config, i int64) bool {
		of := n
		if p, ok := c.Pattern.(float64); ok && p >= 1 && p < 1<<20 {
			of = int64(p)
		}
		return (i+1)%of != 0
	}
}

// ifUsed has windows where use_sliding_window says so.
func ifUsed(c *config) bool { return c.UseWindow }

// windows has local layers: those of layer_types, or those that local names.
//
//go:noinline
func windows(local func(*config, int64) bool, also ...func(*config) bool) choice {
	return func(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
		if c.LayerTypes != nil {
			kind, err := c.layerType(i)
			if err != nil {
				return err
			}
			if !slices.Contains([]string{"sliding_attention", attends}, kind) {
				return fmt.Errorf("layer %d has %s, which is not read", i, foreign.Brief(kind))
			}
			local = func(*config, int64) bool { return kind == "sliding_attention" }
		} else if _, ok := c.Pattern.(string); ok {
			return errors.New("sliding_window_pattern is text, and layer_types is missing")
		}
		for _, says := range also {
			if !says(c) {
				return nil
			}
		}
		if local(c, i) {
			b.Attention.Window = or(c.Window)
		}
		return nil
	}
}

func oneKey(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.Attention.KVHeads = 1
	return nil
}

// falconHeads has one head of keys in Falcon 7B, as many as the file says in later ones.
func falconHeads(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	a := &b.Attention
	a.Rotary = !c.Alibi
	switch {
	case c.NewFalcon:
	case c.MultiQuery:
		a.KVHeads = 1
	default:
		a.KVHeads = a.Heads
	}
	return nil
}

func falconNorms(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	if !c.ParallelAttn && !c.NewFalcon {
		return nil
	}
	if c.NewFalcon && !c.ParallelAttn {
		return errors.New("new_decoder_architecture without parallel_attn is not read")
	}
	b.Parallel = true
	if c.NewFalcon && c.ParallelNorms == nil || or(c.ParallelNorms) == 2 {
		b.Before.Path, b.MLPBefore.Path = b.Path+".ln_attn", b.Path+".ln_mlp"
		return nil
	}
	b.MLPBefore = workloads.Norm{}
	return nil
}

// optKinds refuses the kinds of OPT that are built in another way.
func optKinds(c *config, d *workloads.Decoder, _ *workloads.Block, _ int64) error {
	if !c.NormBefore || c.NoFinalNorm || !c.Affine || c.Projected != 0 && c.Projected != c.hidden() {
		return errors.New("an OPT with norms behind sums, norms without weights or projected embeddings is not read")
	}
	d.Embedding.Rows = c.Positions + 2 // its first two rows are for padding
	return nil
}
