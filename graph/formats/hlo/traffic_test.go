package hlo

import (
	"strings"
	"testing"

	"placer/graph"
	"placer/units"
)

// What is written into an array in place, and a part that is taken of one, costs its own
// bytes, in fusions too: a loop over layers reads the weights of one in each iteration.
func TestTrafficOfParts(t *testing.T) {
	const sum = "s {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
	const last = "s {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\n"
	const attributes = ", update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=s"
	fused := func(body string) string {
		return "f {\n  p = f32[100,64] parameter(0)\n  q = f32[1,64] parameter(1)\n  i = s32[] parameter(2)\n  z = s32[] constant(0)\n" + body + "}\n"
	}
	entry := func(root string) string {
		return "ENTRY e {\n  w = f32[100,64] parameter(0)\n  u = f32[1,64] parameter(1)\n  i = s32[] parameter(2)\n  at = s32[1,1] parameter(3)\n  ROOT r = " + root + "\n}\n"
	}
	const row, whole = 64 * 4, 100 * 64 * 4
	for name, c := range map[string]struct {
		text string
		want units.Bytes
	}{
		"sum into rows":    {sum + entry("f32[100,64] scatter(w, at, u)"+attributes), 3*row + 4},
		"write rows":       {last + entry("f32[100,64] scatter(w, at, u)"+attributes), 2*row + 4},
		"take in a fusion": {fused("  v = f32[1,64] dynamic-slice(p, i, z), dynamic_slice_sizes={1,64}\n  ROOT y = f32[1,64] add(v, q)\n") + entry("f32[1,64] fusion(w, u, i), kind=kLoop, calls=f"), 3*row + 4},
		"take of a view":   {fused("  o = f32[100,8,8] bitcast(p)\n  v = f32[1,8,8] dynamic-slice(o, i, z, z), dynamic_slice_sizes={1,8,8}\n  x = f32[1,64] bitcast(v)\n  ROOT y = f32[1,64] add(x, q)\n") + entry("f32[1,64] fusion(w, u, i), kind=kLoop, calls=f"), 3*row + 4},
		"take and read":    {fused("  v = f32[1,64] dynamic-slice(p, i, z), dynamic_slice_sizes={1,64}\n  y = f32[1,64] add(v, q)\n  ROOT all = f32[100,64] negate(p)\n") + entry("f32[100,64] fusion(w, u, i), kind=kLoop, calls=f"), 2*whole + row + 4},
		"write in place":   {fused("  y = f32[1,64] negate(q)\n  ROOT n = f32[100,64] dynamic-update-slice(p, y, i, z)\n") + entry("f32[100,64] fusion(w, u, i), kind=kLoop, calls=f"), 2*row + 4},
		"write one of two": {fused("  y = f32[1,64] negate(q)\n  n = f32[100,64] dynamic-update-slice(p, y, i, z)\n  ROOT t = (f32[1,64], f32[100,64]) tuple(y, n)\n") + entry("(f32[1,64], f32[100,64]) fusion(w, u, i), kind=kLoop, calls=f"), 3*row + 4},
	} {
		g, _, err := Import([]byte("HloModule m\n"+c.text), "f", nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r := named(t, g, "r"); r.Bytes != c.want {
			t.Errorf("%s: %d bytes, want %d", name, r.Bytes, c.want)
		}
	}
}

// Keys and values of requests of several lengths are written by a scatter.
func TestScatteredCacheIsNoWeight(t *testing.T) {
	text := `HloModule decode, input_output_alias={ {0}: (1, {}, may-alias), {2}: (0, {}, may-alias) }
s {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
ENTRY e {
  w = f32[8,8] parameter(0)
  cache = f32[32,8] parameter(1)
  x = f32[2,8] parameter(2)
  at = s32[2,1] parameter(3)
  k = f32[2,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  next = f32[32,8] scatter(cache, at, k), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=s
  scores = f32[2,32] dot(k, next), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  kept = f32[8,8] add(w, w)
  ROOT t = (f32[32,8], f32[2,32], f32[8,8]) tuple(next, scores, kept)
}
`
	g, _, err := Import([]byte(text), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, w := named(t, g, "cache"), named(t, g, "w"); c.Params != 0 || c.Resident != 32*8*4 || w.Params != 64 {
		t.Errorf("cache %+v, weight %+v", c, w)
	}
	// A table that rows are added to learns: an embedding.
	text = strings.Replace(text, "ROOT b = f32[] parameter(1)", "b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)", 1)
	if g, _, err = Import([]byte(text), "f", nil); err != nil {
		t.Fatal(err)
	}
	if c := named(t, g, "cache"); c.Params != 32*8 {
		t.Errorf("table %+v", c)
	}
}

// In an iteration, what elementwise instructions make for one another stays within kernels; a
// product reads and writes the memory, and what reads a view of it does too.
func TestLoopFuses(t *testing.T) {
	const y = "  %y = f32[8,16]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	bytes := func(body string) units.Bytes {
		g, _, err := Import([]byte(strings.Replace(loop, y, body, 1)), "f", nil)
		if err != nil {
			t.Fatal(err)
		}
		return named(t, g, "while.1").Bytes
	}
	const a = 8 * 16 * 4
	dot := strings.Replace(y, "%y", "%d", 1)
	one := bytes(dot + "  %y = f32[8,16]{1,0} tanh(%d)\n")
	if added := one - bytes(y); added != 5*2*a {
		t.Errorf("an elementwise instruction moves %d bytes in 5 iterations, want %d", added, 5*2*a)
	}
	if three := bytes(dot + "  %r = f32[128]{0} reshape(%d)\n  %e = f32[128]{0} tanh(%r)\n  %f = f32[128]{0} negate(%e)\n  %g = f32[128]{0} multiply(%e, %f)\n  %y = f32[8,16]{1,0} reshape(%g)\n"); three != one {
		t.Errorf("three move %d bytes, one %d", three, one)
	}
}

// A loop makes what its iterations change, and its workspace is the largest that an iteration
// makes: not the weights of all layers, which it passes on, nor what it writes a row of.
func TestLoopKeepsInvariants(t *testing.T) {
	text := `HloModule m
f {
  p = f32[9,8,8] parameter(0)
  q = f32[8,8] parameter(1)
  j = s32[] parameter(2)
  z = s32[] constant(0)
  o = f32[1,8,8] bitcast(q)
  ROOT n = f32[9,8,8] dynamic-update-slice(p, o, j, z, z)
}
body {
  s = (s32[], f32[9,8,8], f32[9,8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[9,8,8] get-tuple-element(s), index=1
  h = f32[9,8,8] get-tuple-element(s), index=2
  x = f32[8,8] get-tuple-element(s), index=3
  one = s32[] constant(1)
  zero = s32[] constant(0)
  l = f32[1,8,8] dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,8,8}
  m = f32[8,8] bitcast(l)
  y = f32[8,8] dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = f32[9,8,8] fusion(h, y, i), kind=kLoop, calls=f
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[9,8,8], f32[9,8,8], f32[8,8]) tuple(next, w, k, y)
}
cond {
  c = (s32[], f32[9,8,8], f32[9,8,8], f32[8,8]) parameter(0)
  i2 = s32[] get-tuple-element(c), index=0
  nine = s32[] constant(9)
  ROOT lt = pred[] compare(i2, nine), direction=LT
}
ENTRY e {
  w0 = f32[9,8,8] parameter(0)
  x0 = f32[8,8] parameter(1)
  h0 = f32[9,8,8] parameter(2)
  begin = s32[] constant(0)
  start = (s32[], f32[9,8,8], f32[9,8,8], f32[8,8]) tuple(begin, w0, h0, x0)
  loop = (s32[], f32[9,8,8], f32[9,8,8], f32[8,8]) while(start), condition=cond, body=body
  w1 = f32[9,8,8] get-tuple-element(loop), index=1
  last = f32[8,8] get-tuple-element(loop), index=3
  n = f32[9,8,8] negate(w1)
  ROOT r = (f32[9,8,8], f32[8,8]) tuple(n, last)
}
`
	g, _, err := Import([]byte(text), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := named(t, g, "loop")
	if w.Workspace != 2*8*8*4 { // the slice of the weights, and the product that reads it
		t.Errorf("a workspace of %d bytes, want %d", w.Workspace, 2*8*8*4)
	}
	for i := range graph.OpID(g.NumOps()) {
		switch g.Op(i).Name {
		case "loop":
			made := units.Bytes(0)
			for t, end := g.Outputs(i); t < end; t++ {
				made += g.Tensor(t).Bytes
			}
			if made != 4+9*8*8*4+8*8*4 {
				t.Errorf("the loop makes %d bytes", made)
			}
		case "n":
			if from := g.Op(g.Tensor(g.Inputs(i)[0]).Producer).Name; from != "w0" {
				t.Errorf("what the loop passes on is of %s", from)
			}
		}
	}
}
