package decoder

import (
	"cmp"
	"fmt"
	"strings"

	"placer/graph/formats/foreign"
	"placer/units"
	"placer/workloads"
)

// quantization is what a config.json says of quantized weights, under the names of its
// quantizers: transformers' quantization_config.
type quantization struct {
	Method  string   `json:"quant_method"`
	Bits    int64    `json:"bits"`
	WBits   int64    `json:"w_bit"` // AutoAWQ's names, as files from before transformers had them
	Group   int64    `json:"group_size"`
	QGroup  int64    `json:"q_group_size"`
	Bnb4    bool     `json:"load_in_4bit"`
	Bnb4Old bool     `json:"_load_in_4bit"`
	Double  bool     `json:"bnb_4bit_use_double_quant"`
	Block   []int64  `json:"weight_block_size"`
	Head    bool     `json:"lm_head"`
	Not     []string `json:"modules_to_not_convert"`
	BnbNot  []string `json:"llm_int8_skip_modules"`
}

// stored is how a quantized weight is held.
type stored struct {
	bits int64 // of an element
	// A group of elements of one output has a scale of scale bytes; a group of 0 elements
	// is a whole output's, one below 0 the whole weight.
	group, scale int64
}

// methods are the quantizers that are read.
const methods = "gptq, awq, bitsandbytes, fp8, fbgemm_fp8"

// How bitsandbytes scales its weights: a float for each block of 64 elements, or, quantized
// in its turn, a byte (Dettmers et al., arXiv:2305.14314, section 3).
const bnbBlock = 64

// defaultGroup is how many elements share a scale where GPTQ and AWQ do not say.
const defaultGroup = 128

// form returns how the method holds a weight.
func (q *quantization) form() (s stored, err error) {
	switch q.Method {
	case "gptq", "awq":
		s = stored{bits: cmp.Or(q.Bits, q.WBits), group: cmp.Or(q.Group, q.QGroup, defaultGroup), scale: 2}
		if s.group < 0 {
			s.group = 0
		}
	case "bitsandbytes":
		switch {
		case !q.Bnb4 && !q.Bnb4Old:
			s = stored{bits: 8, group: 0, scale: 4}
		case q.Double:
			s = stored{bits: 4, group: bnbBlock, scale: 1}
		default:
			s = stored{bits: 4, group: bnbBlock, scale: 4}
		}
	case "fp8":
		s = stored{bits: 8, group: -1, scale: 4}
		if len(q.Block) == 2 && min(q.Block[0], q.Block[1]) > 0 && max(q.Block[0], q.Block[1]) <= 1<<20 {
			s.group = q.Block[0] * q.Block[1]
		}
	case "fbgemm_fp8":
		s = stored{bits: 8, group: 0, scale: 4}
	default:
		return s, fmt.Errorf("quantization_config: method %q is not one of those that are read: %s", foreign.Brief(q.Method), methods)
	}
	if s.bits < 2 || s.bits > 8 {
		return s, fmt.Errorf("quantization_config: %s of %d bits, want 2 to 8", q.Method, s.bits)
	}
	if s.group > 1<<40 {
		return s, fmt.Errorf("quantization_config: groups of %d elements", s.group)
	}
	return s, nil
}

// kept reports whether a module's weight is left as it was: the table and the norms are,
// the head and the routers of experts unless a method says otherwise, and those that the
// file names.
func (q *quantization) kept(module string) bool {
	if module == "model.embed_tokens" || strings.HasSuffix(module, "block_sparse_moe.gate") || module == "lm_head" && !q.Head {
		return true
	}
	for _, name := range append(q.Not, q.BnbNot...) {
		if name != "" && strings.Contains("."+module+".", "."+name+".") {
			return true
		}
	}
	return false
}

// quantize has d's linear weights held as q says.
func (q *quantization) quantize(d *workloads.Decoder) error {
	s, err := q.form()
	if err != nil {
		return err
	}
	d.Stored = func(weight string) (units.Bytes, bool) {
		module, ok := strings.CutSuffix(weight, ".weight")
		if !ok || q.kept(module) {
			return 0, false
		}
		in, out := linearSizes(d, module)
		n := in * out
		scales := (n + max(s.group, 1) - 1) / max(s.group, 1)
		switch {
		case s.group < 0:
			scales = 1
		case s.group == 0:
			scales = out
		}
		return units.Bytes((n*s.bits+7)/8 + scales*s.scale), n > 0
	}
	return nil
}

// linearSizes returns the inputs and outputs of a linear module of d; 0 and 0 for any
// other.
func linearSizes(d *workloads.Decoder, module string) (in, out int64) {
	queries, keys := d.Heads*d.HeadDim, d.KVHeads*d.HeadDim
	switch module[strings.LastIndexByte(module, '.')+1:] {
	case "q_proj":
		return d.Hidden, queries
	case "k_proj", "v_proj":
		return d.Hidden, keys
	case "o_proj":
		return queries, d.Hidden
	case "gate_proj", "up_proj", "w1", "w3":
		return d.Hidden, d.FFN
	case "down_proj", "w2":
		return d.FFN, d.Hidden
	case "lm_head":
		return d.Hidden, d.Vocab
	}
	return 0, 0
}
