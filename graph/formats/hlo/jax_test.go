package hlo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"placer/graph"
)

// jaxStep is a step of one layer with momentum as JAX 0.10 prints it with debug_info=True:
// names are in locations, those within a function begin at its call.
const jaxStep = `#loc = loc(unknown)
#loc1 = loc("params['layer']['kernel']")
#loc2 = loc("opt_state[0].trace['layer']['kernel']")
#loc3 = loc("x")
module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x8xf32> {tf.aliasing_output = 0 : i32} loc("params['layer']['kernel']"), %arg1: tensor<8x8xf32> {tf.aliasing_output = 1 : i32} loc("opt_state[0].trace['layer']['kernel']"), %arg2: tensor<4x8xf32> loc("x")) -> (tensor<8x8xf32> {jax.result_info = "result[0]"}, tensor<8x8xf32>, tensor<f32>) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#loc20)
    %1 = call @relu(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32> loc(#loc21)
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32> loc(#loc22)
    %3 = stablehlo.dot_general %arg2, %1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#loc23)
    %4 = stablehlo.add %3, %arg1 : tensor<8x8xf32> loc(#loc24)
    %5 = stablehlo.subtract %arg0, %4 : tensor<8x8xf32> loc(#loc24)
    return %5, %4, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32> loc(#loc)
  } loc(#loc)
  func.func private @relu(%arg0: tensor<4x8xf32> loc(unknown)) -> tensor<4x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8xf32> loc(#loc25)
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x8xf32> loc(#loc25)
    return %1 : tensor<4x8xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc10 = loc("step.py":12:3 to :40)
#loc11 = loc(callsite(#loc10 at #loc10))
#loc20 = loc("jit(step)/jvp(Net)/layer/bd,df->bf/dot_general"(#loc11))
#loc21 = loc("jit(step)/jvp(Net)/layer/jit(relu)"(#loc11))
#loc22 = loc("reduce_sum:"(#loc26))
#loc23 = loc("jit(step)/transpose(jvp(Net))/layer/dot_general"(#loc11))
#loc24 = loc("jit(step)/add"(#loc11))
#loc25 = loc("max"(#loc10))
#loc26 = loc("jit(step)/jvp(Net)/reduce_sum"(#loc11))
`

// The same step as HLO text with metadata; arguments' names are escaped there.
const hloStep = `HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
relu.1 {
  Arg_0.1 = f32[4,8]{1,0} parameter(0)
  constant.1 = f32[] constant(0)
  max.3 = f32[4,8]{1,0} broadcast(constant.1), dimensions={}, metadata={op_name="max"}
  ROOT max.4 = f32[4,8]{1,0} maximum(Arg_0.1, max.3), metadata={op_name="max"}
}
add.1 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main.1 {
  params__layer____kernel__.1 = f32[8,8]{1,0} parameter(0), metadata={op_name="params[\'layer\'][\'kernel\']"}
  opt_state_0__trace__layer____kernel__.1 = f32[8,8]{1,0} parameter(1), metadata={op_name="opt_state[0].trace[\'layer\'][\'kernel\']"}
  x.1 = f32[4,8]{1,0} parameter(2), metadata={op_name="x"}
  dot_general.2 = f32[4,8]{1,0} dot(x.1, params__layer____kernel__.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/jvp(Net)/layer/bd,df->bf/dot_general"}
  jit_relu_.3 = f32[4,8]{1,0} call(dot_general.2), to_apply=relu.1, metadata={op_name="jit(step)/jvp(Net)/layer/jit(relu)"}
  constant.2 = f32[] constant(0)
  reduce_sum.3 = f32[] reduce(jit_relu_.3, constant.2), dimensions={0,1}, to_apply=add.1, metadata={op_name="jit(step)/jvp(Net)/reduce_sum"}
  dot_general.3 = f32[8,8]{1,0} dot(x.1, jit_relu_.3), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/transpose(jvp(Net))/layer/dot_general"}
  add.2 = f32[8,8]{1,0} add(dot_general.3, opt_state_0__trace__layer____kernel__.1), metadata={op_name="jit(step)/add"}
  sub.2 = f32[8,8]{1,0} subtract(params__layer____kernel__.1, add.2), metadata={op_name="jit(step)/sub"}
  ROOT tuple.1 = (f32[8,8]{1,0}, f32[8,8]{1,0}, f32[]) tuple(sub.2, add.2, reduce_sum.3)
}
`

