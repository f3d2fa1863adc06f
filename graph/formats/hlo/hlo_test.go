package hlo

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph"
	"placer/graph/formats/formatstest"
	"placer/internal/published"
	"placer/units"
)

const loop = `HloModule counted, input_output_alias={ {0}: (1, {}, may-alias) }
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
%body (p: (s32[], f32[8,16])) -> (s32[], f32[8,16]) {
  %p = (s32[], f32[8,16]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8,16]{1,0} get-tuple-element(%p), index=1
  %two = s32[] constant(2)
  %next = s32[] add(%i, %two)
  %w = f32[16,16]{1,0} constant({...})
  %y = f32[8,16]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %t = (s32[], f32[8,16]{1,0}) tuple(%next, %y)
}
%cond (p.1: (s32[], f32[8,16])) -> pred[] {
  %p.1 = (s32[], f32[8,16]{1,0}) parameter(0)
  %i.1 = s32[] get-tuple-element((s32[], /*index=1*/f32[8,16]{1,0}) %p.1), index=0
  %n = s32[] constant(9)
  ROOT %lt = pred[] compare(%i.1, %n), direction=LT
}
double {
  q = f32[8,16] parameter(0)
  ROOT r = f32[8,16] add(q, q)
}
ENTRY %main (x0: f32[8,16], s: f32[8,16]) -> f32[8] {
  %x0 = f32[8,16]{1,0} parameter(0)
  %s = f32[8,16]{1,0} parameter(1)
  %zero = s32[] constant(0)
  %start = (s32[], f32[8,16]{1,0}) tuple(%zero, %x0)
  %while.1 = (s32[], f32[8,16]{1,0}) while(%start), condition=%cond, body=%body, metadata={op_name="jit(f)/jit(main)/transpose(jvp(Net))/layer_0/while"}
  %out = f32[8,16]{1,0} get-tuple-element(%while.1), index=1
  %c = f32[8,16]{1,0} call(%out), to_apply=double
  %f0 = f32[] constant(0)
  ROOT %red = f32[8]{0} reduce(%c, %f0), dimensions={1}, to_apply=sum, control-predecessors={%while.1}
}
`

// A loop costs its body times its trips: i = 0, 2, 4, 6, 8 below 9.
func TestLoop(t *testing.T) {
	g, sum, err := Import([]byte(loop), "dir/counted.hlo", nil)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Instructions != 26 || sum.Computations != 5 || g.Name() != "counted" {
		t.Errorf("%+v, name %s", sum, g.Name())
	}
	ops := map[string]*graph.Op{}
	for i := range g.NumOps() {
		ops[g.Op(graph.OpID(i)).Name] = g.Op(graph.OpID(i))
	}
	w := ops["while.1"]
	if w == nil || w.GEMM != (graph.GEMM{Batch: 1, M: 8, N: 16, K: 16}) || w.Repeats != 5 || w.Kernels > 1 || w.FLOPs != 5*(2*8*16*16+2) || w.Module != "Net.layer_0" || w.Phase != graph.Backward {
		t.Errorf("loop: %+v", w)
	}
	if r := ops["c/r"]; r == nil || r.Kind != "Add" || r.FLOPs != 128 {
		t.Errorf("the call is not inlined: %+v", r)
	}
	if s := ops["s"]; s.Kind != "VariableV2" || s.Resident != 512 || ops["x0"].Kind != "Placeholder" {
		t.Errorf("parameters: %+v", s)
	}
	if r := ops["red"]; r.Kind != "Sum" || g.NumControl() != 1 {
		t.Errorf("reduction: %+v, %d control edges", r, g.NumControl())
	}
}

