package decoder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"placer/graph"
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
	// Of compressed-tensors.
	Groups map[string]*scheme `json:"config_groups"`
	Ignore []string           `json:"ignore"`
	// Of keys and values that are kept, by compressed-tensors and NVIDIA's Model Optimizer.
	Cache *struct {
		Bits int64 `json:"num_bits"`
	} `json:"kv_cache_scheme"`
	// Of NVIDIA's Model Optimizer, which names what it ignores by shell patterns.
	Algorithm string `json:"quant_algo"`
}

// stored is how a quantized weight is held.
type stored struct {
	bits int64 // of an element
	// A group of elements of one output has a scale of scale bytes; a group of 0 elements
	// is a whole output's, one below 0 the whole weight.
	group, scale int64
	block        [2]int64 // outputs and inputs of a block that has a scale, in place of groups
	// few is the type of 8 or 4 bits that the weight is multiplied in, for its activations are
	// quantized to it as well; F32 where they are not, and products are in the model's own type.
	few graph.DType
}

// methods are the quantizers that are read.
const methods = "gptq, awq, bitsandbytes, fp8, fbgemm_fp8, compressed-tensors, modelopt, mxfp4"

// How bitsandbytes scales its weights: a float for each block of 64 elements, or, quantized
// in its turn, a byte (Dettmers et al., arXiv:2305.14314, section 3).
const bnbBlock = 64

// nvfp4 is NVIDIA's form of 4 bits: floats e2m1, with a float of 8 bits for each 16 of them, and
// activations alike.
var nvfp4 = stored{bits: 4, group: 16, scale: 1, few: graph.F4}

// defaultGroup is how many elements share a scale where GPTQ and AWQ do not say.
const defaultGroup = 128

// form returns how the method holds a weight. fp8 and fbgemm_fp8 quantize activations too,
// by a static or a dynamic scale.
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
		s = stored{bits: 8, group: -1, scale: 4, few: graph.F8}
		if len(q.Block) == 2 && min(q.Block[0], q.Block[1]) > 0 && max(q.Block[0], q.Block[1]) <= 1<<20 {
			s.block = [2]int64{q.Block[0], q.Block[1]}
		}
	case "mxfp4": // OCP Microscaling Formats 1.0: of experts alone
		s = stored{bits: 4, group: 32, scale: 1}
	case "modelopt":
		switch q.Algorithm {
		case "NVFP4":
			s = nvfp4
		case "FP8":
			s = stored{bits: 8, group: -1, scale: 4, few: graph.F8}
		default:
			return s, fmt.Errorf("quantization_config: modelopt's %q is not one of those that are read: FP8, NVFP4", foreign.Brief(q.Algorithm))
		}
	case "fbgemm_fp8":
		s = stored{bits: 8, group: 0, scale: 4, few: graph.F8}
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

// kept reports whether a parameter is left as it was: the table, the norms and the routers
// of experts are, the head unless a method says otherwise, and those that the file names.
func (q *quantization) kept(w workloads.Weight) bool {
	if !w.Product || w.Module == "lm_head" && !q.Head || q.Method == "mxfp4" && len(w.Shape) != 3 {
		return true
	}
	for _, name := range slices.Concat(q.Not, q.BnbNot) {
		if name != "" && strings.Contains("."+w.Module+".", "."+name+".") {
			return true
		}
	}
	return false
}

// holding returns how each weight is held, false for those that are left as they were.
func (q *quantization) holding() (func(workloads.Weight) (stored, bool), error) {
	if q.Method == "compressed-tensors" {
		return q.compressed()
	}
	s, err := q.form()
	if err != nil {
		return nil, err
	}
	var ignored modules
	if q.Method == "modelopt" {
		ignored, err = newModules(shellPatterns(q.Ignore))
	}
	return func(w workloads.Weight) (stored, bool) { return s, !q.kept(w) && !ignored.has(paths(w)) }, err
}

// quantize has d's linear weights held and multiplied as q says.
func (q *quantization) quantize(d *workloads.Decoder) error {
	hold, err := q.holding()
	if err != nil {
		return err
	}
	d.Stored = func(w workloads.Weight) (units.Bytes, bool) {
		s, ok := hold(w)
		if !ok {
			return 0, false
		}
		n, err := w.Shape.Elements()
		if err != nil {
			return 0, false
		}
		in, out := w.Shape[len(w.Shape)-2], w.Shape[len(w.Shape)-1]
		experts := n / (in * out)
		return units.Bytes((n*s.bits+7)/8 + experts*s.scales(in, out)*s.scale), true
	}
	d.Multiplied = func(w workloads.Weight) (graph.DType, bool) {
		s, ok := hold(w)
		return s.few, ok && s.few != graph.F32
	}
	return nil
}

// scales is how many scales a weight of in by out elements has.
func (s stored) scales(in, out int64) int64 {
	over := func(n, each int64) int64 { return (n + each - 1) / each }
	switch {
	case s.block[0] > 0:
		return over(out, s.block[0]) * over(in, s.block[1])
	case s.group < 0:
		return 1
	case s.group == 0:
		return out
	}
	return over(in*out, s.group)
}