// JAX's names give modules, in called functions too, the backward pass and what arguments
// are: of those that are given back in place the one that the loss depends on is a weight.
func TestJAXStep(t *testing.T) {
	weight, trace := "params['layer']['kernel']", "opt_state[0].trace['layer']['kernel']"
	stable, stableSum, err := ImportStable([]byte(jaxStep), "f.mlir", nil)
	if err != nil {
		t.Fatal(err)
	}
	text, textSum, err := Import([]byte(hloStep), "f.hlo", nil)
	if err != nil {
		t.Fatal(err)
	}
	nameless, _, err := Import([]byte(strings.NewReplacer(`, metadata={op_name="params[\'layer\'][\'kernel\']"}`, "", `, metadata={op_name="opt_state[0].trace[\'layer\'][\'kernel\']"}`, "").Replace(hloStep)), "f.hlo", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := nameless.Params(); p != 64 {
		t.Errorf("without names: %d parameters, want 64", p)
	}
	for form, g := range map[string]*graph.Graph{"StableHLO": stable, "HLO": text} {
		if w := named(t, g, weight); w.Kind != "VariableV2" || w.Params != 64 || w.Resident != 256 {
			t.Errorf("%s: the weight is %+v", form, w)
		}
		if m := named(t, g, trace); m.Kind != "VariableV2" || m.Params != 0 || m.Resident != 256 {
			t.Errorf("%s: the momentum is %+v", form, m)
		}
		if x := g.Op(producer(t, g, "Placeholder")); x.Resident != 0 {
			t.Errorf("%s: the input is %+v", form, x)
		}
		for kind, want := range map[graph.Kind]string{"MatMul": "Net.layer", "Maximum": "Net.layer", "Sum": "Net", "Add": ""} {
			if o := g.Op(producer(t, g, kind)); o.Module != want {
				t.Errorf("%s: %s is of %q, want %q", form, o.Name, o.Module, want)
			}
		}
		back := 0
		for i := range g.NumOps() {
			if g.Op(graph.OpID(i)).Phase == graph.Backward {
				back++
			}
		}
		if back != 1 {
			t.Errorf("%s: %d ops go backward, want 1", form, back)
		}
	}
	if notes := append(stableSum.Notes, textSum.Notes...); len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
}

// producer returns the first op of a kind.
func producer(t *testing.T, g *graph.Graph, kind graph.Kind) graph.OpID {
	t.Helper()
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Kind == kind {
			return i
		}
	}
	t.Fatalf("no %s", kind)
	return 0
}

