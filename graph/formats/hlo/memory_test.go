package hlo

import (
	"strings"
	"testing"

	"placer/graph"
)

// A barrier, which JAX puts around what it computes again, gives activations by other names that
// take no memory, and holds back what reads them until all of them are there. Weights stay what
// they are.
func TestBarrier(t *testing.T) {
	const hloText = `HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  w = f32[8,8] parameter(0)
  x = f32[8,8] parameter(1)
  y = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[8,8] tanh(y)
  all = (f32[8,8], f32[8,8], f32[8,8]) tuple(w, y, g)
  kept = (f32[8,8], f32[8,8], f32[8,8]) opt-barrier(all)
  w1 = f32[8,8] get-tuple-element(kept), index=0
  y1 = f32[8,8] get-tuple-element(kept), index=1
  again = f32[8,8] dot(y1, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  new = f32[8,8] subtract(w1, again)
  ROOT t = (f32[8,8], f32[8,8]) tuple(new, again)
}
`
	stable := []byte(`func.func public @main(%w: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = stablehlo.tanh %y : tensor<8x8xf32>
  %kept:3 = stablehlo.optimization_barrier %w, %y, %g : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  %again = stablehlo.dot_general %kept#1, %kept#0, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %new = stablehlo.subtract %kept#0, %again : tensor<8x8xf32>
  return %new, %again : tensor<8x8xf32>, tensor<8x8xf32>
}
`)
	for form, read := range map[string]func() (*graph.Graph, *Summary, error){
		"HLO":       func() (*graph.Graph, *Summary, error) { return Import([]byte(hloText), "f", nil) },
		"StableHLO": func() (*graph.Graph, *Summary, error) { return ImportStable(stable, "f", nil) },
	} {
		g, _, err := read()
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		names := 0
		for i := range graph.OpID(g.NumOps()) {
			switch o := g.Op(i); {
			case o.Kind == "Identity":
				names++
				if gate := g.Control(i); len(gate) != 1 || g.Op(gate[0]).Kind != "NoOp" || len(g.Control(gate[0])) != 2 {
					t.Errorf("%s: %s does not wait for both", form, o.Name)
				}
			case o.Name == "again":
				if by := g.Op(g.Tensor(g.Inputs(i)[1]).Producer).Name; by != "w" {
					t.Errorf("%s: the weight comes from %s", form, by)
				}
			}
		}
		if names != 2 {
			t.Errorf("%s: %d names, want 2", form, names)
		}
	}
}

// stacks is a loop over four layers that keeps what each makes, as the forward pass of lax.scan
// does, in zeros that are shared with another such array.
const stacks = `HloModule m
body {
  s = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,8] get-tuple-element(s), index=1
  h = f32[4,8,8] get-tuple-element(s), index=2
  k = f32[4,8,8] get-tuple-element(s), index=3
  one = s32[] constant(1)
  zero = s32[] constant(0)
  y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[8,8] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a = f32[1,8,8] reshape(y)
  b = f32[1,8,8] reshape(z)
  h1 = f32[4,8,8] dynamic-update-slice(h, a, i, zero, zero)
  k1 = f32[4,8,8] dynamic-update-slice(k, b, i, zero, zero)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) tuple(next, z, h1, k1)
}
cond {
  c = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) parameter(0)
  i2 = s32[] get-tuple-element(c), index=0
  four = s32[] constant(4)
  ROOT lt = pred[] compare(i2, four), direction=LT
}
ENTRY e {
  x0 = f32[8,8] parameter(0)
  begin = s32[] constant(0)
  none = f32[] constant(0)
  zeros = f32[4,8,8] broadcast(none), dimensions={}
  start = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) tuple(begin, x0, zeros, zeros)
  loop = (s32[], f32[8,8], f32[4,8,8], f32[4,8,8]) while(start), condition=cond, body=body
  h2 = f32[4,8,8] get-tuple-element(loop), index=2
  k2 = f32[4,8,8] get-tuple-element(loop), index=3
  ROOT r = (f32[4,8,8], f32[4,8,8]) tuple(h2, k2)
}
`

// What a loop fills takes memory once: not beside the zeros that it begins with. Within the loop
// the most is held that one iteration makes and still reads: the first product and the second.
func TestLoopFillsInPlace(t *testing.T) {
	g, _, err := Import([]byte(stacks), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	zeros := 0
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "BroadcastTo" {
			zeros++
			if first, _ := g.Outputs(i); !g.Tensor(first).Resident {
				t.Errorf("%s takes memory beside the loop's", o.Name)
			}
		}
	}
	if zeros != 2 {
		t.Errorf("%d arrays of zeros, want one for each that the loop fills", zeros)
	}
	if w := named(t, g, "loop"); w.Workspace != 2*8*8*4 {
		t.Errorf("a workspace of %d bytes, want %d", w.Workspace, 2*8*8*4)
	}
	// Zeros that something else reads too are an array of their own.
	g, _, err = Import([]byte(strings.Replace(stacks, "tuple(h2, k2)", "tuple(h2, zeros)", 1)), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range graph.OpID(g.NumOps()) {
		if first, _ := g.Outputs(i); g.Op(i).Name == "zeros" && g.Tensor(first).Resident {
			t.Error("zeros that are a result take no memory")
		}
	}
}

// A broadcast of a number is made again where it is read again, as compilers do.
func TestBroadcastsOfNumbers(t *testing.T) {
	g, _, err := Import(one("f32[8,8]", "f32[8]", "c = f32[] constant(2)\n  s = f32[8,8] broadcast(c), dimensions={}\n  m = f32[8,8] broadcast(b), dimensions={1}\n  x = f32[8,8] multiply(a, s)\n  y = f32[8,8] multiply(x, m)\n  z = f32[8,8] add(y, s)\n  ROOT r = f32[8,8] add(z, m)"), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	broadcasts := 0
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "BroadcastTo" {
			broadcasts++
			first, _ := g.Outputs(i)
			if readers := len(g.Consumers(first)); o.Name == "m" && readers != 2 || o.Name != "m" && readers != 1 {
				t.Errorf("%s has %d readers", o.Name, readers)
			}
		}
	}
	if broadcasts != 3 {
		t.Errorf("%d broadcasts, want 3", broadcasts)
	}
}
