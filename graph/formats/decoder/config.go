package decoder

import (
	"cmp"
	"fmt"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/internal/words"
)

// config is what a step needs of config.json. A field that has several names has them in
// turn: families were written by many hands.
type config struct {
	Type      string `json:"model_type"`
	Layers    int64  `json:"num_hidden_layers"`
	NLayer    int64  `json:"n_layer"`
	Hidden    int64  `json:"hidden_size"`
	NEmbd     int64  `json:"n_embd"`
	Heads     int64  `json:"num_attention_heads"`
	NHead     int64  `json:"n_head"`
	KVHeads   *int64 `json:"num_key_value_heads"`
	NumKV     *int64 `json:"num_kv_heads"`
	HeadDim   *int64 `json:"head_dim"`
	FFN       *int64 `json:"intermediate_size"`
	NInner    *int64 `json:"n_inner"`
	FFNDim    *int64 `json:"ffn_dim"`
	FFNHidden *int64 `json:"ffn_hidden_size"`
	Vocab     int64  `json:"vocab_size"`
	Positions int64  `json:"max_position_embeddings"`
	NPos      int64  `json:"n_positions"`
	DType     string `json:"torch_dtype"`
	NewDType  string `json:"dtype"`
	Tied      bool   `json:"tie_word_embeddings"`

	Act       string `json:"hidden_act"`
	HiddenAct string `json:"hidden_activation"`
	Activ     string `json:"activation"`
	ActFunc   string `json:"activation_function"`

	AttentionBias bool `json:"attention_bias"`
	OutBias       bool `json:"attention_out_bias"`
	MLPBias       bool `json:"mlp_bias"`
	UseBias       bool `json:"use_bias"`
	Bias          bool `json:"bias"`
	EnableBias    bool `json:"enable_bias"`
	QKVBias       bool `json:"qkv_bias"`
	UseQKVBias    bool `json:"use_qkv_bias"`
	HeadBias      bool `json:"lm_head_bias"`

	Window        *int64   `json:"sliding_window"`
	UseWindow     bool     `json:"use_sliding_window"`
	MaxWindow     int64    `json:"max_window_layers"`
	Pattern       any      `json:"sliding_window_pattern"`
	LayerTypes    []string `json:"layer_types"`
	NoRope        []int64  `json:"no_rope_layers"`
	NoRopeEach    int64    `json:"no_rope_layer_interval"`
	Chunk         *int64   `json:"attention_chunk_size"`
	Bidirectional any      `json:"use_bidirectional_attention"`

	QKNorm        bool     `json:"use_qk_norm"`
	QKLayerNorm   bool     `json:"qk_layernorm"`
	Parallel      bool     `json:"use_parallel_residual"`
	ParallelAttn  bool     `json:"parallel_attn"`
	NewFalcon     bool     `json:"new_decoder_architecture"`
	MultiQuery    bool     `json:"multi_query"`
	Alibi         bool     `json:"alibi"`
	ParallelNorms *int64   `json:"num_ln_in_parallel_attn"`
	NormBefore    bool     `json:"do_layer_norm_before"`
	NoFinalNorm   bool     `json:"_remove_final_layer_norm"`
	Affine        bool     `json:"layer_norm_elementwise_affine"`
	Projected     int64    `json:"word_embed_proj_dim"`
	CapLogits     *float64 `json:"final_logit_softcapping"`
	CapScores     *float64 `json:"attn_logit_softcapping"`
	EmbedScale    float64  `json:"embedding_multiplier"`
	BlockScale    float64  `json:"residual_multiplier"`
	LogitScale    float64  `json:"logits_scaling"`

	Experts     int64    `json:"num_experts"`
	LocalExp    int64    `json:"num_local_experts"`
	RoutedExp   int64    `json:"n_routed_experts"`
	TopK        int64    `json:"num_experts_per_tok"`
	ExpertFFN   int64    `json:"moe_intermediate_size"`
	Shared      int64    `json:"n_shared_experts"`
	NumShared   int64    `json:"num_shared_experts"`
	SharedFFN   int64    `json:"shared_expert_intermediate_size"`
	SparseStep  int64    `json:"decoder_sparse_step"`
	DenseLayers []int64  `json:"mlp_only_layers"`
	DenseFirst  *int64   `json:"first_k_dense_replace"`
	MLPTypes    []string `json:"mlp_layer_types"`
	MoELayers   []int64  `json:"moe_layers"`
	MoEStep     int64    `json:"interleave_moe_layer_step"`
	DenseFFN    *int64   `json:"intermediate_size_mlp"`
	ErnieExp    int64    `json:"moe_num_experts"`
	ErnieTopK   int64    `json:"moe_k"`
	ErnieShared int64    `json:"moe_num_shared_experts"`
	ErnieFirst  int64    `json:"moe_layer_start_index"`
	ErnieLast   *int64   `json:"moe_layer_end_index"`
	ErnieEvery  int64    `json:"moe_layer_interval"`

	QueryRank *int64 `json:"q_lora_rank"`
	Rank      int64  `json:"kv_lora_rank"`
	NopeDim   int64  `json:"qk_nope_head_dim"`
	RopeDim   int64  `json:"qk_rope_head_dim"`
	ValueDim  int64  `json:"v_head_dim"`

	FullEvery    int64 `json:"full_attention_interval"`
	LinearKeys   int64 `json:"linear_num_key_heads"`
	LinearValues int64 `json:"linear_num_value_heads"`
	LinearKey    int64 `json:"linear_key_head_dim"`
	LinearValue  int64 `json:"linear_value_head_dim"`
	LinearKernel int64 `json:"linear_conv_kernel_dim"`

	IndexTopK    int64    `json:"index_topk"`
	IndexHeads   int64    `json:"index_n_heads"`
	IndexDim     int64    `json:"index_head_dim"`
	Indexers     []string `json:"indexer_types"`
	IndexPattern string   `json:"index_topk_pattern"`
	IndexEvery   int64    `json:"index_topk_freq"`
	IndexFirst   *int64   `json:"index_skip_topk_offset"`

	Predicted int64 `json:"num_nextn_predict_layers"`

	scanConfig
	gemma4Config

	Quantization *quantization `json:"quantization_config"`
}