// Without donation names alone say what stays; without names nothing does, and a note says
// how to have them.
func TestJAXArguments(t *testing.T) {
	plain := strings.NewReplacer(" {tf.aliasing_output = 0 : i32}", "", " {tf.aliasing_output = 1 : i32}", "").Replace(jaxStep)
	g, sum, err := ImportStable([]byte(plain), "f.mlir", nil)
	if err != nil {
		t.Fatal(err)
	}
	if w, m := named(t, g, "params['layer']['kernel']"), named(t, g, "opt_state[0].trace['layer']['kernel']"); w.Params != 64 || m.Params != 0 || m.Resident != 256 {
		t.Errorf("by name: %+v, %+v", w, m)
	}
	if want := []string{"512 B of arguments are taken for weights or state by their names, as params['layer']['kernel']: they stay where they are"}; !slices.Equal(sum.Notes, want) {
		t.Errorf("notes %q", sum.Notes)
	}
	var lines []string
	for _, line := range strings.Split(plain, "\n") {
		if !strings.HasPrefix(line, "#loc") {
			lines = append(lines, line)
		}
	}
	g, sum, err = ImportStable([]byte(strings.NewReplacer(` loc("params['layer']['kernel']")`, "", ` loc("opt_state[0].trace['layer']['kernel']")`, "", ` loc("x")`, "").Replace(strings.Join(lines, "\n"))), "f.mlir", nil)
	if err != nil || g.Params() != 0 {
		t.Fatalf("%v", err)
	}
	if want := []string{"the 3 arguments have no names, and none is given back in place: all count as inputs, none as weights; lower(...).as_text(debug_info=True) has names"}; !slices.Equal(sum.Notes, want) {
		t.Errorf("notes %q", sum.Notes)
	}
	donors := strings.NewReplacer("tf.aliasing_output = 0 : i32", "jax.buffer_donor = true", "tf.aliasing_output = 1 : i32", "jax.buffer_donor = true").Replace(jaxStep)
	if g, _, err = ImportStable([]byte(donors), "f.mlir", nil); err != nil || g.Params() != 64 || g.Resident() < 512 {
		t.Errorf("donors: %v parameters, %v", g.Params(), err)
	}
	donors = strings.Replace(hloStep, "input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }", "buffer_donor={ (0, {}), (1, {}) }", 1)
	if g, _, err = Import([]byte(donors), "f.hlo", nil); err != nil || g.Params() != 64 || g.Resident() < 512 {
		t.Errorf("donors of HLO: %v parameters, %v", g.Params(), err)
	}
}

// What names say of arguments.
func TestPlaceOf(t *testing.T) {
	got := map[place][]string{}
	for _, name := range []string{"params['a']['kernel']", "variables['params']['a']['bias']", "args[0]['linear']['w']", "st['blocks'][2]['proj']['kernel'].value", "model.layers[0].weight", "state.params['a']['kernel']",
		"opt_state[0].mu['a']['kernel']", "state.opt_state[0].nu['a']['kernel']", "variables['batch_stats']['bn']['mean']", "st[0].count",
		"x", "w", "batch['image']", "cache[0][1]", "weights", "batch['label']"} {
		p := placeOf(&instruction{attr: attributes{scope: name}})
		got[p] = append(got[p], name)
	}
	for p, n := range map[place]int{weight: 6, state: 4, input: 6} {
		if len(got[p]) != n {
			t.Errorf("%d: %q", p, got[p])
		}
	}
	if p := placeOf(&instruction{name: "variables__params____Dense_0____kernel__.1"}); p != weight {
		t.Errorf("HLO's form of a name: %d", p)
	}
}

