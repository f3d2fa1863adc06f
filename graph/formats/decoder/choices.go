package decoder

import (
	"cmp"
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

// llama4Attention has rotary positions, and norms without weights of the queries and keys that
// they turn, in layers that see a chunk of the tokens alone: at most as many as a window of the
// chunk's size, for which a chunk counts. The others see all.
func llama4Attention(c *config, d *workloads.Decoder, b *workloads.Block, i int64) error {
	if err := smolRotary(c, d, b, i); err != nil {
		return err
	}
	a := &b.Attention
	if c.QKNorm && a.Rotary {
		a.QueryNorm = workloads.Norm{Path: a.Path + ".qk_norm", Kind: "RMSNorm"}
		a.KeyNorm = a.QueryNorm
	}
	local := a.Rotary
	if c.LayerTypes != nil {
		kind, err := c.layerType(i)
		if err != nil {
			return err
		}
		local = kind == "chunked_attention"
	}
	if local {
		a.Window = or(c.Chunk)
	}
	return nil
}

// layerType is what layer_types says of layer i.
func (c *config) layerType(i int64) (string, error) {
	if int64(len(c.LayerTypes)) != c.layers() {
		return "", fmt.Errorf("layer_types names %d of %d layers", len(c.LayerTypes), c.layers())
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
			if !slices.Contains([]string{"sliding_attention", "full_attention"}, kind) {
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

// routed is how a family's mixtures are built.
type routed struct {
	path       string // of the module; "" for the perceptron's
	router     string
	bias       bool // of router and experts
	correction bool // of the router's scores
	statics    string
	shared     string
	sharedGate string
	// sharedCount is how many experts' columns the shared one has where no file says.
	sharedCount int64
}

// Which layers are mixtures.

func allSparse(*config, int64) bool { return true }

func denseFirst(c *config, i int64) bool { return i >= or(c.DenseFirst) }

// typed has the layers of mlp_layer_types, or all behind the first ones, of which there are dense
// where the file does not say.
//
//go:noinline
func typed(dense int64) func(*config, int64) bool {
	return func(c *config, i int64) bool {
		if c.MLPTypes != nil {
			return c.MLPTypes[i] == "sparse"
		}
		if c.DenseFirst != nil {
			return i >= *c.DenseFirst
		}
		return i >= dense
	}
}

// between has every so many of the layers from moe_layer_start_index to moe_layer_end_index.
func between(c *config, i int64) bool {
	last := c.layers() - 1
	if c.ErnieLast != nil && *c.ErnieLast >= 0 {
		last = *c.ErnieLast
	}
	return i >= c.ErnieFirst && i <= last && (i+1)%max(c.ErnieEvery, 1) == 0
}

// interleaved has the layers of moe_layers, or every so many.
func interleaved(c *config, i int64) bool {
	if c.MoELayers != nil {
		return slices.Contains(c.MoELayers, i)
	}
	return (i+1)%max(c.MoEStep, 1) == 0
}

func sparseSteps(c *config, i int64) bool {
	return c.experts() > 0 && !slices.Contains(c.DenseLayers, i) && (i+1)%max(c.SparseStep, 1) == 0
}

// experts has mixtures of experts in some layers.
//
//go:noinline
func experts(r routed, sparse func(*config, int64) bool) choice {
	return func(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
		if !sparse(c, i) {
			return nil
		}
		m := &b.MLP
		if r.path != "" {
			m.Path = b.Path + "." + r.path
		}
		width := c.ExpertFFN
		if width == 0 {
			width = c.ffn()
		}
		m.Experts = &workloads.Experts{Path: "experts", Count: c.experts(), PerToken: cmp.Or(c.TopK, c.ErnieTopK), Width: width, Activation: m.Activation, Bias: r.bias,
			Router: workloads.Linear{Name: r.router, Bias: r.bias}, Correction: r.correction, Statics: r.statics}
		if r.shared == "" {
			return nil
		}
		shared := *m
		shared.Experts, shared.Path, shared.Width = nil, m.Path+"."+r.shared, c.SharedFFN
		if c.SharedFFN == 0 {
			shared.Width = width * max(c.Shared, c.NumShared, c.ErnieShared, r.sharedCount)
		}
		m.Experts.Shared, m.Experts.SharedGate = &shared, workloads.Linear{Name: r.sharedGate}
		return nil
	}
}

// widerDense gives layers that are no mixtures a size of their own.
func widerDense(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	if b.MLP.Experts == nil {
		b.MLP.Width = or(c.DenseFFN, &b.MLP.Width)
	}
	return nil
}

// indexed has each token attend to those that an indexer chooses for it, where there are more.
func indexed(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
	t := b.Attention.Latent
	if t.QueryRank == 0 {
		return errors.New("an indexer without q_lora_rank is not read")
	}
	t.Index = &workloads.Index{Path: b.Attention.Path + ".indexer", Heads: c.IndexHeads, Dim: c.IndexDim, PerToken: c.IndexTopK}
	switch {
	case c.Indexers != nil && int64(len(c.Indexers)) != c.layers():
		return fmt.Errorf("indexer_types names %d of %d layers", len(c.Indexers), c.layers())
	case c.Indexers != nil:
		t.Index.Given = c.Indexers[i] == "shared"
	case c.IndexPattern != "" && int64(len(c.IndexPattern)) != c.layers():
		return fmt.Errorf("index_topk_pattern names %d of %d layers", len(c.IndexPattern), c.layers())
	case c.IndexPattern != "":
		t.Index.Given = c.IndexPattern[i] == 'S'
	default:
		first := int64(2)
		if c.IndexFirst != nil {
			first = *c.IndexFirst
		}
		t.Index.Given = max(i-first+1, 0)%max(c.IndexEvery, 1) != 0
	}
	if i == 0 && t.Index.Given {
		return errors.New("the first layer has no indexer to share")
	}
	return nil
}

// linear has linear attention like t in all layers but those of full_attention.
//
//go:noinline
func linear(t workloads.Delta) choice {
	return func(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
		kind := "linear_attention"
		if (i+1)%cmp.Or(max(c.FullEvery, 0), 4) == 0 {
			kind = "full_attention"
		}
		if c.LayerTypes != nil {
			var err error
			if kind, err = c.layerType(i); err != nil {
				return err
			}
		}
		switch kind {
		case "full_attention":
			return nil
		case "linear_attention":
		default:
			return fmt.Errorf("layer %d has %s, which is not read", i, foreign.Brief(kind))
		}
		t := t
		t.Path, t.Out = b.Path+".linear_attn", workloads.Linear{Name: "out_proj"}
		t.KeyHeads, t.ValueHeads, t.KeyDim, t.ValueDim, t.Kernel = c.LinearKeys, c.LinearValues, c.LinearKey, c.LinearValue, c.LinearKernel
		b.Delta = &t
		return nil
	}
}

// gated multiplies what attention gives by the sigmoids of columns that queries have more.
func gated(_ *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	b.Attention.Gated = true
	return nil
}

// latent is DeepSeek's attention.
func latent(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	a := &b.Attention
	a.KVHeads, a.KeyDim, a.ValueDim, a.Out.Bias = a.Heads, c.NopeDim+c.RopeDim, cmp.Or(c.ValueDim, c.hidden()/max(a.Heads, 1)), c.AttentionBias
	a.Latent = &workloads.Latent{QueryRank: or(c.QueryRank), Rank: c.Rank, Rope: c.RopeDim, Bias: c.AttentionBias,
		QueryNorm: rms(a.Path+".q_a_layernorm", or(c.QueryRank)), Norm: rms(a.Path+".kv_a_layernorm", c.Rank)}
	return nil
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
