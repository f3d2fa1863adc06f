package decoder

import (
	"cmp"
	"errors"
	"fmt"

	"placer/graph/formats/foreign"
	"placer/workloads"
)

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

// indexed has each token attend to those that an indexer chooses for it, where there are more.
func indexed(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
	t := b.Attention.Latent
	if t.QueryRank == 0 {
		return errors.New("an indexer without q_lora_rank is not read")
	}
	t.Index = &workloads.Index{Path: b.Attention.Path + ".indexer", Heads: c.IndexHeads, Dim: c.IndexDim, PerToken: c.IndexTopK}
	switch {
	case c.Indexers != nil:
		if err := c.named("indexer_types", len(c.Indexers)); err != nil {
			return err
		}
		t.Index.Given = c.Indexers[i] == "shared"
	case c.IndexPattern != "":
		if err := c.named("index_topk_pattern", len(c.IndexPattern)); err != nil {
			return err
		}
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
		kind := keepsState
		if (i+1)%cmp.Or(max(c.FullEvery, 0), 4) == 0 {
			kind = attends
		}
		if c.LayerTypes != nil {
			var err error
			if kind, err = c.layerType(i); err != nil {
				return err
			}
		}
		switch kind {
		case attends:
			return nil
		case keepsState:
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