// An iteration launches a kernel for each product, reduction and whatever else does not join
// others; elementwise instructions do.
func TestLoopKernels(t *testing.T) {
	const y = "  %y = f32[8,16]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	two := y + strings.ReplaceAll(strings.Replace(y, "%x", "%a", 1), "%y", "%b") + "  %c = f32[8]{0} reduce(%b, %f), dimensions={1}, to_apply=sum\n"
	two = strings.Replace(two, "  %b", "  %a = f32[8,16]{1,0} tanh(%y)\n  %f = f32[] constant(0)\n  %b", 1)
	g, _, err := Import([]byte(strings.Replace(loop, y, two, 1)), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := named(t, g, "while.1"); w.Repeats != 5 || w.Kernels != 3 || w.GEMM != (graph.GEMM{Batch: 2, M: 8, N: 16, K: 16}) {
		t.Errorf("%+v, want 5 iterations of 3 kernels", w)
	}
}

// one is a module of an entry that multiplies a by b, and of what else stands in it.
func one(a, b, rest string) []byte {
	return fmt.Appendf(nil, "HloModule m\nENTRY e {\n  a = %s parameter(0)\n  b = %s parameter(1)\n  %s\n}\n", a, b, rest)
}

// An op's type is that of what its product multiplies, not of what it gives: a loop gives
// its counter first, and products add up in a wider type than they multiply.
func TestProductType(t *testing.T) {
	const dims = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}"
	for name, c := range map[string]struct {
		file []byte
		op   string
		want graph.DType
	}{
		"loop":                {[]byte(loop), "while.1", graph.F32},
		"bf16 into f32":       {one("bf16[8,16]", "bf16[16,4]", "ROOT d = f32[8,4] dot(a, b)"+dims), "d", graph.BF16},
		"s8 into s32":         {one("s8[8,16]", "s8[16,4]", "ROOT d = s32[8,4] dot(a, b)"+dims), "d", graph.I8},
		"f8 into bf16":        {one("f8e4m3fn[8,16]", "f8e5m2[16,4]", "ROOT d = bf16[8,4] dot(a, b)"+dims), "d", graph.F8},
		"s4 weights":          {one("bf16[8,16]", "s4[16,4]", "ROOT d = bf16[8,4] dot(a, b)"+dims), "d", graph.BF16},
		"convolution of bf16": {one("bf16[2,8,8,3]", "bf16[3,3,3,4]", "ROOT d = f32[2,8,8,4] convolution(a, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"), "d", graph.BF16},
		"no product":          {one("bf16[8,16]", "bf16[8,16]", "ROOT d = f32[8,16] add(a, b)"), "d", graph.F32},
	} {
		g, _, err := Import(c.file, "f", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if o := named(t, g, c.op); o.DType != c.want || o.GEMM.IsZero() != (name == "no product") {
			t.Errorf("%s: arithmetic in %v, want %v; product %v", name, o.DType, c.want, o.GEMM)
		}
	}
}

// Several products in one op are one product of as many operations, so that none of them
// is priced as arithmetic outside of products.
func TestMergedProducts(t *testing.T) {
	for name, c := range map[string]struct {
		parts []graph.GEMM // the first is the largest
		times float64
		want  graph.GEMM
	}{
		"a loop":                   {[]graph.GEMM{{Batch: 1, M: 8, N: 16, K: 16}}, 5, graph.GEMM{Batch: 1, M: 8, N: 16, K: 16}},
		"a loop over two":          {[]graph.GEMM{{Batch: 1, M: 8, N: 16, K: 16}, {Batch: 1, M: 8, N: 16, K: 16}}, 5, graph.GEMM{Batch: 2, M: 8, N: 16, K: 16}},
		"one and a third":          {[]graph.GEMM{{Batch: 1, M: 96, N: 64, K: 32}, {Batch: 1, M: 32, N: 64, K: 32}}, 1, graph.GEMM{Batch: 1, M: 128, N: 64, K: 32}},
		"one and a half, of a row": {[]graph.GEMM{{Batch: 1, M: 1, N: 64, K: 32}, {Batch: 1, M: 1, N: 32, K: 32}}, 1, graph.GEMM{Batch: 1, M: 1, N: 96, K: 32}},
		"many heads":               {[]graph.GEMM{{Batch: 100, M: 10, N: 10, K: 10}, {Batch: 50, M: 10, N: 10, K: 10}}, 1, graph.GEMM{Batch: 150, M: 10, N: 10, K: 10}},
	} {
		var sum, all cost
		for _, g := range c.parts {
			sum.add(cost{product: g, in: g.FLOPs(), flops: g.FLOPs()}, 1)
		}
		all.add(sum, c.times)
		if g := all.gemm(); g != c.want || g.FLOPs()*units.FLOPs(c.times) != all.in || all.repeats != c.times {
			t.Errorf("%s: %+v %v times, %v of %v FLOPs", name, g, all.repeats, g.FLOPs(), all.in)
		}
	}
}

// A transposed convolution, whose input has zeros put between its elements, multiplies by
// none of them.
func TestSpread(t *testing.T) {
	const text = "ROOT d = f32[2,16,16,4] convolution(a, b), window={size=4x4 pad=2_2x2_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f"
	m, err := parseText(one("f32[2,8,8,8]", "f32[4,4,8,4]", text))
	if err != nil {
		t.Fatal(err)
	}
	if x := m.entry.root; x.attr.spread != 4 {
		t.Errorf("spread %d", x.attr.spread)
	}
	window := func(dilations ...uint64) (b []byte) {
		for _, d := range dilations {
			dim := protowire.AppendVarint(protowire.AppendTag(nil, 6, protowire.VarintType), d)
			b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), dim)
		}
		return protowire.AppendBytes(protowire.AppendTag(nil, 15, protowire.BytesType), b)
	}
	if x, _, err := protoInstruction(window(2, 2), nil); err != nil || x.attr.spread != 4 {
		t.Errorf("protocol buffer: %+v, %v", x.attr, err)
	}
	want := graph.GEMM{Batch: 1, M: 512, N: 4, K: 4 * 4 * 8 / 4}
	pretty := "func.func @f(%a: tensor<2x8x8x8xf32>, %b: tensor<4x4x8x4xf32>) -> tensor<2x16x16x4xf32> {\n  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[2, 2], [2, 2]], SPREAD} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x8xf32>, tensor<4x4x8x4xf32>) -> tensor<2x16x16x4xf32>\n  return %0 : tensor<2x16x16x4xf32>\n}"
	for name, read := range map[string]func() (*graph.Graph, *Summary, error){
		"HLO": func() (*graph.Graph, *Summary, error) {
			return Import(one("f32[2,8,8,8]", "f32[4,4,8,4]", text), "f", nil)
		},
		"StableHLO": func() (*graph.Graph, *Summary, error) {
			return ImportStable([]byte(strings.Replace(pretty, "SPREAD", "lhs_dilate = [2, 2]", 1)), "f", nil)
		},
		"StableHLO's generic form": func() (*graph.Graph, *Summary, error) {
			return ImportStable([]byte(strings.Replace(pretty, "SPREAD", "lhs_dilation = array<i64: 2, 2>", 1)), "f", nil)
		},
	} {
		g, _, err := read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if o := g.Op(graph.OpID(g.NumOps() - 1)); o.GEMM != want || o.FLOPs != want.FLOPs() {
			t.Errorf("%s: %+v, %v FLOPs", name, o.GEMM, o.FLOPs)
		}
	}
}

