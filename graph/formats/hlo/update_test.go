package hlo

import (
	"slices"
	"strings"
	"testing"

	"placer/graph"
)

// written returns the op that writes the new value of a variable in place, graph.None where
// nothing does.
func written(t *testing.T, g *graph.Graph, variable string) graph.OpID {
	t.Helper()
	v := named(t, g, variable)
	for i := range graph.OpID(g.NumOps()) {
		first, end := g.Outputs(i)
		for x := first; x < end; x++ {
			if o := g.Op(i); o.Kind != "VariableV2" && g.Tensor(x).Resident && v.Group > 0 && o.Group == v.Group && g.Tensor(x).Bytes == v.Resident && !slices.Contains(g.Inputs(i), x) && reads(g, i, v.Name) {
				return i
			}
		}
	}
	return graph.None
}

// reads reports whether op i reads what an op of that name makes.
func reads(g *graph.Graph, i graph.OpID, name string) bool {
	return slices.ContainsFunc(g.Inputs(i), func(x graph.TensorID) bool { return g.Op(g.Tensor(x).Producer).Name == name })
}

// What is given back in an argument's place is written there, by an op that waits for all
// that reads the old value and is on its device.
func TestUpdatesInPlace(t *testing.T) {
	weight, trace := "params['layer']['kernel']", "opt_state[0].trace['layer']['kernel']"
	donors := strings.Replace(hloStep, "input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }", "buffer_donor={ (0, {}), (1, {}) }", 1)
	for form, text := range map[string]string{"named places": hloStep, "donors": donors} {
		g, _, err := Import([]byte(text), "f.hlo", nil)
		if err != nil {
			t.Fatal(err)
		}
		if w, m := written(t, g, weight), written(t, g, trace); w == graph.None || g.Op(w).Name != "sub.2" || m == graph.None || g.Op(m).Name != "add.2" {
			t.Errorf("%s: the weight is written by op %d, its momentum by op %d", form, w, m)
		}
		if a, b := named(t, g, weight).Group, named(t, g, trace).Group; a == 0 || a != b {
			t.Errorf("%s: the weight is of group %d, its momentum of %d", form, a, b)
		}
	}
	plain := strings.Replace(hloStep, ", input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }", "", 1)
	g, _, err := Import([]byte(plain), "f.hlo", nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := written(t, g, weight); w != graph.None {
		t.Errorf("not donated, yet written in place by %s", g.Op(w).Name)
	}
}

// Which results can be written over the old value, and what they wait for.
func TestOverwriting(t *testing.T) {
	for name, c := range map[string]struct {
		body, writer, waits string // writer: empty for memory of its own
	}{
		"a reader beside":              {"r = f32[8,8] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n n = f32[8,8] add(w, w)", "n", "r"},
		"a reader listed behind":       {"n = f32[8,8] add(w, w)\n r = f32[8,8] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "n", "r"},
		"a reader that is read":        {"r = f32[8,8] negate(w)\n n = f32[8,8] add(w, r)", "n", ""},
		"a reader of the new value":    {"n = f32[8,8] add(w, w)\n r = f32[8,8] multiply(n, w)", "", ""},
		"a product":                    {"n = f32[8,8] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n r = f32[8,8] negate(x)", "", ""},
		"a product of others":          {"r = f32[8,8] negate(w)\n n = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "n", "r"},
		"turned":                       {"n = f32[8,8] transpose(w), dimensions={1,0}\n r = f32[8,8] negate(x)", "", ""},
		"handed back":                  {"r = f32[8,8] negate(w)\n n = f32[8,8] bitcast(w)", "", ""},
		"by another name, read before": {"v = f32[64] reshape(w)\n r = f32[64] negate(v)\n u = f32[64] negate(y)\n n = f32[8,8] reshape(u)", "u", "r"},
	} {
		g, _, err := Import([]byte("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\nENTRY e {\n w = f32[8,8] parameter(0)\n x = f32[8,8] parameter(1)\n y = f32[64] parameter(2)\n "+c.body+"\n ROOT t = (f32[8,8], f32[8,8]) tuple(n, r)\n}\n"), "f", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w, writer, waits := named(t, g, "w"), "", ""
		for i := range graph.OpID(g.NumOps()) {
			o := g.Op(i)
			if first, _ := g.Outputs(i); o.Kind == "VariableV2" || !g.Tensor(first).Resident {
				continue
			}
			writer = o.Name
			if o.Group != w.Group || o.Group == 0 {
				t.Errorf("%s: %s is of group %d, the variable of %d", name, writer, o.Group, w.Group)
			}
			for _, b := range g.Control(i) {
				waits += g.Op(b).Name
			}
		}
		if writer != c.writer || waits != c.waits {
			t.Errorf("%s: written by %q, which waits for %q; want %q, %q", name, writer, waits, c.writer, c.waits)
		}
	}
}

// Two updates that each read the other's old value in ops that depend on the first: XLA has
// to copy one.
func TestOverwritingInTurn(t *testing.T) {
	g, _, err := Import([]byte(`HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
ENTRY e {
  v = f32[8] parameter(0)
  w = f32[8] parameter(1)
  x = f32[8] parameter(2)
  a = f32[8] negate(x)
  b = f32[8] abs(x)
  p = f32[8] add(a, w)
  q = f32[8] add(b, v)
  ROOT t = (f32[8], f32[8], f32[8], f32[8]) tuple(a, b, p, q)
}
`), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := 0
	for i := range graph.OpID(g.NumOps()) {
		if first, _ := g.Outputs(i); g.Op(i).Kind != "VariableV2" && g.Tensor(first).Resident {
			in++
		}
	}
	if in != 1 {
		t.Errorf("%d of two are written in place, want 1", in)
	}
}

// The passes of a step with an Adam-like update, by JAX's names and without them: products
// of gradients go backward, what the state is made of and read by updates.
func TestPhases(t *testing.T) {
	const step = `HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, {}, may-alias) }
add.1 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main.1 {
  w = f32[8,8]{1,0} parameter(0), metadata={op_name="params[\'layer\'][\'kernel\']"}
  m = f32[8,8]{1,0} parameter(1), metadata={op_name="opt_state[0].mu[\'layer\'][\'kernel\']"}
  n = s32[] parameter(2), metadata={op_name="opt_state[0].count"}
  x = f32[4,8]{1,0} parameter(3), metadata={op_name="x"}
  y = f32[4,8]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/jvp(Net)/layer/dot_general"}
  z = f32[4,8]{1,0} tanh(y), metadata={op_name="jit(step)/jvp(Net)/layer/tanh"}
  zero = f32[] constant(0)
  loss = f32[] reduce(z, zero), dimensions={0,1}, to_apply=add.1, metadata={op_name="jit(step)/jvp(Net)/reduce_sum"}
  dy = f32[4,8]{1,0} multiply(z, z), metadata={op_name="jit(step)/transpose(jvp(Net))/layer/mul"}
  dw = f32[8,8]{1,0} dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/transpose(jvp(Net))/layer/dot_general"}
  one = s32[] constant(1)
  count = s32[] add(n, one), metadata={op_name="jit(step)/add"}
  rate = f32[] constant(0.9)
  decay = f32[8,8]{1,0} broadcast(rate), dimensions={}
  kept = f32[8,8]{1,0} multiply(decay, m), metadata={op_name="jit(step)/mul"}
  mu = f32[8,8]{1,0} add(kept, dw), metadata={op_name="jit(step)/add"}
  new = f32[8,8]{1,0} subtract(w, mu), metadata={op_name="jit(step)/sub"}
  ROOT tuple.1 = (f32[8,8]{1,0}, f32[8,8]{1,0}, s32[], f32[]) tuple(new, mu, count, loss)
}
`
	var nameless []string
	for line := range strings.Lines(step) {
		if at := strings.Index(line, ", metadata="); at >= 0 {
			line = line[:at] + "\n"
		}
		nameless = append(nameless, line)
	}
	want := map[string]graph.Phase{"y": graph.Forward, "z": graph.Forward, "loss": graph.Forward, "zero": graph.Forward, "dy": graph.Backward, "dw": graph.Backward,
		"one": graph.Update, "count": graph.Update, "rate": graph.Update, "decay": graph.Update, "kept": graph.Update, "mu": graph.Update, "new": graph.Update}
	for form, text := range map[string]string{"names": step, "no names": strings.Join(nameless, "")} {
		g, _, err := Import([]byte(text), "f.hlo", nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, phase := range want {
			if got := named(t, g, name).Phase; got != phase {
				t.Errorf("%s: %s is %v, want %v", form, name, got, phase)
			}
		}
		for i := range graph.OpID(g.NumOps()) {
			if o := g.Op(i); o.Kind == "VariableV2" && (o.Phase == graph.Update) != (o.Params == 0) {
				t.Errorf("%s: %s, of %d parameters, is %v", form, o.Name, o.Params, o.Phase)
			}
		}
	}
}

// Gradients know what they are gradients of, by name or by module; modules are the same where
// activations are computed again.
func TestGradientsOf(t *testing.T) {
	g, _, err := Import([]byte(`HloModule m
ENTRY e {
  w = f32[8,8] parameter(0), metadata={op_name="params[\'h_0\'][\'fc\'][\'w\']"}
  x = f32[8,8] parameter(1), metadata={op_name="x"}
  y = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/jvp(Net)/h_0/fc/dot_general"}
  z = f32[8,8] tanh(y), metadata={op_name="jit(step)/jvp(Net)/h_0/fc/tanh"}
  s = f32[8,8] add(z, x), metadata={op_name="jit(step)/jvp(Net)/add"}
  a = f32[8,8] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/transpose(jvp(Net))/h_0/fc/dot_general"}
  b = f32[8,8] multiply(a, y), metadata={op_name="jit(step)/transpose(jvp(Net))/h_0/fc/mul"}
  c = f32[8,8] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/transpose(jvp(Net))/jvp(Net)/checkpoint/rematted_computation/h_0/fc/dot_general"}
  ROOT d = f32[8,8] add(c, b), metadata={op_name="jit(step)/transpose(jvp(Net))/add"}
}
`), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "y", "b": "z", "c": "y", "d": ""} {
		o := named(t, g, name)
		got := ""
		if o.Forward != graph.None {
			got = g.Op(o.Forward).Name
		}
		if got != want || want != "" && o.Module != "Net.h_0.fc" {
			t.Errorf("%s, of %s, is the gradient of %q, want %q", name, o.Module, got, want)
		}
	}
}

// A loop whose body goes backward goes backward, whatever its own name is.
func TestPhaseOfLoops(t *testing.T) {
	text := strings.Replace(loop, "add(%i, %two)", `add(%i, %two), metadata={op_name="jit(step)/while/body/transpose(jvp(Net))/add"}`, 1)
	g, _, err := Import([]byte(text), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := named(t, g, "while.1").Phase; got != graph.Backward {
		t.Errorf("the loop is %v", got)
	}
}
