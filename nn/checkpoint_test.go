package nn

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/nn/safetensors"
)

// trained returns parameters and an optimiser after some steps.
func trained(t *testing.T, steps int) (*Params, *Adam) {
	t.Helper()
	ps, a := NewParams(), NewAdam(DefaultAdam())
	r := rand.New(rand.NewPCG(1, 2))
	ps.Glorot("w", r, 3, 4)
	ps.Constant("b", 0, 4)
	for range steps {
		step(t, ps, a, r)
	}
	return ps, a
}

func step(t *testing.T, ps *Params, a *Adam, r *rand.Rand) {
	t.Helper()
	for _, p := range ps.All() {
		for i := range p.Grad {
			p.Grad[i] = float32(r.NormFloat64())
		}
	}
	if _, err := a.Step(ps, 0.01); err != nil {
		t.Fatal(err)
	}
}

func saved(t *testing.T, ps *Params, a *Adam) []byte {
	t.Helper()
	var w bytes.Buffer
	if err := safetensors.Write(&w, Checkpoint(ps, a, map[string]string{"k": "v"})); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// TestResume: training goes on from a checkpoint as if it had not stopped, and
// equal states give equal bytes.
func TestResume(t *testing.T) {
	ps, a := trained(t, 5)
	b := saved(t, ps, a)
	f, err := safetensors.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	qs, c := trained(t, 0)
	if err := Restore(f, qs, c); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(saved(t, qs, c), b) {
		t.Error("a restored state saves other bytes")
	}
	step(t, ps, a, rand.New(rand.NewPCG(9, 9)))
	step(t, qs, c, rand.New(rand.NewPCG(9, 9)))
	if !bytes.Equal(saved(t, ps, a), saved(t, qs, c)) {
		t.Error("a step after restoring gives another state")
	}
}

func TestRestoreRefuses(t *testing.T) {
	cases := []struct {
		name   string
		change func(f *safetensors.File)
		want   string
	}{
		{"missing weight", func(f *safetensors.File) { f.Lookup("weight/w").Name = "x" }, "weight/w is missing"},
		{"other shape", func(f *safetensors.File) { f.Lookup("weight/w").Shape = []int{4, 3} }, "[4 3]"},
		{"other type", func(f *safetensors.File) { f.Lookup("weight/w").Type = "I32" }, "I32"},
		{"not a number", func(f *safetensors.File) {
			binary.LittleEndian.PutUint32(f.Lookup("weight/b").Data, math.Float32bits(float32(math.NaN())))
		}, "NaN"},
		{"half a state", func(f *safetensors.File) { f.Lookup("adam.v/w").Name = "x" }, "adam.v/w is missing"},
		{"negative mean of squares", func(f *safetensors.File) {
			binary.LittleEndian.PutUint32(f.Lookup("adam.v/b").Data, math.Float32bits(-1))
		}, "adam.v/b: element 0 is -1"},
		{"negative step", func(f *safetensors.File) {
			copy(f.Lookup("adam.step/w").Data, bytes.Repeat([]byte{255}, 8))
		}, "is -1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ps, a := trained(t, 3)
			f, err := safetensors.Read(saved(t, ps, a))
			if err != nil {
				t.Fatal(err)
			}
			c.change(f)
			qs, b := trained(t, 1)
			before := slices.Clone(qs.Lookup("w").Value)
			if err := Restore(f, qs, b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Restore: %v, want an error with %q", err, c.want)
			}
			if !slices.Equal(before, qs.Lookup("w").Value) {
				t.Error("weights changed although Restore failed")
			}
		})
	}
}

// TestMeasure: weights are counted without memory for them, up to a number, and a product
// that overflows is more than any.
func TestMeasure(t *testing.T) {
	build := func(rows int) func(ps *Params) {
		return func(ps *Params) {
			ps.Glorot("w", nil, rows, 4)
			ps.Normal("x", nil, 1, 2, 3)
			ps.Constant("b", 1, 4)
		}
	}
	for _, c := range []struct {
		most, rows, n int
		ok            bool
	}{{22, 3, 22, true}, {100, 3, 22, true}, {21, 3, 0, false}, {math.MaxInt, math.MaxInt / 2, 0, false}, {math.MaxInt, 1 << 62, 0, false}, {100, 0, 0, false}, {100, -1, 0, false}} {
		if n, ok := Measure(c.most, build(c.rows)); n != c.n || ok != c.ok {
			t.Errorf("%d rows of at most %d weights: %d, %v, want %d, %v", c.rows, c.most, n, ok, c.n, c.ok)
		}
	}
}
