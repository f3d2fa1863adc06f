package hlo

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph"
)

// last is the op that a module's result is made by.
func last(g *graph.Graph) *graph.Op { return g.Op(graph.OpID(g.NumOps() - 1)) }

// Products of groups of rows (lax.ragged_dot, as JAX's mixtures of experts have them) and their
// gradients count each row once. JAX 0.10 writes these forms for GPUs and TPUs.
func TestRaggedProducts(t *testing.T) {
	const types = "%arg0: tensor<64x32xf32>, %arg1: tensor<8x32x16xf32>, %arg2: tensor<8xi32>"
	stable := func(arguments, result, numbers string) []byte {
		return stableOf(arguments, result, `    %0 = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<`+numbers+`>}> : (`+result+`, `+result+`, tensor<8xi32>) -> `+result+"\n    return %0 : "+result)
	}
	for name, c := range map[string]struct {
		text []byte
		want graph.GEMM
	}{
		"HLO": {[]byte("HloModule m\nENTRY e {\n  a = f32[64,32] parameter(0)\n  b = f32[8,32,16] parameter(1)\n  n = s32[8] parameter(2)\n  ROOT d = f32[64,16] ragged-dot(a, b, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}\n}\n"),
			graph.GEMM{Batch: 1, M: 64, N: 16, K: 32}},
		"HLO, gradient of the matrices": {[]byte("HloModule m\nENTRY e {\n  a = f32[64,32] parameter(0)\n  b = f32[64,16] parameter(1)\n  n = s32[8] parameter(2)\n  ROOT d = f32[8,32,16] ragged-dot(a, b, n), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}\n}\n"),
			graph.GEMM{Batch: 1, M: 32, N: 16, K: 64}},
		"StableHLO": {stable(types, "tensor<64x16xf32>", "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]"),
			graph.GEMM{Batch: 1, M: 64, N: 16, K: 32}},
		"StableHLO, gradient of the rows": {stable("%arg0: tensor<64x16xf32>, %arg1: tensor<8x32x16xf32>, %arg2: tensor<8xi32>", "tensor<64x32xf32>", "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]"),
			graph.GEMM{Batch: 1, M: 64, N: 32, K: 16}},
		"StableHLO, batches": {stable("%arg0: tensor<3x64x32xf32>, %arg1: tensor<8x3x32x16xf32>, %arg2: tensor<8xi32>", "tensor<3x64x16xf32>", "lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]"),
			graph.GEMM{Batch: 3, M: 64, N: 16, K: 32}},
	} {
		read := Import
		if name[:3] != "HLO" {
			read = ImportStable
		}
		g, _, err := read(c.text, "f", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if o := last(g); o.Kind != "GroupedMatMul" || o.GEMM != c.want || o.FLOPs != c.want.FLOPs() {
			t.Errorf("%s: %s, %+v, %v operations, want %+v", name, o.Kind, o.GEMM, o.FLOPs, c.want)
		}
	}
	// RaggedDotDimensionNumbers as XLA writes it of the first of these.
	numbers := protowire.AppendBytes(protowire.AppendTag(nil, 90, protowire.BytesType), []byte("\n\x06\n\x01\x01\x12\x01\x01\x12\x01\x00\x1a\x01\x00"))
	x, _, err := protoInstruction(numbers, nil)
	if err != nil || len(x.attr.contracting) != 1 || len(x.attr.rightContracting) != 1 || len(x.attr.groupDims) != 1 || len(x.attr.rightBatch) != 0 {
		t.Errorf("protocol buffer: %+v, %v", x.attr, err)
	}
}

// A product of complex numbers takes eight operations of real ones for each pair, elsewhere two.
func TestComplexNumbers(t *testing.T) {
	g, _, err := Import(one("c64[8,64]", "c64[64,16]", "ROOT d = c64[8,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := last(g); o.FLOPs != 8*8*16*64 || o.GEMM != (graph.GEMM{Batch: 1, M: 8, N: 32, K: 128}) || o.DType != graph.F32 {
		t.Errorf("%+v, %v operations of %v", o.GEMM, o.FLOPs, o.DType)
	}
	for text, want := range map[string]float64{"add": 2, "multiply": 6} {
		g, _, err := Import(one("c64[8,64]", "c64[8,64]", "ROOT d = c64[8,64] "+text+"(a, b)"), "f", nil)
		if err != nil {
			t.Fatal(err)
		}
		if o := last(g); float64(o.FLOPs) != want*8*64 {
			t.Errorf("%s: %v operations", text, o.FLOPs)
		}
	}
}

// Factorisations have the operations of textbooks, as instructions and as calls of libraries.
func TestFactorizations(t *testing.T) {
	const n = 96
	for text, want := range map[string]float64{
		"f32[4,96,96] cholesky(a), lower=true":                                                            4 * n * n * n / 3.,
		"f32[4,96,8] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE":        4 * n * n * 8,
		`(f32[4,96,96], s32[4,96], s32[4]) custom-call(a), custom_call_target="cusolver_getrf_ffi"`:       4 * 2 * n * n * n / 3.,
		`(f32[4,96,96], s32[4]) custom-call(a), custom_call_target="lapack_spotrf_ffi"`:                   4 * n * n * n / 3.,
		`(f32[4,96,96], f32[4,96]) custom-call(a), custom_call_target="cusolver_geqrf_ffi"`:               4 * 4 * n * n * n / 3.,
		`(f32[4,96,8], s32[4]) custom-call(a, b), custom_call_target="lapack_strsm_ffi"`:                  4 * n * n * 8,
		`(f32[4,96,96], f32[4,96], s32[4]) custom-call(a), custom_call_target="lapack_ssyevd_ffi"`:        0,
		`(f32[4,96,96], f32[4,96], s32[4]) custom-call(a, b), custom_call_target="potrf_of_another_kind"`: 0,
	} {
		g, _, err := Import(one("f32[4,96,96]", "f32[4,96,8]", "ROOT d = "+text), "f", nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if o := last(g); float64(o.FLOPs) != want || o.GEMM.FLOPs() != o.FLOPs {
			t.Errorf("%s: %v operations, want %v", text, float64(o.FLOPs), want)
		}
	}
}

// A composite operation is what its decomposition does: JAX's lax.composite, and exporters of
// attention.
func TestComposite(t *testing.T) {
	g, _, err := ImportStable([]byte(`module @m {
  func.func public @main(%arg0: tensor<8x64xf32>, %arg1: tensor<64x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.composite "my.linear" %arg0, %arg1 {composite_attributes = {name = "@other"}, decomposition = @my.linear, version = 1 : i32} : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
  func.func private @my.linear(%arg0: tensor<8x64xf32>, %arg1: tensor<64x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.tanh %0 : tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
}
`), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2*8*64*16 + 4*8*16; int(g.FLOPs()) != want {
		t.Errorf("%v operations, want %d", g.FLOPs(), want)
	}
}

// cuDNN's attention in one kernel, which jax.nn.dot_product_attention calls: two sequences of 128
// tokens, four heads that share two of keys, causal, as StableHLO and as HLO.
func TestLibraryAttention(t *testing.T) {
	const config = `{"cudnn_fmha_backend_config": {"intermediate_tensor_shape": {"element_type": "BF16", "dimensions": ["2", "4", "128", "128"]}, "mask_type": "MASK", "sliding_window_length": 0}}`
	hlo := func(mask, target string) []byte {
		return []byte("HloModule m\nENTRY e {\n  q = bf16[2,128,4,64] parameter(0)\n  k = bf16[2,128,2,64] parameter(1)\n  v = bf16[2,128,2,64] parameter(2)\n" +
			"  ROOT d = (bf16[2,4,128,64], f32[2,4,128], u8[0]) custom-call(q, k, v), custom_call_target=\"" + target + "\", backend_config=" + strings.ReplaceAll(config, "MASK", mask) + "\n}\n")
	}
	all := graph.Attending{Heads: 2 * 2, Group: 2, Queries: 2 * 128, Seen: 128, KeyDim: 64, ValueDim: 64}
	causal := all
	causal.Seen = 65
	stable := stableOf("%arg0: tensor<2x128x4x64xbf16>, %arg1: tensor<2x128x2x64xbf16>", "tensor<2x4x128x64xbf16>",
		`    %0:3 = stablehlo.custom_call @__cudnn$fmhaSoftmax(%arg0, %arg1, %arg1) {api_version = 2 : i32, backend_config = "`+strings.ReplaceAll(strings.ReplaceAll(config, "MASK", "CAUSAL"), `"`, `\22`)+`"} : (tensor<2x128x4x64xbf16>, tensor<2x128x2x64xbf16>, tensor<2x128x2x64xbf16>) -> (tensor<2x4x128x64xbf16>, tensor<2x4x128xf32>, tensor<0xui8>)`+"\n    return %0#0 : tensor<2x4x128x64xbf16>")
	for name, c := range map[string]struct {
		text []byte
		kind graph.Kind
		want graph.GEMM
	}{
		"all":       {hlo("NO_MASK", "__cudnn$fmhaSoftmax"), graph.Attention, all.Forward()},
		"causal":    {hlo("CAUSAL", "__cudnn$fmhaSoftmax"), graph.Attention, causal.Forward()},
		"gradient":  {hlo("CAUSAL", "__cudnn$fmhaSoftmaxBackward"), graph.AttentionGrad, causal.Backward()},
		"StableHLO": {stable, graph.Attention, causal.Forward()},
	} {
		read := Import
		if name == "StableHLO" {
			read = ImportStable
		}
		g, sum, err := read(c.text, "f", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if o := last(g); o.Kind != c.kind || o.GEMM != c.want || len(sum.Notes) > 1 {
			t.Errorf("%s: %s, %+v, want %+v; notes %q", name, o.Kind, o.GEMM, c.want, sum.Notes)
		}
	}
}
