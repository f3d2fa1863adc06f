package hlo

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"placer/graph"
	"placer/units"
)

// XLA's compiler for NVIDIA's GPUs turns nearly every product and convolution into a custom
// call of a library: __cublas$gemm, __cublas$lt$matmul, __cublas$lt$matmul$f8,
// __cudnn$convForward and its like (xla/service/gpu/cublas_cudnn.h). What the call gives is
// a tuple: the result, what else the kernel makes, and the kernel's workspace in bytes.

// Prefixes of the targets.
const (
	cublas = "__cublas$"
	cudnn  = "__cudnn$conv"
	fmha   = "__cudnn$fmha"
)

// library returns the product of a custom call of such a library; zero for any other, and
// where its sizes cannot be read.
func (x *instruction) library() graph.GEMM {
	out := x.shape.first()
	if len(x.operands) == 1 && !x.operands[0].shape.is {
		return x.factorization()
	}
	if len(x.operands) < 2 || out == nil || x.operands[0].shape.is || x.operands[1].shape.is {
		return graph.GEMM{}
	}
	a, b := &x.operands[0].shape, &x.operands[1].shape
	switch target := x.attr.target; {
	case strings.HasPrefix(target, cublas):
		if contracting, batch := gemmDims(x.attr.config); len(contracting) > 0 {
			return multiply(a.dims, contracting, batch, out.elements())
		}
	case strings.HasPrefix(target, cudnn+"BackwardInput"): // gradient, kernel; the labels are the forward pass'
		g := x.convolve(b, a)
		g.N, g.K = g.K, g.N
		return g
	case strings.HasPrefix(target, cudnn+"BackwardFilter"): // input, gradient
		g := x.convolve(out, b)
		g.M, g.K = g.K, g.M
		return g
	case strings.HasPrefix(target, cudnn):
		return x.convolve(b, out)
	case strings.HasPrefix(target, fmha):
		return x.attention()
	}
	return x.factorization()
}

// libraryKind is the graph's name of what a custom call with a product does.
func (x *instruction) libraryKind() graph.Kind {
	switch {
	case strings.HasPrefix(x.attr.target, cublas):
		return "MatMul"
	case strings.HasPrefix(x.attr.target, cudnn+"BackwardInput"):
		return "Conv2DBackpropInput"
	case strings.HasPrefix(x.attr.target, cudnn+"BackwardFilter"):
		return "Conv2DBackpropFilter"
	case strings.HasPrefix(x.attr.target, cudnn):
		return "Conv2D"
	case strings.HasPrefix(x.attr.target, fmha):
		if strings.Contains(x.attr.target, "Backward") {
			return graph.AttentionGrad
		}
		return graph.Attention
	}
	return "MatMul"
}

// workspace returns the bytes at the end of what a library's call gives that are its
// kernel's own: nothing says how much of them it touches.
func (x *instruction) workspace() units.Bytes {
	if n := len(x.shape.tuple); n > 1 {
		if last := &x.shape.tuple[n-1]; !last.is && len(last.dims) == 1 && last.elem.dtype == graph.I8 {
			return last.bytes()
		}
	}
	return 0
}

// dotDimensions are the message DotDimensionNumbers in JSON, where whole numbers are
// strings, or numbers.
type dotDimensions struct {
	Contracting []any `json:"lhs_contracting_dimensions"`
	Batch       []any `json:"lhs_batch_dimensions"`
}

// gemmConfig is XLA's message GemmBackendConfig, as far as sizes need it.
type gemmConfig struct {
	Dot dotDimensions `json:"dot_dimension_numbers"`
}

// gemmDims returns the dimensions of the left operand that a library's product sums over,
// and those that are a batch, from the call's configuration: JSON, since 2024 within the
// message GpuBackendConfig, and in a string in old modules. Nothing where it is neither.
func gemmDims(config string) (contracting, batch []int64) {
	var all struct {
		gemmConfig
		Inner gemmConfig `json:"gemm_backend_config"`
	}
	if !readConfig(config, &all) {
		return nil, nil
	}
	dot := all.Inner.Dot
	if len(dot.Contracting) == 0 {
		dot = all.Dot
	}
	return wholes(dot.Contracting), wholes(dot.Batch)
}

// readConfig reads a call's configuration into what to points at, and reports whether it is JSON.
func readConfig(config string, to any) bool {
	if strings.HasPrefix(config, `"`) {
		text, err := strconv.Unquote(config)
		if err != nil {
			return false
		}
		config = text
	}
	return json.Unmarshal([]byte(config), to) == nil
}

// wholes returns the whole numbers of a list.
func wholes(list []any) (n []int64) {
	for _, x := range list {
		if i, err := strconv.ParseInt(fmt.Sprint(x), 10, 64); err == nil {
			n = append(n, i)
		}
	}
	return n
}