// Keys and values of the tokens before are written in place: they are no parameters.
func TestCacheIsNoWeight(t *testing.T) {
	g, _, err := Import([]byte(`HloModule decode, input_output_alias={ {0}: (1, {}, may-alias), {2}: (0, {}, may-alias) }
ENTRY e {
  w = f32[8,8] parameter(0)
  cache = f32[32,8] parameter(1)
  x = f32[1,8] parameter(2)
  at = s32[] parameter(3)
  zero = s32[] constant(0)
  k = f32[1,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  next = f32[32,8] dynamic-update-slice(cache, k, at, zero)
  scores = f32[1,32] dot(k, next), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  kept = f32[8,8] add(w, w)
  ROOT t = (f32[32,8], f32[1,32], f32[8,8]) tuple(next, scores, kept)
}
`), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, w := named(t, g, "cache"), named(t, g, "w"); c.Params != 0 || c.Resident != 32*8*4 || w.Params != 64 {
		t.Errorf("cache %+v, weight %+v", c, w)
	}
	// As XLA fuses it, what is written is not seen; weights that are not given back are.
	g, _, err = Import([]byte(`HloModule decode, input_output_alias={ {0}: (1, {}, may-alias) }
f {
  p = f32[32,8] parameter(0)
  q = f32[1,8] parameter(1)
  z = s32[] constant(0)
  n = f32[32,8] dynamic-update-slice(p, q, z, z)
  ROOT c = f32[32,8] copy(n)
}
ENTRY e {
  w = f32[8,8] parameter(0), metadata={op_name="params[\'wk\']['w']"}
  cache = f32[32,8] parameter(1), metadata={op_name="cache[0]"}
  x = f32[1,8] parameter(2), metadata={op_name="x"}
  k = f32[1,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  next = f32[32,8] fusion(cache, k), kind=kLoop, calls=f
  scores = f32[1,32] dot(k, next), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = (f32[32,8], f32[1,32]) tuple(next, scores)
}
`), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, w := named(t, g, "cache[0]"), named(t, g, "params['wk']['w']"); c.Params != 0 || c.Resident != 32*8*4 || w.Params != 64 {
		t.Errorf("a fused cache %+v, weight %+v", c, w)
	}
}

// NNX has no scopes, Equinox those of its classes: modules are the weights'.
func TestModulesOfWeights(t *testing.T) {
	for name, want := range map[string]string{
		"st['blocks'][2]['proj']['kernel'].value": "blocks.2.proj", "model.layers[0].weight": "layers.0", "params['net/~/linear_1']['w']": "net.linear_1", "params['params']['layer']['kernel']": "layer", "w": "", "params['w']": "",
	} {
		if got := moduleOfWeight(name); got != want {
			t.Errorf("%s is of %q, want %q", name, got, want)
		}
	}
	classes := strings.NewReplacer("jvp(Net)/layer/", "jvp(eqx.nn.MLP)/eqx.nn.Linear/", "jvp(Net))/layer/", "jvp(eqx.nn.MLP))/eqx.nn.Linear/").Replace(jaxStep)
	g, _, err := ImportStable([]byte(classes), "f.mlir", nil)
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]bool{}
	for i := range g.NumOps() {
		modules[g.Op(graph.OpID(i)).Module] = true
	}
	if got := slices.Sorted(maps.Keys(modules)); !slices.Equal(got, []string{"", "layer"}) {
		t.Errorf("modules %q", got)
	}
}

// stableOf is a module of one function with those operations.
func stableOf(arguments, result, body string) []byte {
	return fmt.Appendf(nil, "module @m {\n  func.func public @main(%s) -> %s {\n%s\n  }\n}\n", arguments, result, body)
}

// Forms of StableHLO's text that JAX prints.
func TestJAXForms(t *testing.T) {
	for name, c := range map[string]struct {
		text []byte
		kind graph.Kind
		n    int
	}{
		"results with names": {stableOf("%arg0: tensor<8x64xf32>", "(tensor<8x5xf32>, tensor<8x5xi32>)", `    %values, %indices = chlo.top_k(%arg0, k = 5) : tensor<8x64xf32> -> (tensor<8x5xf32>, tensor<8x5xi32>) loc(#loc89)
    %0 = stablehlo.add %values, %values : tensor<8x5xf32>
    return %0, %indices : tensor<8x5xf32>, tensor<8x5xi32>`), "TopK", 3},
		"several under a name": {stableOf("%arg0: tensor<4xf32>", "tensor<4xf32>", `    %a:2, %b = "stablehlo.custom_call"(%arg0) <{call_target_name = "three"}> : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %0 = stablehlo.add %a#1, %b : tensor<4xf32>
    return %0 : tensor<4xf32>`), "Add", 3},
		"a reducer of two": {stableOf("%arg0: tensor<8x64xf32>, %arg9: tensor<8x64xi32>", "tensor<8xi32>", `    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%arg9 init: %c) across dimensions = [1] : (tensor<8x64xf32>, tensor<8x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
     reducer(%arg1: tensor<f32> loc("argmax"), %arg3: tensor<f32> loc("argmax")) (%arg2: tensor<i32> loc("argmax"), %arg4: tensor<i32> loc("argmax"))  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.select %2, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %4 = stablehlo.select %2, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %3, %4 : tensor<f32>, tensor<i32>
    } loc(#loc7)
    return %1#1 : tensor<8xi32>`), "Sum", 5},
		"shard_map": {stableOf("%arg0: tensor<64x64xf32>, %arg1: tensor<8x64xf32>", "tensor<8x64xf32>", `    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"d"}, {}]>, <@mesh, [{}, {"d"}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"d"} (%arg2: tensor<16x64xf32>, %arg3: tensor<8x16xf32>) {
      %1 = stablehlo.dot_general %arg3, %arg2, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
      sdy.return %1 : tensor<8x64xf32>
    } : (tensor<64x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    return %0 : tensor<8x64xf32>`), "MatMul", 3},
	} {
		g, _, err := ImportStable(c.text, "f", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if producer(t, g, c.kind); g.NumOps() != c.n {
			t.Errorf("%s: %d ops, want %d", name, g.NumOps(), c.n)
		}
	}
}

// A name that stands for no result is an error.
func TestNoResults(t *testing.T) {
	text := stableOf("%arg0: tensor<4xf32>", "tensor<4xf32>", `    %a:0, %b = "stablehlo.custom_call"(%arg0) <{call_target_name = "two"}> : (tensor<4xf32>) -> tensor<4xf32>
    return %b : tensor<4xf32>`)
	if _, _, err := ImportStable(text, "f", nil); err == nil || !strings.Contains(err.Error(), "has no results, or too many") {
		t.Error(err)
	}
}

// A loop that counts down runs as often as one that counts up.
func TestCountedDown(t *testing.T) {
	for text, want := range map[string]int64{
		"GT 10 0 subtract 1": 10, "GE 10 0 subtract 1": 11, "GT 10 0 add -3": 4, "LT 0 10 subtract -2": 5, "LT 0 10 add 2": 5,
		"LT 0 10 subtract 1": 0, "GT 10 0 add 1": 0,
	} {
		var direction, operation string
		var start, limit, step int64
		if _, err := fmt.Sscanf(text, "%s %d %d %s %d", &direction, &start, &limit, &operation, &step); err != nil {
			t.Fatal(err)
		}
		module := strings.NewReplacer("%zero = s32[] constant(0)", fmt.Sprintf("%%zero = s32[] constant(%d)", start), "%n = s32[] constant(9)", fmt.Sprintf("%%n = s32[] constant(%d)", limit), "direction=LT", "direction="+direction,
			"%two = s32[] constant(2)", fmt.Sprintf("%%two = s32[] constant(%d)", step), "add(%i, %two)", operation+"(%i, %two)").Replace(loop)
		g, _, err := Import([]byte(module), "f", nil)
		if want == 0 {
			if err == nil {
				t.Errorf("%s: is counted", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if w := named(t, g, "while.1"); w.Repeats != want {
			t.Errorf("%s: %d times, want %d", text, w.Repeats, want)
		}
	}
}

// A Fourier transform has 5 n log2 n operations, half of them where one side is real.
func TestFourier(t *testing.T) {
	for text, want := range map[string]float64{
		"c64[8,64] fft(a), fft_type=FFT, fft_length={64}":   5 * 512 * 6,
		"c64[8,33] fft(b), fft_type=RFFT, fft_length={64}":  5 * 512 * 6 / 2,
		"c64[8,64] fft(a), fft_type=FFT, fft_length={8,64}": 5 * 512 * 9,
	} {
		g, _, err := Import(one("c64[8,64]", "f32[8,64]", "ROOT d = "+text), "f", nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if o := named(t, g, "d"); float64(o.FLOPs) != want {
			t.Errorf("%s: %v, want %v", text, float64(o.FLOPs), want)
		}
	}
	g, _, err := ImportStable(stableOf("%arg0: tensor<8x64xcomplex<f32>>", "tensor<8x64xcomplex<f32>>", "    %0 = stablehlo.fft %arg0, type = FFT, length = [64] : (tensor<8x64xcomplex<f32>>) -> tensor<8x64xcomplex<f32>>\n    return %0 : tensor<8x64xcomplex<f32>>"), "f", nil)
	if err != nil || float64(g.FLOPs()) != 5*512*6 {
		t.Errorf("StableHLO: %v, %v", g, err)
	}
}
