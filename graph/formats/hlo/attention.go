package hlo

import (
	"strings"

	"placer/graph"
)

// fmhaConfig is XLA's message CudnnfMHABackendConfig, as far as sizes need it.
type fmhaConfig struct {
	Scores struct {
		Dimensions []any `json:"dimensions"` // batch, heads, queries, keys
	} `json:"intermediate_tensor_shape"`
	Mask   string `json:"mask_type"`
	Window int64  `json:"sliding_window_length"`
}

// attention returns the products of a call of cuDNN's attention in one kernel
// (__cudnn$fmhaSoftmax, __cudnn$fmhaSoftmaxBackward and their like), which JAX's
// dot_product_attention makes, whose operands are queries, keys and values first; heads may lie
// before or behind the tokens. Zero where its sizes cannot be read.
func (x *instruction) attention() graph.GEMM {
	var all struct {
		fmhaConfig
		Inner fmhaConfig `json:"cudnn_fmha_backend_config"`
	}
	if len(x.operands) < 3 || !readConfig(x.attr.config, &all) {
		return graph.GEMM{}
	}
	c := all.Inner
	if len(c.Scores.Dimensions) == 0 {
		c = all.fmhaConfig
	}
	scores, widths := wholes(c.Scores.Dimensions), [3]int64{}
	for k, from := range x.operands[:3] {
		if d := from.shape.dims; !from.shape.is && len(d) == 4 {
			widths[k] = d[3]
		}
	}
	if len(scores) != 4 || widths[0] != widths[1] {
		return graph.GEMM{}
	}
	for _, n := range append(scores, widths[:]...) {
		if n < 1 || n > 1<<30 {
			return graph.GEMM{}
		}
	}
	batch, heads, queries, keys := scores[0], scores[1], scores[2], scores[3]
	a := graph.Attending{Heads: batch * heads, Queries: queries, Seen: keys, KeyDim: widths[0], ValueDim: widths[2]}
	if shared := x.operands[1].shape.elements() / (batch * keys * widths[1]); shared > 0 && heads%shared == 0 {
		a.Heads, a.Group, a.Queries = batch*shared, heads/shared, queries*(heads/shared)
	}
	if strings.Contains(c.Mask, "CAUSAL") && keys >= queries {
		a.Seen = graph.Seen(queries, keys-queries, c.Window)
	}
	if strings.Contains(x.attr.target, "Backward") {
		return a.Backward()
	}
	return a.Forward()
}
