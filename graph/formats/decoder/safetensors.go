package decoder

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/units"
	"placer/workloads"
)

// maxHeader bounds the JSON header of safetensors, as the format's own reader does.
const maxHeader = 100_000_000

// SniffSafetensors reports whether data begins as safetensors do: eight bytes of length,
// then JSON.
func SniffSafetensors(data []byte) bool {
	return len(data) > 9 && data[8] == '{' && bytes.Equal(data[4:8], make([]byte, 4))
}

// listed is a tensor of the header.
type listed struct {
	DType   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// ImportSafetensors reads the header of safetensors that hold a whole model under the
// names of Hugging Face. The number of attention heads is not in it: o.Dims has it as
// "heads".
func ImportSafetensors(data []byte, name string, o Options) (*Imported, error) {
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, fmt.Errorf("%s: safetensors: a header of %d bytes in a file of %d", name, n, len(data))
	}
	header, err := foreign.Import(data[8:8+n], name, func(h *map[string]listed) (map[string]listed, error) { return *h, nil })
	if err != nil {
		return nil, err
	}
	x, err := fromHeader(header, name, o)
	if err != nil {
		return nil, fmt.Errorf("%s: safetensors: %w", name, err)
	}
	return x, nil
}

// fromHeader reads what Llama, Mistral, Mixtral, Qwen2 and Qwen3 have in common: their sizes
// stand in the shapes of tensors.
func fromHeader(header map[string]listed, name string, o Options) (*Imported, error) {
	f := tensors{}
	for key, t := range header {
		if key == "__metadata__" {
			continue
		}
		n, err := graph.Shape(t.Shape).Elements()
		if err != nil || len(t.Offsets) != 2 || t.Offsets[1] < t.Offsets[0] || t.Offsets[1]-t.Offsets[0] > 1<<50 {
			return nil, fmt.Errorf("tensor %s: shape %v at offsets %v", foreign.Brief(key), t.Shape, t.Offsets)
		}
		f[key] = tensor{t.Shape, n, units.Bytes(t.Offsets[1] - t.Offsets[0])}
	}
	shape := func(tensor string, rank int) ([]int64, error) {
		t, ok := f[tensor]
		if !ok {
			return nil, fmt.Errorf("of %d tensors none is %s: is it a whole llama, mistral, mixtral, qwen2 or qwen3, in one file? Of others read config.json", len(f), tensor)
		}
		if len(t.shape) != rank {
			return nil, fmt.Errorf("tensor %s has shape %v, want %d dimensions", tensor, t.shape, rank)
		}
		return t.shape, nil
	}
	const first = "model.layers.0."
	c := &config{Type: "llama", Act: "silu", TopK: 2}
	table, err := shape("model.embed_tokens.weight", 2)
	if err != nil {
		return nil, err
	}
	c.Vocab, c.Hidden = table[0], table[1]
	q, err := shape(first+"self_attn.q_proj.weight", 2)
	if err != nil {
		return nil, err
	}
	k, err := shape(first+"self_attn.k_proj.weight", 2)
	if err != nil {
		return nil, err
	}
	for tensor := range f {
		if rest, ok := strings.CutPrefix(tensor, "model.layers."); ok {
			number, _, _ := strings.Cut(rest, ".")
			if l, err := strconv.Atoi(number); err == nil && l < 1<<20 {
				c.Layers = max(c.Layers, int64(l)+1)
			}
		}
		if rest, ok := strings.CutPrefix(tensor, first+"block_sparse_moe.experts."); ok {
			number, _, _ := strings.Cut(rest, ".")
			if e, err := strconv.Atoi(number); err == nil && e < 1<<20 {
				c.Type, c.Experts = "mixtral", max(c.Experts, int64(e)+1)
			}
		}
	}
	gate := first + "mlp.gate_proj.weight"
	if c.Experts > 0 {
		gate = first + "block_sparse_moe.experts.0.w1.weight"
	}
	ffn, err := shape(gate, 2)
	if err != nil {
		return nil, err
	}
	c.FFN = &ffn[0]
	_, output := f[first+"self_attn.o_proj.bias"]
	_, inputs := f[first+"self_attn.q_proj.bias"]
	_, untied := f["lm_head.weight"]
	_, c.MLPBias = f[first+"mlp.down_proj.bias"]
	c.Tied, c.AttentionBias = !untied, output
	if inputs && !output {
		c.Type = "qwen2"
	}
	switch header[first+"self_attn.q_proj.weight"].DType {
	case "F16":
		c.DType = "float16"
	case "BF16":
		c.DType = "bfloat16"
	}
	heads, ok := o.Dims["heads"]
	if norm, per := f[first+"self_attn.q_norm.weight"]; per && len(norm.shape) == 1 && norm.elements > 0 && c.Experts == 0 {
		c.Type, heads, ok = "qwen3", q[0]/norm.elements, true
	}
	if !ok {
		return nil, fmt.Errorf("the header does not say how many attention heads a layer has: state them by --dim heads=N, or read the model's config.json")
	}
	if heads < 1 || heads > q[0] || q[0]%heads != 0 || k[0]%(q[0]/heads) != 0 {
		return nil, fmt.Errorf("%d heads do not divide queries of %d and keys of %d", heads, q[0], k[0])
	}
	each := q[0] / heads
	kv := k[0] / each
	c.Heads, c.HeadDim, c.KVHeads = heads, &each, &kv
	d, err := decoderOf(c)
	if err != nil {
		return nil, err
	}
	return f.step(d, safetensorsNames, name, o, "heads")
}

// safetensorsNames returns the tensors that hold a parameter: its own, or those of single
// experts, as Mixtral's files have them.
func safetensorsNames(w workloads.Weight) [][]string {
	path, mixture := strings.CutSuffix(w.Module, ".mlp.experts")
	if !mixture {
		if path, router := strings.CutSuffix(w.Module, ".mlp.gate"); router {
			return [][]string{{path + ".block_sparse_moe.gate." + w.Name}}
		}
		return [][]string{{w.Module + "." + w.Name}}
	}
	parts := []string{"w1", "w3"}
	if w.Name == "down_proj" {
		parts = []string{"w2"}
	}
	var all []string
	for e := range w.Shape[0] {
		for _, part := range parts {
			all = append(all, fmt.Sprintf("%s.block_sparse_moe.experts.%d.%s.weight", path, e, part))
		}
	}
	return [][]string{all}
}
