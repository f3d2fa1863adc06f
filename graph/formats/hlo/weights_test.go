package hlo

import (
	"slices"
	"strings"
	"testing"
)

// Where the step computes with weights that it has updated, as a GAN's does, the optimizer's
// state flows into products, and is no weight for that.
func TestStateOfUpdatedWeights(t *testing.T) {
	g, _, err := Import([]byte(`HloModule gan, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, {}, may-alias) }
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  first = f32[8,8] parameter(0)
  momentum = f32[8,8] parameter(1)
  late = f32[8,8] parameter(2)
  x = f32[8,8] parameter(3)
  zero = f32[] constant(0)
  y = f32[8,8] dot(x, first), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  m = f32[8,8] add(momentum, y)
  w = f32[8,8] subtract(first, m)
  z = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v = f32[8,8] subtract(late, z)
  u = f32[8,8] dot(z, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  loss = f32[] reduce(u, zero), dimensions={0,1}, to_apply=sum
  ROOT t = (f32[8,8], f32[8,8], f32[8,8], f32[]) tuple(w, m, v, loss)
}
`), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"first": 64, "momentum": 0, "late": 64} {
		if op := named(t, g, name); op.Params != want || op.Resident != 256 {
			t.Errorf("%s: %+v, want %d parameters", name, op, want)
		}
	}
}

// A step of adapters gives no new values of the model's weights, which stay and are frozen;
// the adapters' weights count whatever their names are.
func TestFrozenWeights(t *testing.T) {
	const text = `HloModule adapt, input_output_alias={ {0}: (0, {}, may-alias) }
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  a = f32[8,8] parameter(0), metadata={op_name="adapters[\'up\']"}
  base = f32[8,8] parameter(1), metadata={op_name="params[\'layer\'][\'kernel\']"}
  x = f32[4,8] parameter(2), metadata={op_name="x"}
  zero = f32[] constant(0)
  w = f32[8,8] add(a, base), metadata={op_name="jit(step)/jvp(Net)/add"}
  y = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/jvp(Net)/dot_general"}
  loss = f32[] reduce(y, zero), dimensions={0,1}, to_apply=sum, metadata={op_name="jit(step)/jvp(Net)/reduce_sum"}
  g = f32[8,8] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/transpose(jvp(Net))/dot_general"}
  n = f32[8,8] subtract(a, g), metadata={op_name="jit(step)/sub"}
  ROOT t = (f32[8,8], f32[]) tuple(n, loss)
}
`
	g, _, err := Import([]byte(text), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, base := named(t, g, "adapters['up']"), named(t, g, "params['layer']['kernel']"); a.Params != 64 || base.Params != 0 || base.Resident != 256 {
		t.Errorf("adapter %+v, frozen %+v", a, base)
	}
	// Gradients that are added up in place are no weights: the weights are trained elsewhere.
	sums := strings.NewReplacer("add(a, base)", "negate(base)", "adapters[", "sums[").Replace(text)
	if g, _, err = Import([]byte(sums), "f", nil); err != nil {
		t.Fatal(err)
	}
	if a, base := named(t, g, "sums['up']"), named(t, g, "params['layer']['kernel']"); a.Params != 0 || a.Resident != 256 || base.Params != 64 {
		t.Errorf("sums of gradients %+v, weight %+v", a, base)
	}
}

// Where names say of no argument that it is a weight, a note says so.
func TestNoteOfNoWeights(t *testing.T) {
	_, sum, err := Import([]byte(`HloModule m
ENTRY e {
  w = f32[8,8] parameter(0), metadata={op_name="p[\'q\']"}
  x = f32[4,8] parameter(1), metadata={op_name="x"}
  ROOT y = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
`), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"none of the 2 arguments is given back in place or has the name of a weight, such as params['layer']['kernel']: all count as inputs"}; !slices.Equal(sum.Notes, want) {
		t.Errorf("notes %q", sum.Notes)
	}
}
