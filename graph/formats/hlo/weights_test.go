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

// Where one module runs several training steps, in a loop, an optimizer's state flows into the
// products of the next step, and is no weight for that; a bias that the next layer's product
// reads is one.
func TestLoopOfSteps(t *testing.T) {
	const text = `HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, {}, may-alias) }
sum {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q)
}
step {
  sw = f32[8,8] parameter(0)
  sb = f32[8] parameter(1)
  sm = f32[8,8] parameter(2)
  sx = f32[8,8] parameter(3)
  wide = f32[8,8] broadcast(sb), dimensions={1}
  in = f32[8,8] add(sx, wide)
  y = f32[8,8] dot(in, sw), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[] constant(0)
  m1 = f32[8,8] add(sm, y)
  w1 = f32[8,8] subtract(sw, m1)
  g = f32[8] reduce(y, z), dimensions={0}, to_apply=sum
  b1 = f32[8] subtract(sb, g)
  loss = f32[] reduce(y, z), dimensions={0,1}, to_apply=sum
  ROOT out = (f32[8,8], f32[8], f32[8,8], f32[]) tuple(w1, b1, m1, loss)
}
body {
  s = (s32[], f32[8,8], f32[8], f32[8,8], f32[8,8], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[8,8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  m = f32[8,8] get-tuple-element(s), index=3
  x = f32[8,8] get-tuple-element(s), index=4
  one = s32[] constant(1)
  done = (f32[8,8], f32[8], f32[8,8], f32[]) call(w, b, m, x), to_apply=step
  dw = f32[8,8] get-tuple-element(done), index=0
  db = f32[8] get-tuple-element(done), index=1
  dm = f32[8,8] get-tuple-element(done), index=2
  dl = f32[] get-tuple-element(done), index=3
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[8,8], f32[8], f32[8,8], f32[8,8], f32[]) tuple(next, dw, db, dm, x, dl)
}
cond {
  c = (s32[], f32[8,8], f32[8], f32[8,8], f32[8,8], f32[]) parameter(0)
  i2 = s32[] get-tuple-element(c), index=0
  four = s32[] constant(4)
  ROOT lt = pred[] compare(i2, four), direction=LT
}
ENTRY e {
  weight = f32[8,8] parameter(0)
  bias = f32[8] parameter(1)
  momentum = f32[8,8] parameter(2)
  batch = f32[8,8] parameter(3)
  begin = s32[] constant(0)
  none = f32[] constant(0)
  start = (s32[], f32[8,8], f32[8], f32[8,8], f32[8,8], f32[]) tuple(begin, weight, bias, momentum, batch, none)
  loop = (s32[], f32[8,8], f32[8], f32[8,8], f32[8,8], f32[]) while(start), condition=cond, body=body
  ow = f32[8,8] get-tuple-element(loop), index=1
  ob = f32[8] get-tuple-element(loop), index=2
  om = f32[8,8] get-tuple-element(loop), index=3
  ol = f32[] get-tuple-element(loop), index=5
  ROOT r = (f32[8,8], f32[8], f32[8,8], f32[]) tuple(ow, ob, om, ol)
}
`
	g, _, err := Import([]byte(text), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"weight": 64, "bias": 8, "momentum": 0} {
		if op := named(t, g, name); op.Params != want || op.Resident == 0 {
			t.Errorf("%s: %d parameters, %v resident, want %d", name, op.Params, op.Resident, want)
		}
	}
}

// A target network's new weights are means of what they were and of the trained ones: they stay,
// and are no parameters, though products read them.
func TestTargetNetwork(t *testing.T) {
	g, _, err := Import([]byte(`HloModule q, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, {}, may-alias) }
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  online = f32[8,8] parameter(0)
  target = f32[8,8] parameter(1)
  moment = f32[8,8] parameter(2)
  x = f32[8,8] parameter(3)
  zero = f32[] constant(0)
  tau = f32[8,8] broadcast(zero), dimensions={}
  y = f32[8,8] dot(x, online), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[8,8] dot(x, target), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[8,8] subtract(y, z)
  g = f32[8,8] dot(x, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  m = f32[8,8] add(moment, g)
  w = f32[8,8] subtract(online, m)
  part = f32[8,8] subtract(w, target)
  scaled = f32[8,8] multiply(part, tau)
  mean = f32[8,8] add(target, scaled)
  loss = f32[] reduce(d, zero), dimensions={0,1}, to_apply=sum
  ROOT t = (f32[8,8], f32[8,8], f32[8,8], f32[]) tuple(w, mean, m, loss)
}
`), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"online": 64, "target": 0, "moment": 0} {
		if op := named(t, g, name); op.Params != want || op.Resident != 256 {
			t.Errorf("%s: %d parameters, %v resident, want %d", name, op.Params, op.Resident, want)
		}
	}
}
