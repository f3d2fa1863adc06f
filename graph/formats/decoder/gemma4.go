package decoder

import (
	"errors"
	"fmt"
	"strconv"

	"placer/workloads"
)

// gemma4Config is what Gemma 4's config.json says besides.
type gemma4Config struct {
	PerLayerColumns int64                      `json:"hidden_size_per_layer_input"`
	PerLayerRows    int64                      `json:"vocab_size_per_layer_input"`
	KeysAreValues   bool                       `json:"attention_k_eq_v"`
	SharedKV        int64                      `json:"num_kv_shared_layers"`
	Mixed           bool                       `json:"enable_moe_block"`
	DoubleWide      bool                       `json:"use_double_wide_mlp"`
	GemmaTopK       int64                      `json:"top_k_experts"`
	GlobalHeadDim   *int64                     `json:"global_head_dim"`
	GlobalKV        *int64                     `json:"num_global_key_value_heads"`
	Layer           map[string]gemma4LayerSize `json:"per_layer_config"`
}

type gemma4LayerSize struct {
	HeadDim *int64 `json:"head_dim"`
	KVHeads *int64 `json:"num_key_value_heads"`
}

// gemma4Global is the head size of layers that see all tokens, where a file says none.
const gemma4Global = 512

// gemma4 has larger heads in layers that see all tokens, layers at the end that read the keys and
// values of others, mixtures beside perceptrons, and an embedding for each layer.
func gemma4(c *config, d *workloads.Decoder, b *workloads.Block, i int64) error {
	a := &b.Attention
	if a.Window == 0 {
		wide := int64(gemma4Global)
		if c.Layer != nil {
			wide = c.headDim()
		}
		own := c.layerSize(i)
		a.KeyDim = or(own.HeadDim, c.GlobalHeadDim, &wide)
		if c.KeysAreValues {
			a.KVHeads = or(own.KVHeads, c.GlobalKV, &a.KVHeads)
			a.Value.Name = ""
		}
		a.ValueDim = a.KeyDim
	}
	a.QueryNorm, a.KeyNorm = rms(a.Path+".q_norm", a.KeyDim), rms(a.Path+".k_norm", a.KeyDim)
	a.ValueNorm = workloads.Norm{Path: a.Path + ".v_norm", Kind: "RMSNorm"}
	if c.SharedKV > c.layers() {
		return fmt.Errorf("num_kv_shared_layers is %d of %d layers", c.SharedKV, c.layers())
	}
	if i >= c.layers()-c.SharedKV {
		a.Reuse = true
		if c.DoubleWide {
			b.MLP.Width *= 2
		}
	}
	if c.Mixed {
		gemma4Mixture(c, b)
	}
	if c.PerLayerColumns == 0 {
		return nil
	}
	if c.PerLayerRows != 0 && c.PerLayerRows != c.Vocab {
		return errors.New("vocab_size_per_layer_input other than vocab_size is not read")
	}
	d.Embedding.PerLayer = &workloads.LayerTable{Table: "model.embed_tokens_per_layer", Projection: "model.per_layer_model_projection", Columns: c.PerLayerColumns, Norm: rms("model.per_layer_projection_norm", c.PerLayerColumns)}
	b.PerLayer = &workloads.PerLayer{Gate: workloads.Linear{Name: "per_layer_input_gate"}, Projection: workloads.Linear{Name: "per_layer_projection"}, Activation: b.MLP.Activation, After: rms(b.Path+".post_per_layer_input_norm", c.hidden())}
	return nil
}

// layerSize is what per_layer_config says of layer i, by numbers that may begin with zeros.
func (c *gemma4Config) layerSize(i int64) gemma4LayerSize {
	for key, size := range c.Layer {
		if n, err := strconv.ParseInt(key, 10, 64); err == nil && n == i {
			return size
		}
	}
	return gemma4LayerSize{}
}

// lastSeesAll has no window in the last layer, whatever the file says.
func lastSeesAll(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
	if i == c.layers()-1 {
		b.Attention.Window = 0
	}
	return nil
}

func gemma4Mixture(c *config, b *workloads.Block) {
	norm := func(name string) workloads.Norm { return rms(b.Path+"."+name, c.hidden()) }
	b.Beside = &workloads.Beside{
		Before: norm("pre_feedforward_layernorm_2"), After: norm("post_feedforward_layernorm_2"), MLPAfter: norm("post_feedforward_layernorm_1"),
		MLP: workloads.MLP{Path: b.Path, Experts: &workloads.Experts{Path: "experts", Count: c.experts(), PerToken: c.GemmaTopK, Width: c.ExpertFFN, Activation: b.MLP.Activation, Scaled: true,
			Router: workloads.Linear{Name: "router.proj"}}},
	}
}
