package decoder

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/units"
	"placer/workloads"
)

// The header of GGUF is laid out as docs/gguf.md of ggml-org/ggml says.

const ggufMagic = "GGUF"

// Bounds of a header: the largest published models have about 2,000 tensors and 60
// keys.
const (
	maxTensors = 1 << 20
	maxKeys    = 1 << 16
	maxText    = 1 << 16
)

var errCut = errors.New("the header is cut off")

// SniffGGUF reports whether data begins as GGUF does.
func SniffGGUF(data []byte) bool { return bytes.HasPrefix(data, []byte(ggufMagic)) }

// ggufReader reads a header from front to back.
type ggufReader struct {
	data []byte
	err  error
}

func (r *ggufReader) take(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.data)) {
		r.err = cmp.Or(r.err, errCut)
		return make([]byte, 8)
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *ggufReader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *ggufReader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// text reads a string that the file may need; skipped ones may be of any length.
func (r *ggufReader) text() string {
	n := r.u64()
	if n > maxText {
		r.err = cmp.Or(r.err, fmt.Errorf("a name of %d bytes", n))
		return ""
	}
	return string(r.take(n))
}

// sizes are the bytes of the types of values; 0 for those without one size.
func (r *ggufReader) size(kind uint32) uint64 {
	switch kind {
	case 0, 1, 7:
		return 1
	case 2, 3:
		return 2
	case 4, 5, 6:
		return 4
	case 10, 11, 12:
		return 8
	}
	return 0
}

// Types of values.
const (
	ggufString = 8
	ggufArray  = 9
)

// value reads a value: a number, or text. Of an array it returns the length.
func (r *ggufReader) value(kind uint32) (number int64, text string) {
	switch kind {
	case ggufString:
		n := r.u64()
		b := r.take(n)
		if r.err == nil && n <= maxText {
			text = string(b)
		}
		return 0, text
	case ggufArray:
		inner, n := r.u32(), r.u64()
		if size := r.size(inner); size > 0 {
			if n > uint64(len(r.data))/size {
				r.err = cmp.Or(r.err, errCut)
				return 0, ""
			}
			r.take(n * size)
		} else if inner == ggufString {
			for i := uint64(0); i < n && r.err == nil; i++ {
				r.take(r.u64())
			}
		} else {
			r.err = cmp.Or(r.err, fmt.Errorf("an array of values of type %d", inner))
		}
		return int64(min(n, 1<<40)), ""
	}
	b := r.take(r.size(kind))
	switch r.size(kind) {
	case 1:
		number = int64(b[0])
	case 2:
		number = int64(binary.LittleEndian.Uint16(b))
	case 4:
		number = int64(binary.LittleEndian.Uint32(b))
	case 8:
		number = int64(binary.LittleEndian.Uint64(b))
	default:
		r.err = cmp.Or(r.err, fmt.Errorf("a value of type %d", kind))
	}
	return number, ""
}

// ggmlType is how a type of tensors is stored: in blocks of elements.
type ggmlType struct{ elements, bytes int64 }

// ggmlTypes are those of ggml.h, by number.
func ggmlTypes() map[uint32]ggmlType {
	return map[uint32]ggmlType{
		0: {1, 4}, 1: {1, 2}, 2: {32, 18}, 3: {32, 20}, 6: {32, 22}, 7: {32, 24}, 8: {32, 34}, 9: {32, 36}, // F32 F16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q8_1
		10: {256, 84}, 11: {256, 110}, 12: {256, 144}, 13: {256, 176}, 14: {256, 210}, 15: {256, 292}, // Q2_K to Q8_K
		16: {256, 66}, 17: {256, 74}, 18: {256, 98}, 19: {256, 50}, 20: {32, 18}, 21: {256, 110}, 22: {256, 82}, 23: {256, 136}, // IQ2_XXS to IQ4_XS
		24: {1, 1}, 25: {1, 2}, 26: {1, 4}, 27: {1, 8}, 28: {1, 8}, 29: {256, 56}, 30: {1, 2}, 34: {256, 54}, 35: {256, 66}, 39: {32, 17}, // I8 to I64, F64, IQ1_M, BF16, TQ1_0, TQ2_0, MXFP4
	}
}

// ggufFile is a header.
type ggufFile struct {
	numbers map[string]int64
	arrays  map[string]int64 // lengths
	texts   map[string]string
	tensors tensors
}

func parseGGUF(data []byte) (*ggufFile, error) {
	r := &ggufReader{data: data[len(ggufMagic):]}
	version, count, keys := r.u32(), uint64(0), uint64(0)
	if r.err == nil && (version < 2 || version > 3) {
		return nil, fmt.Errorf("version %d, want 2 or 3", version)
	}
	count, keys = r.u64(), r.u64()
	if r.err == nil && (count > maxTensors || keys > maxKeys) {
		return nil, fmt.Errorf("%d tensors and %d keys are too many", count, keys)
	}
	f := &ggufFile{numbers: map[string]int64{}, arrays: map[string]int64{}, texts: map[string]string{}, tensors: tensors{}}
	for i := uint64(0); i < keys && r.err == nil; i++ {
		key := r.text()
		kind := r.u32()
		switch number, text := r.value(kind); {
		case text != "":
			f.texts[key] = text
		case kind == ggufArray:
			f.arrays[key] = number
		default:
			f.numbers[key] = number
		}
	}
	types := ggmlTypes()
	for i := uint64(0); i < count && r.err == nil; i++ {
		name, rank := r.text(), r.u32()
		if rank > 8 {
			return nil, fmt.Errorf("tensor %s has %d dimensions", foreign.Brief(name), rank)
		}
		dims := make(graph.Shape, 0, rank)
		for range rank {
			dims = append(dims, int64(r.u64()))
		}
		kind := r.u32()
		r.u64() // where its data begin
		if r.err != nil {
			break
		}
		t, ok := types[kind]
		if !ok {
			return nil, fmt.Errorf("tensor %s is of type %d, which ggml does not have", foreign.Brief(name), kind)
		}
		n, err := dims.Elements()
		if err != nil || n > 1<<48 {
			return nil, fmt.Errorf("tensor %s: shape %v is too large or negative", foreign.Brief(name), dims)
		}
		f.tensors[name] = tensor{dims, n, units.Bytes((n + t.elements - 1) / t.elements * t.bytes)}
	}
	return f, r.err
}

// ImportGGUF reads the header of a GGUF file.
func ImportGGUF(data []byte, name string, o Options) (*Imported, error) {
	f, err := parseGGUF(data)
	if err != nil {
		return nil, fmt.Errorf("%s: GGUF: %w", name, err)
	}
	d, err := f.decoder()
	if err != nil {
		return nil, fmt.Errorf("%s: GGUF: %w", name, err)
	}
	x, err := f.tensors.step(d, ggufNames(d), name, o)
	if err != nil {
		return nil, fmt.Errorf("%s: GGUF: %w", name, err)
	}
	return x, nil
}

// ggufFamilies are the architectures of llama.cpp that are read, and the model_type of each.
// Mistral's and Mixtral's files say that they are llama's.
func ggufFamilies() map[string]string {
	return map[string]string{"llama": "llama", "qwen2": "qwen2", "qwen2moe": "qwen2_moe", "qwen3": "qwen3", "qwen3moe": "qwen3_moe", "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3_text",
		"phi3": "phi3", "olmo2": "olmo2", "deepseek2": "deepseek_v3", "gpt-oss": "gpt_oss", "granite": "granite", "smollm3": "smollm3", "stablelm": "stablelm", "glm4": "glm4",
		"command-r": "cohere", "cohere2": "cohere2", "starcoder2": "starcoder2"}
}

// decoder returns the model that the header describes.
func (f *ggufFile) decoder() (*workloads.Decoder, error) {
	arch := f.texts["general.architecture"]
	kind, ok := ggufFamilies()[arch]
	if !ok {
		return nil, fmt.Errorf("architecture %q is not one of those that are read: %s", foreign.Brief(arch), strings.Join(slices.Sorted(maps.Keys(ggufFamilies())), ", "))
	}
	at := func(key string) int64 { return f.numbers[arch+"."+key] }
	if kind == "llama" && at("expert_count") > 0 {
		kind = "mixtral"
	}
	for _, key := range []string{"attention.head_count", "attention.head_count_kv", "feed_forward_length"} {
		if _, several := f.arrays[arch+"."+key]; several {
			return nil, fmt.Errorf("%s.%s differs from layer to layer, which is not read", arch, key)
		}
	}
	c, err := assumed(kind)
	if err != nil {
		return nil, err
	}
	_, attention := f.tensors["blk.0.attn_q.bias"]
	_, perceptron := f.tensors["blk.0.ffn_up.bias"]
	_, untied := f.tensors["output.weight"]
	_, headNorms := f.tensors["blk.0.attn_q_norm.weight"]
	c.Type, c.DType, c.Tied = kind, "float16", !untied
	c.AttentionBias, c.QKVBias, c.UseQKVBias = attention, attention, attention
	c.MLPBias, c.UseBias, c.QKNorm, c.QKLayerNorm = perceptron, perceptron, headNorms, headNorms
	c.Parallel = at("use_parallel_residual") != 0
	number := func(keys ...string) *int64 {
		for _, key := range keys {
			if n := at(key); n != 0 {
				return &n
			}
		}
		return nil
	}
	c.Layers, c.Hidden, c.Heads, c.KVHeads = at("block_count"), at("embedding_length"), at("attention.head_count"), number("attention.head_count_kv")
	c.HeadDim, c.FFN, c.Vocab = number("attention.key_length"), number("feed_forward_length"), cmp.Or(at("vocab_size"), f.arrays["tokenizer.ggml.tokens"])
	if t := f.tensors["token_embd.weight"]; len(t.shape) == 2 {
		c.Vocab = t.shape[1]
	}
	if n := number("attention.sliding_window"); n != nil || kind == "phi3" || kind == "mixtral" {
		c.Window = n
	}
	c.LocalExp, c.TopK, c.ExpertFFN = at("expert_count"), at("expert_used_count"), at("expert_feed_forward_length")
	c.Shared, c.SharedFFN, c.DenseFirst = at("expert_shared_count"), at("expert_shared_feed_forward_length"), number("leading_dense_block_count")
	c.QueryRank, c.Rank, c.RopeDim = number("attention.q_lora_rank"), at("attention.kv_lora_rank"), at("rope.dimension_count")
	c.NopeDim, c.ValueDim = or(number("attention.key_length_mla", "attention.key_length"))-c.RopeDim, or(number("attention.value_length_mla", "attention.value_length"))
	return decoderOf(c)
}

// ggufNames returns the tensors of GGUF in which llama.cpp keeps a parameter (gguf-py's
// constants.py): more than one where it keeps parts of it apart.
func ggufNames(d *workloads.Decoder) func(workloads.Weight) [][]string {
	names := map[string][][]string{}
	for i := range d.Blocks {
		b := &d.Blocks[i]
		a, m := &b.Attention, &b.MLP
		add := func(path string, all ...string) {
			for j := range all {
				all[j] = fmt.Sprintf("blk.%d.%s", i, all[j])
			}
			names[path] = append(names[path], all)
		}
		inside := func(path string, l workloads.Linear, name string) { add(path+"."+l.Name, name) }
		add(b.Before.Path, "attn_norm")
		add(b.After.Path, "post_attention_norm")
		add(b.MLPBefore.Path, "ffn_norm")
		add(b.MLPBefore.Path, "post_attention_norm") // gpt-oss
		add(b.MLPAfter.Path, "post_ffw_norm")
		for _, x := range []struct {
			l    workloads.Linear
			name string
		}{{a.Query, "attn_q"}, {a.Key, "attn_k"}, {a.Value, "attn_v"}, {a.Fused, "attn_qkv"}, {a.Out, "attn_output"}} {
			inside(a.Path, x.l, x.name)
		}
		add(a.QueryNorm.Path, "attn_q_norm")
		add(a.KeyNorm.Path, "attn_k_norm")
		add(a.Path, "attn") // its sinks
		if t := a.Latent; t != nil {
			add(a.Path+".q_a_proj", "attn_q_a")
			add(a.Path+".q_b_proj", "attn_q_b")
			add(t.QueryNorm.Path, "attn_q_a_norm")
			add(a.Path+".kv_a_proj_with_mqa", "attn_kv_a_mqa")
			add(t.Norm.Path, "attn_kv_a_norm")
			add(a.Path+".kv_b_proj", "attn_kv_b")
			add(a.Path+".kv_b_proj", "attn_k_b", "attn_v_b")
		}
		perceptron := func(m *workloads.MLP, ending string) {
			inside(m.Path, m.Gate, "ffn_gate"+ending)
			inside(m.Path, m.Up, "ffn_up"+ending)
			inside(m.Path, m.Fused, "ffn_up"+ending)
			inside(m.Path, m.Down, "ffn_down"+ending)
		}
		e := m.Experts
		if e == nil {
			perceptron(m, "")
			continue
		}
		inside(m.Path, e.Router, "ffn_gate_inp")
		inside(m.Path, e.SharedGate, "ffn_gate_inp_shexp")
		add(m.Path+"."+e.Path+".gate_up_proj", "ffn_gate_exps", "ffn_up_exps")
		add(m.Path+"."+e.Path+".gate_up_proj", "ffn_gate_up_exps")
		add(m.Path+"."+e.Path+".down_proj", "ffn_down_exps")
		if e.Shared != nil {
			perceptron(e.Shared, "_shexp")
		}
	}
	names[d.Embedding.Table] = [][]string{{"token_embd"}}
	names[d.Norm.Path] = [][]string{{"output_norm"}}
	names[d.Head.Path] = [][]string{{"output"}}
	return func(w workloads.Weight) (all [][]string) {
		module, ending := w.Module, "."+w.Name
		if w.Name == "sinks" {
			ending = "_sinks.weight"
		}
		if stacked, ok := strings.CutSuffix(w.Name, "_bias"); ok { // of experts
			module, ending = module+"."+stacked, ".bias"
		} else if len(w.Shape) == 3 {
			module, ending = module+"."+w.Name, ".weight"
		}
		for _, parts := range names[module] {
			var one []string
			for _, name := range parts {
				one = append(one, name+ending)
			}
			all = append(all, one)
		}
		return all
	}
}