// or returns the first number that is there and not 0.
func or(numbers ...*int64) int64 {
	for _, n := range numbers {
		if n != nil && *n != 0 {
			return *n
		}
	}
	return 0
}

func (c *config) layers() int64 {
	return cmp.Or(c.Layers, c.NLayer, int64(len(c.BlockTypes)), int64(len(c.BlockPattern)))
}
func (c *config) hidden() int64 { return cmp.Or(c.Hidden, c.NEmbd) }
func (c *config) heads() int64  { return cmp.Or(c.Heads, c.NHead) }
func (c *config) kvHeads() int64 {
	heads := c.heads()
	return or(c.KVHeads, c.NumKV, &heads)
}
func (c *config) ffn() int64 {
	four := 4 * c.hidden()
	return or(c.FFN, c.NInner, c.FFNDim, c.FFNHidden, &four)
}
func (c *config) headDim() int64 {
	each := c.hidden() / max(c.heads(), 1)
	return or(c.HeadDim, &each)
}
func (c *config) experts() int64 { return cmp.Or(c.LocalExp, c.Experts, c.RoutedExp, c.ErnieExp) }

// activation is the op of the activation function.
func (c *config) activation() (graph.Kind, error) {
	switch name := cmp.Or(c.MLPAct, c.HiddenAct, c.Act, c.Activ, c.ActFunc); name {
	case "silu", "swish":
		return "Swish", nil
	case "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "":
		return "Gelu", nil
	case "relu":
		return "Relu", nil
	case "relu2":
		return "SquaredRelu", nil
	default:
		return "", fmt.Errorf("activation %q is not one of those that are read: silu, gelu, relu, relu2", foreign.Brief(name))
	}
}

// dtype is the type of the weights.
func (c *config) dtype() graph.DType {
	switch cmp.Or(c.NewDType, c.DType) {
	case "float16":
		return graph.F16
	case "bfloat16":
		return graph.BF16
	}
	return graph.F32
}

// SniffConfig reports whether data is a config.json of Hugging Face's transformers.
func SniffConfig(data []byte) bool {
	return len(data) < 1<<20 && foreign.HasKey(data, 100, "model_type")
}

// ImportConfig reads a config.json; name is the file's, for errors and for the graph. Of a
// model of several parts it reads the text decoder.
func ImportConfig(data []byte, name string, o Options) (*Imported, error) {
	return foreign.Import(data, name, func(outer *struct {
		config
		Text *config `json:"text_config"`
		Tied *bool   `json:"tie_word_embeddings"`
	}) (*Imported, error) {
		kind := outer.Type
		nested := outer.Text != nil && known(outer.Text.Type) == nil
		if nested {
			kind = outer.Text.Type
		}
		if err := known(kind); err != nil {
			return nil, err
		}
		c, err := assumed(kind)
		if err != nil {
			return nil, err
		}
		if nested {
			err = foreign.Decode(data, name, &struct {
				Text *config `json:"text_config"`
			}{c})
			c.Quantization = cmp.Or(c.Quantization, outer.Quantization)
			c.NewDType = cmp.Or(c.NewDType, c.DType, outer.NewDType, outer.DType)
			if outer.Tied != nil && families()[kind].ofWhole() { // the head is the whole model's
				c.Tied = *outer.Tied
			}
		} else {
			err = foreign.Decode(data, name, c)
		}
		if err != nil {
			return nil, err
		}
		d, err := decoderOf(c)
		if err != nil {
			return nil, err
		}
		if c.Quantization != nil {
			if err := c.Quantization.quantize(d); err != nil {
				return nil, err
			}
			o.cached8 = c.Quantization.Cache != nil && c.Quantization.Cache.Bits == 8
		}
		x, err := step(d, name, o)
		if err != nil {
			return nil, err
		}
		switch {
		case families()[kind].ofWhole():
			x.Notes = append(x.Notes, fmt.Sprintf("of the %s its text decoder alone", foreign.Brief(outer.Type)))
		case nested:
			x.Notes = append(x.Notes, fmt.Sprintf("of the %s its text decoder alone, a %s, with that model's own module paths", foreign.Brief(outer.Type), kind))
		}
		if c.Predicted > 0 {
			x.Notes = append(x.Notes, fmt.Sprintf("without the %s further tokens", words.Count(c.Predicted, "layer that predicts", "layers that predict")))
		}
		return x, nil
	})
}