// Custom calls of cuBLAS and cuDNN are the products that their configurations and labels
// tell of, in the forms that XLA has written over the years.
func TestLibraryCalls(t *testing.T) {
	const dims = `{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}`
	call := func(out, target, rest string) string {
		return "ROOT d = " + out + " custom-call(a, b), custom_call_target=\"" + target + "\"" + rest
	}
	for name, c := range map[string]struct {
		a, b, op string
		want     graph.GEMM
		dtype    graph.DType
		bytes    units.Bytes
	}{
		"cublas": {"bf16[8,16]", "bf16[16,4]", call("(bf16[8,4], s8[33554432])", "__cublas$gemm", `, backend_config={"operation_queue_id":"0","gemm_backend_config":{"alpha_real":1,"dot_dimension_numbers":`+dims+`},"force_earliest_schedule":false}`),
			graph.GEMM{Batch: 1, M: 8, N: 4, K: 16}, graph.BF16, 2 * (8*16 + 16*4 + 8*4)},
		"cublaslt in f8": {"f8e4m3fn[8,16]", "f8e5m2[4,16]", call("(f32[8,4], s8[4096])", "__cublas$lt$matmul$f8", `, backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":[1],"rhs_contracting_dimensions":[1]},"epilogue":"DEFAULT"}}`),
			graph.GEMM{Batch: 1, M: 8, N: 4, K: 16}, graph.F8, 8*16 + 16*4 + 4*8*4},
		"a batch, in a string": {"f32[3,16,8]", "f32[3,16,4]", call("f32[3,8,4]", "__cublas$gemm", `, backend_config="{\"alpha_real\":1,\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"1\"],\"lhs_batch_dimensions\":[\"0\"],\"rhs_batch_dimensions\":[\"0\"]}}"`),
			graph.GEMM{Batch: 3, M: 8, N: 4, K: 16}, graph.F32, 4 * 3 * (8*16 + 16*4 + 8*4)},
		"cudnn": {"f16[2,8,8,3]", "f16[3,3,3,5]", call("(f16[2,8,8,5], u8[100])", "__cudnn$convForward", ", window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
			graph.GEMM{Batch: 1, M: 128, N: 5, K: 27}, graph.F16, 2 * (2*8*8*3 + 27*5 + 2*8*8*5)},
		"cudnn's gradient of the input": {"f16[2,8,8,5]", "f16[3,3,3,5]", call("(f16[2,8,8,3], u8[0])", "__cudnn$convBackwardInput", ", window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
			graph.GEMM{Batch: 1, M: 128, N: 27, K: 5}, graph.F16, 2 * (2*8*8*3 + 27*5 + 2*8*8*5)},
		"cudnn's gradient of the kernel": {"f16[2,8,8,3]", "f16[2,8,8,5]", call("(f16[3,3,3,5], u8[0])", "__cudnn$convBackwardFilter", ", window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
			graph.GEMM{Batch: 1, M: 27, N: 5, K: 128}, graph.F16, 2 * (2*8*8*3 + 27*5 + 2*8*8*5)},
	} {
		g, sum, err := Import(one(c.a, c.b, c.op), "f", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if o := named(t, g, "d"); o.GEMM != c.want || o.FLOPs != c.want.FLOPs() || o.DType != c.dtype || o.Bytes != c.bytes || len(sum.Notes) > 0 {
			t.Errorf("%s: %+v, %v FLOPs of %v, %d bytes, want %d, notes %q", name, o.GEMM, o.FLOPs, o.DType, o.Bytes, c.bytes, sum.Notes)
		}
	}
	_, sum, err := Import(one("f32[8,16]", "f32[16,4]", call("f32[8,4]", "__cublas$gemm", `, backend_config={"x":1}`)), "f", nil)
	if want := "custom calls of __cublas$gemm cost the bytes of their operands and results alone: their sizes cannot be read"; err != nil || len(sum.Notes) != 1 || sum.Notes[0] != want {
		t.Errorf("notes %q, %v", sum.Notes, err)
	}
}

func named(t *testing.T, g *graph.Graph, name string) *graph.Op {
	t.Helper()
	for i := range g.NumOps() {
		if o := g.Op(graph.OpID(i)); o.Name == name {
			return o
		}
	}
	t.Fatalf("no op %s", name)
	return nil
}

// A trip count that a module does not show is stated, or the loop is refused by name.
func TestUncounted(t *testing.T) {
	text := []byte(strings.Replace(loop, "direction=LT", "direction=NE", 1))
	if _, _, err := Import(text, "f", nil); err == nil || err.Error() != "f: instruction while.1: a loop that runs an unknown number of times: state it by --dim while.1=N" {
		t.Error(err)
	}
	g, _, err := Import(text, "f", map[string]int64{"while.1": 3})
	if err != nil || g.FLOPs() < 3*2*8*16*16 || g.FLOPs() > 3*2*8*16*16+1000 {
		t.Errorf("%v FLOPs, %v", g.FLOPs(), err)
	}
	noted := strings.Replace(string(text), "body=%body", `body=%body, backend_config={"known_trip_count":{"n":"7"}}`, 1)
	if g, _, err := Import([]byte(noted), "f", nil); err != nil || g.FLOPs() < 7*2*8*16*16 {
		t.Errorf("a noted trip count: %v", err)
	}
}

const stable = `module @m {
  func.func private @relu(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }
  func.func public @main(%arg0: tensor<4x8xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<i1>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<6> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_1 = %arg0) : tensor<i32>, tensor<4x8xf32>
     cond {
      %5 = stablehlo.compare  LT, %iterArg, %c_0,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.dot_general %iterArg_1, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %6 = stablehlo.add %iterArg, %c_2 : tensor<i32>
      stablehlo.return %6, %5 : tensor<i32>, tensor<4x8xf32>
    }
    %1 = call @relu(%0#1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = "stablehlo.reduce"(%1, %c) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %5 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<4x8xf32>, tensor<i32>) -> tensor<f32>
    %3 = stablehlo.compare  GT, %2, %2 : (tensor<f32>, tensor<f32>) -> tensor<i1> // "a note"
    return %1, %3 : tensor<4x8xf32>, tensor<i1>
  }
}
`

func TestStableHLO(t *testing.T) {
	if !SniffStable([]byte(stable)) {
		t.Error("not recognised")
	}
	g, sum, err := ImportStable([]byte(stable), "f.mlir", nil)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Instructions != 14 || g.NumOps() != 10 {
		t.Errorf("%d instructions, %d ops", sum.Instructions, g.NumOps())
	}
	found := false
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "while" {
			found = true
			if o.GEMM != (graph.GEMM{Batch: 1, M: 4, N: 8, K: 8}) || o.Repeats != 6 || len(g.Inputs(i)) != 4 { // two variables, two captured
				t.Errorf("loop: %+v reads %d tensors", o, len(g.Inputs(i)))
			}
		}
	}
	if !found {
		t.Error("no loop")
	}
	data, err := os.ReadFile("testdata/mnist.mlir")
	if err != nil {
		t.Fatal(err)
	}
	if g, _, err = ImportStable(data, "testdata/mnist.mlir", nil); err != nil || g.Params() != 784*128+128+128*10+10 {
		t.Errorf("mnist: %v", err)
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"HloModule m\n": "f: line 2: the module has no ENTRY computation",
		"HloModule m\nENTRY e {\n  a = f32[2 parameter(0)\n}\n":                                         "f: line 4: instruction a: dimension \"2 parameter(0)_\"",
		"HloModule m\nENTRY e {\n  a = q7[2] parameter(0)\n}\n":                                         "f: line 3: instruction a: want a shape",
		"HloModule m\nENTRY e {\n  a = f32[2] add(b, b)\n}\n":                                           "f: line 4: instruction a: operand 0 (b) is no instruction of e",
		"HloModule m\nENTRY e {\n  a = f32[2] add(b, b)\n  b = f32[2] add(a, a)\n}\n":                   "f: line 5: computation e has a cycle",
		"HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] call(a), to_apply=x\n}\n":      "f: line 6: instruction b calls x, which the module does not have",
		"HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] call(a), to_apply=e\n}\n":      "f: instruction b: instruction b:",
		"HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] get-tuple-element(a), index=4": "f: line 4: computation e: the file ends early",
		"HloModule m\nENTRY e {\n  a = f32[99999999,99999999,99999999] parameter(0)\n}\n":               "f: line 3: instruction a: shape [99999999 99999999 99999999] is too large",
	} {
		_, _, err := Import([]byte(text), "f", nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"func.func @f(%a: tensor<?xf32>) -> tensor<?xf32> {\n  return %a : tensor<?xf32>\n}": `f: function @f: parameter %a: type "tensor<?xf32>" has a dimension without a size`,
		"func.func @f(%a: !torch.vtensor<[4],f32>) -> i1 {\n  return %a : i1\n}":             "f: function @f: parameter %a: its type is of MLIR's torch dialect, want StableHLO",
		"func.func @f(%a: tensor<2xf32>) -> i1 {\n  cf.br ^bb1(%a : tensor<2xf32>)\n}":       "f: function @f: cf.br: branches between blocks are not read, as nothing says how often each runs",
		"func.func @f(%a: tensor<2xf32>) -> i1 {\n  %0 = stablehlo.add %b, %a : i1\n}":       "f: function @f: stablehlo.add %0: reads %b, which nothing before it makes",
	} {
		if _, _, err := ImportStable([]byte(text), "f", nil); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// big is a module of n instructions: layers of products, tuples and calls.
func big(n int) []byte {
	var b bytes.Buffer
	b.WriteString("HloModule big\nrelu {\n  x = f32[64,256]{1,0} parameter(0)\n  z = f32[] constant(0)\n  zs = f32[64,256]{1,0} broadcast(z), dimensions={}\n  ROOT m = f32[64,256]{1,0} maximum(x, zs)\n}\nENTRY main {\n  h.0 = f32[64,256]{1,0} parameter(0)\n  w = f32[256,256]{1,0} parameter(1)\n")
	for i := 6; i < n; i++ {
		k := i - 6
		switch i % 3 {
		case 0:
			fmt.Fprintf(&b, "  %%h.%d = f32[64,256]{1,0} dot(f32[64,256]{1,0} %%h.%d, f32[256,256]{1,0} %%w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_type=\"dot_general\" op_name=\"jit(f)/jit(main)/layer/dot_general\" source_file=\"model.py\" source_line=%d}\n", k+1, k, i)
		case 1:
			fmt.Fprintf(&b, "  %%h.%d = f32[64,256]{1,0} call(%%h.%d), to_apply=relu\n", k+1, k)
		default:
			fmt.Fprintf(&b, "  %%h.%d = f32[64,256]{1,0} add(%%h.%d, %%h.%d)\n", k+1, k, k)
		}
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// A module of 43,714 instructions stays well below 500 MB, all allocations counted.
func TestLargeModule(t *testing.T) {
	data := big(43714)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, sum, err := Import(data, "big", nil)
	runtime.ReadMemStats(&after)
	if err != nil || sum.Instructions != 43714 {
		t.Fatalf("%+v, %v", sum, err)
	}
	// The race detector, which runs short, allocates for itself.
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 300 && !testing.Short() {
		t.Errorf("%d MiB allocated for %d bytes of text", mb, len(data))
	}
}

func BenchmarkLargeModule(b *testing.B) {
	data := big(43714)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Import(data, "big", nil); err != nil {
			b.Fatal(err)
		}
	}
}

// encode writes a parsed module as an HloModuleProto.
func encode(m *module) []byte {
	numbers := map[string]uint64{"pred": 1, "s32": 4, "f32": 11, "bf16": 16}
	str := func(b []byte, n protowire.Number, s []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	num := func(b []byte, n protowire.Number, x uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), x)
	}
	types := elems()
	var shapeOf func(s shape) []byte
	shapeOf = func(s shape) (b []byte) {
		if s.is {
			b = num(b, 2, 13)
			for _, part := range s.tuple {
				b = str(b, 4, shapeOf(part))
			}
			return b
		}
		for name, n := range numbers {
			if types[name] == s.elem {
				b = num(b, 2, n)
			}
		}
		var dims []byte
		for _, d := range s.dims {
			dims = protowire.AppendVarint(dims, uint64(d))
		}
		return str(b, 3, dims)
	}
	ids := map[*instruction]uint64{}
	comps := map[*computation]uint64{}
	for k, c := range m.comps {
		comps[c] = uint64(k + 100)
		for _, x := range c.list {
			ids[x] = uint64(len(ids) + 1)
		}
	}
	b := str(nil, 1, []byte(m.name))
	for k := range m.aliased {
		b = str(b, 8, str(nil, 1, num(nil, 2, uint64(k))))
	}
	b = num(b, 6, comps[m.entry])
	for _, c := range m.comps {
		body := str(nil, 1, []byte(c.name))
		for _, x := range c.list {
			i := str(str(str(nil, 1, []byte(x.name)), 2, []byte(x.opcode)), 3, shapeOf(x.shape))
			i = num(i, 35, ids[x])
			switch x.opcode {
			case "parameter":
				i = num(i, 9, uint64(x.attr.index))
			case "get-tuple-element":
				i = num(i, 13, uint64(x.attr.index))
			case "dot":
				i = str(i, 30, num(nil, 1, uint64(x.attr.contracting[0])))
			case "constant":
				var v uint64
				if _, err := fmt.Sscan(x.attr.literal, &v); err == nil && types["s32"] == x.shape.elem {
					i = str(i, 8, str(nil, 4, protowire.AppendVarint(nil, v)))
				}
			}
			i = str(i, 63, []byte(x.attr.direction))
			i = str(i, 7, str(nil, 2, []byte(x.attr.scope)))
			for _, from := range x.operands {
				i = num(i, 36, ids[from])
			}
			for _, from := range x.control {
				i = num(i, 37, ids[from])
			}
			for _, to := range x.called {
				i = num(i, 38, comps[to])
			}
			body = str(body, 2, i)
		}
		body = num(num(body, 5, comps[c]), 6, ids[c.root])
		b = str(b, 3, body)
	}
	return b
}

// Text and protocol buffer of one module are one graph.
func TestProto(t *testing.T) {
	m, err := parseText([]byte(loop))
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := Import([]byte(loop), "m", nil)
	if err != nil {
		t.Fatal(err)
	}
	data := encode(m)
	wrapped := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), data) // HloProto
	for _, file := range [][]byte{data, wrapped} {
		g, sum, err := Import(file, "m", nil)
		if err != nil || !Sniff(file) || sum.Instructions != 26 || g.Hash() != want.Hash() {
			t.Errorf("%v, %+v", err, sum)
		}
	}
}

// The modules of TpuGraphs' tuning data are HloModuleProtos that XLA wrote.
func TestTuningData(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(published.Folder(t, "tpugraphs-testdata"), "op_tuning_data.pb"))
	if err != nil {
		t.Fatal(err)
	}
	modules, nodes, edges := 0, 0, 0
	err = fields(data, func(f field) error {
		if f.number != 1 {
			return nil
		}
		return fields(f.bytes, func(f field) error {
			if f.number != 1 || !Sniff(f.bytes) {
				return nil
			}
			_, sum, err := Import(f.bytes, "m", nil)
			if err == nil {
				modules, nodes, edges = modules+1, nodes+sum.Instructions, edges+sum.Edges
			}
			return err
		})
	})
	if err != nil || modules != 15 || nodes != 294 || edges != 265 {
		t.Errorf("%d modules, %d instructions, %d edges, %v", modules, nodes, edges, err)
	}
}

// ResNet-50's forward pass is 4.1 billion multiplications of a 224x224 image, and the
// two classifiers' weights are those of the paper.
func TestResNet(t *testing.T) {
	f, err := os.Open(filepath.Join(published.Folder(t, "xla-hlo"), "openxla", "resnet50_keras_jax_f32.hlo.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := Import(data, "resnet", nil)
	if err != nil || g.FLOPs() < 7.6e9 || g.FLOPs() > 8.4e9 {
		t.Errorf("%v, %v", g.FLOPs(), err)
	}
}

// FuzzImport: no input panics, and every error is one line that begins with the file's
// name.
func FuzzImport(f *testing.F) {
	for _, text := range []string{loop, stable, jaxStep, hloStep, "HloModule m\nENTRY e {\n a = f32[] parameter(0)\n}", "func.func @f() -> i1 {\n return\n}"} {
		f.Add([]byte(text))
	}
	m, err := parseText([]byte(loop))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encode(m))
	f.Fuzz(func(t *testing.T, data []byte) {
		imports := []func([]byte, string, map[string]int64) (*graph.Graph, *Summary, error){Import, ImportStable}
		for _, read := range imports {
			g, _, err := read(data, "f", nil)
			if err == nil && g == nil || err != nil && !formatstest.Located(err, "f") {
				t.Errorf("%q", err)
			}
		}
		Sniff(data)
		SniffStable(data)
	})
}
