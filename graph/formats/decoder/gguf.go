package decoder

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
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
	texts   map[string]string
	stored  map[string]units.Bytes // by the tensor's name
}

func parseGGUF(data []byte) (*ggufFile, error) {
	r := &ggufReader{data: data[len(ggufMagic):]}
	version, tensors, keys := r.u32(), uint64(0), uint64(0)
	if r.err == nil && (version < 2 || version > 3) {
		return nil, fmt.Errorf("version %d, want 2 or 3", version)
	}
	tensors, keys = r.u64(), r.u64()
	if r.err == nil && (tensors > maxTensors || keys > maxKeys) {
		return nil, fmt.Errorf("%d tensors and %d keys are too many", tensors, keys)
	}
	f := &ggufFile{numbers: map[string]int64{}, texts: map[string]string{}, stored: map[string]units.Bytes{}}
	for i := uint64(0); i < keys && r.err == nil; i++ {
		key := r.text()
		number, text := r.value(r.u32())
		if text != "" {
			f.texts[key] = text
		} else {
			f.numbers[key] = number
		}
	}
	types := ggmlTypes()
	for i := uint64(0); i < tensors && r.err == nil; i++ {
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
		f.stored[name] = units.Bytes((n + t.elements - 1) / t.elements * t.bytes)
	}
	return f, r.err
}

// ImportGGUF reads the header of a GGUF file.
func ImportGGUF(data []byte, name string, dims map[string]int64) (*Imported, error) {
	f, err := parseGGUF(data)
	if err != nil {
		return nil, fmt.Errorf("%s: GGUF: %w", name, err)
	}
	d, err := f.decoder()
	if err != nil {
		return nil, fmt.Errorf("%s: GGUF: %w", name, err)
	}
	x, err := step(d, name, dims)
	if err != nil {
		return nil, fmt.Errorf("%s: GGUF: %w", name, err)
	}
	x.Weights = len(f.stored)
	return x, nil
}

// decoder returns the model that the header describes. Mistral's and Mixtral's files say
// that they are llama's.
func (f *ggufFile) decoder() (*workloads.Decoder, error) {
	arch := f.texts["general.architecture"]
	if err := family(arch); err != nil {
		return nil, err
	}
	at := func(key string) int64 { return f.numbers[arch+"."+key] }
	heads := at("attention.head_count")
	d := &workloads.Decoder{Layers: int(min(max(at("block_count"), 0), 1<<20)), Hidden: at("embedding_length"), Heads: heads, KVHeads: cmp.Or(at("attention.head_count_kv"), heads),
		HeadDim: at("attention.key_length"), FFN: at("feed_forward_length"), Vocab: cmp.Or(at("vocab_size"), f.numbers["tokenizer.ggml.tokens"]),
		Experts: at("expert_count"), TopK: at("expert_used_count"), DType: graph.F16}
	if d.HeadDim == 0 && heads > 0 {
		d.HeadDim = d.Hidden / heads
	}
	_, d.Bias = f.stored["blk.0.attn_q.bias"]
	_, untied := f.stored["output.weight"]
	d.Tied = !untied && len(f.stored) > 0
	d.Stored = func(weight string) (units.Bytes, bool) {
		parts := int64(1)
		name := ggufName(weight)
		if strings.Contains(name, "_exps.") {
			parts = d.Experts
		}
		size, ok := f.stored[name]
		return size / units.Bytes(parts), ok
	}
	return d, nil
}

// ggufName returns the name that llama.cpp gives a weight of Hugging Face's name.
func ggufName(weight string) string {
	if rest, ok := strings.CutPrefix(weight, "model.layers."); ok {
		layer, part, _ := strings.Cut(rest, ".")
		if _, of, ok := strings.Cut(part, ".experts."); ok {
			_, which, _ := strings.Cut(of, ".")
			part = "experts." + which
		}
		for _, pair := range [][2]string{{"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"}, {"self_attn.o_proj", "attn_output"},
			{"mlp.gate_proj", "ffn_gate"}, {"mlp.up_proj", "ffn_up"}, {"mlp.down_proj", "ffn_down"}, {"block_sparse_moe.gate", "ffn_gate_inp"},
			{"experts.w1", "ffn_gate_exps"}, {"experts.w3", "ffn_up_exps"}, {"experts.w2", "ffn_down_exps"}} {
			if part == pair[0]+".weight" {
				return "blk." + layer + "." + pair[1] + ".weight"
			}
		}
	}
	switch weight {
	case "model.embed_tokens.weight":
		return "token_embd.weight"
	case "lm_head.weight":
		return "output.weight"
	}
	return weight
}
