package decoder

import (
	"cmp"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/workloads"
)

// config is what a step needs of config.json.
type config struct {
	Type     string `json:"model_type"`
	Layers   int    `json:"num_hidden_layers"`
	Hidden   int64  `json:"hidden_size"`
	Heads    int64  `json:"num_attention_heads"`
	KVHeads  int64  `json:"num_key_value_heads"`
	HeadDim  int64  `json:"head_dim"`
	FFN      int64  `json:"intermediate_size"`
	Vocab    int64  `json:"vocab_size"`
	Experts  int64  `json:"num_local_experts"`
	TopK     int64  `json:"num_experts_per_tok"`
	Bias     bool   `json:"attention_bias"`
	Tied     bool   `json:"tie_word_embeddings"`
	DType    string `json:"torch_dtype"`
	NewDType string `json:"dtype"`

	Quantization *quantization `json:"quantization_config"`
}

// SniffConfig reports whether data is a config.json of Hugging Face's transformers.
func SniffConfig(data []byte) bool {
	return len(data) < 1<<20 && foreign.HasKey(data, 100, "model_type")
}

// ImportConfig reads a config.json; name is the file's, for errors and for the graph.
func ImportConfig(data []byte, name string, dims map[string]int64) (*Imported, error) {
	return foreign.Import(data, name, func(c *config) (*Imported, error) {
		if err := family(c.Type); err != nil {
			return nil, err
		}
		d := &workloads.Decoder{Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: cmp.Or(c.KVHeads, c.Heads), HeadDim: c.HeadDim, FFN: c.FFN, Vocab: c.Vocab,
			Bias: c.Bias || c.Type == "qwen2", Tied: c.Tied, DType: graph.F32}
		if d.HeadDim == 0 && d.Heads > 0 {
			d.HeadDim = d.Hidden / d.Heads
		}
		if c.Type == "mixtral" {
			d.Experts, d.TopK = c.Experts, c.TopK
		}
		switch cmp.Or(c.NewDType, c.DType) {
		case "float16":
			d.DType = graph.F16
		case "bfloat16":
			d.DType = graph.BF16
		}
		if c.Quantization != nil {
			if err := c.Quantization.quantize(d); err != nil {
				return nil, err
			}
		}
		return step(d, name, dims)
	})
}
