package transformerxl

import (
	"math"
	"math/rand/v2"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// setup is a small network with random biases over the embedding h.
type setup struct {
	config Config
	ps     *nn.Params
	net    *Network
}

func newSetup(c Config) setup {
	r := rand.New(rand.NewPCG(5, 9))
	ps := nn.NewParams()
	s := setup{c, ps, New(c, ps, r)}
	for _, p := range ps.All() {
		if len(p.Shape) == 1 {
			for i := range p.Value {
				p.Value[i] += float32(r.NormFloat64() * 0.2)
			}
		}
	}
	return s
}

func smallConfig() Config {
	return Config{Width: 12, Layers: 2, Heads: 2, HeadWidth: 5, Inner: 16, Segment: 8, Memory: 8, Attention: true, Modulation: true, Choices: 3, HeadResidual: true}
}

func embedding(n, d int) nn.Mat {
	r := rand.New(rand.NewPCG(2, 8))
	h := nn.NewMat(n, d)
	for i := range h.V {
		h.V[i] = float32(r.NormFloat64())
	}
	return h
}

// run returns logits and last states for the embedding h of graphs with bounds.
func (s setup) run(t *testing.T, h nn.Mat, bounds ...int32) (logits, states nn.Mat) {
	t.Helper()
	g := nn.NewGraph(nntest.Backends(t)[0])
	in := g.Input("h", h.N, h.D)
	segments := Segments(bounds, s.config.Segment, s.config.Memory)
	l, x := s.net.Apply(g, in, in, &segments, &segments)
	if err := g.Compile(false, l[0], x); err != nil {
		t.Fatal(err)
	}
	g.SetInput(in, h)
	if _, err := g.Run(nil); err != nil {
		t.Fatal(err)
	}
	return g.Output(0).Clone(), g.Output(1).Clone()
}

// differs returns the rows where a and b differ by more than rounding.
func differs(a, b nn.Mat) (rows []int) {
	for r := range a.N {
		for c, v := range a.Row(r) {
			if math.Abs(float64(v-b.Row(r)[c])) > 1e-5 {
				rows = append(rows, r)
				break
			}
		}
	}
	return rows
}

// TestNoPositionalEncoding: GO, section 4.2 and GDP, section 3.2 remove the
// positional encoding. A permutation of the rows inside a segment then permutes
// the results, in that segment and nowhere else.
func TestNoPositionalEncoding(t *testing.T) {
	s := newSetup(smallConfig())
	h := embedding(24, s.config.Width)
	want, _ := s.run(t, h, 0, 24)
	p := rand.New(rand.NewPCG(1, 2)).Perm(8)
	moved, expect := h.Clone(), want.Clone()
	for i, j := range p { // the middle segment, which also is memory
		copy(moved.Row(8+i), h.Row(8+j))
		copy(expect.Row(8+i), want.Row(8+j))
	}
	got, _ := s.run(t, moved, 0, 24)
	if d := differs(got, expect); d != nil {
		t.Errorf("rows %v differ after permuting a segment", d)
	}
}

// TestSegmentRecurrence: with memory a segment's result depends on the segments
// before it, one more per layer (Dai et al., section 3.2), and never on later
// ones; without memory on itself alone.
func TestSegmentRecurrence(t *testing.T) {
	for _, memory := range []int{0, 8} {
		c := smallConfig()
		c.Memory, c.Modulation, c.Layers = memory, false, 1
		s := newSetup(c)
		h := embedding(40, c.Width) // 5 segments
		base, _ := s.run(t, h, 0, 40)
		moved := h.Clone()
		moved.Row(9)[0]++ // in segment 1
		got, _ := s.run(t, moved, 0, 40)
		var reached [5]bool
		for _, r := range differs(got, base) {
			reached[r/8] = true
		}
		// One layer and the head's attention: two segments on at most.
		want := [5]bool{false, true, memory > 0, memory > 0, false}
		if reached != want {
			t.Errorf("memory %d: segments reached %v, want %v", memory, reached, want)
		}
	}
}

// TestMemoryIsOfTheSameGraph: stacked graphs give the results each gives alone.
func TestMemoryIsOfTheSameGraph(t *testing.T) {
	s := newSetup(smallConfig())
	h := embedding(31, s.config.Width)
	both, _ := s.run(t, h, 0, 13, 31)
	first, _ := s.run(t, h.Rows(0, 13), 0, 13)
	second, _ := s.run(t, h.Rows(13, 31), 0, 18)
	if d := differs(both.Rows(0, 13), first); d != nil {
		t.Errorf("rows %v of the first graph differ", d)
	}
	if d := differs(both.Rows(13, 31), second); d != nil {
		t.Errorf("rows %v of the second graph differ", d)
	}
}

// reference computes the network's equations in float64 from its parameters.
type reference struct {
	config   Config
	param    func(name string) []float64
	segments []Segment
	n        int
}

func newReference(s setup, n int32) reference {
	param := func(name string) (x []float64) {
		for _, v := range s.ps.Lookup(name).Value {
			x = append(x, float64(v))
		}
		return x
	}
	return reference{s.config, param, Segments([]int32{0, n}, s.config.Segment, s.config.Memory), int(n)}
}

func (r reference) affine(x []float64, name string, f func(float64) float64) []float64 {
	b := r.param(name + ".b")
	return nntest.Map(nntest.AddRow(nntest.MatMul(x, r.param(name+".w"), r.n, len(x)/r.n, len(b)), b), f)
}

func identity(v float64) float64 { return v }

func (r reference) attention(x []float64, name string) []float64 {
	c := r.config
	a := attended(x, x, r.param(name+".qkv.w"), r.param(name+".qkv.b"), r.segments, r.n, c.Width, c.Heads, c.HeadWidth)
	return r.affine(a, name+".out", identity)
}

func (r reference) norm(name string, xs ...[]float64) []float64 {
	s := append([]float64(nil), xs[0]...)
	for _, x := range xs[1:] {
		for i, v := range x {
			s[i] += v
		}
	}
	return nntest.LayerNorm(s, r.param(name+".gain"), r.param(name+".bias"))
}

// layer is a transformer layer: attention and feed-forward, residual and norm.
func (r reference) layer(x, dense []float64, name string) []float64 {
	h := x
	if r.config.Attention {
		h = r.norm(name+".norm1", x, r.attention(x, name+".attention"))
	}
	y := append([]float64(nil), h...)
	for i := range dense {
		y[i] *= dense[i]
	}
	return r.norm(name+".norm2", h, r.affine(r.affine(y, name+".inner", nntest.Relu), name+".outward", identity))
}

// tasks returns the logits of each task from the last layer's states x.
func (r reference) tasks(x []float64) (logits [][]float64) {
	first := r.config.Tasks()[0].Name
	for i, task := range r.config.Tasks() {
		var h []float64
		switch {
		case r.config.TasksApart:
			h = r.norm(task.Name+".norm", x)
		case i > 0:
			h = r.affine(r.norm(task.Name+".norm", beside(logits[i-1], x, r.n)), task.Name+".project", identity)
		default:
			h = r.norm(task.Name+".norm", x)
		}
		a := h
		if r.config.Attention {
			a = r.attention(h, first+".attention")
			if r.config.HeadResidual {
				a = r.norm(task.Name+".residual", h, a)
			}
		}
		logits = append(logits, r.affine(r.affine(a, task.Name+".fc1", nntest.Relu), task.Name+".fc2", identity))
		if !r.config.TasksApart {
			x = h
		}
	}
	return logits
}

// beside concatenates the n rows of a and b.
func beside(a, b []float64, n int) (y []float64) {
	p, q := len(a)/n, len(b)/n
	for i := range n {
		y = append(append(y, a[i*p:(i+1)*p]...), b[i*q:(i+1)*q]...)
	}
	return y
}

// TestSuperposition: GO, section 4.3: x(l+1) = a_l(m(h) * x(l)), x(0) = h, with m
// one transformer layer; GDP, Eq. 5, the same for dense layers; and the head's
// equations of GO, section 4.4.
func TestSuperposition(t *testing.T) {
	for _, modulation := range []string{"layers", "dense", "none"} {
		for _, variant := range []string{"residual", "paper", "no attention"} {
			c := smallConfig()
			c.Modulation, c.ModulateDense = modulation != "none", modulation == "dense"
			c.HeadResidual, c.Attention = variant == "residual", variant != "no attention"
			s := newSetup(c)
			const n = 21
			h := embedding(n, c.Width)
			logits, states := s.run(t, h, 0, n)
			r := newReference(s, n)
			var x []float64
			for _, v := range h.V {
				x = append(x, float64(v))
			}
			var m []float64
			if c.Modulation {
				m = r.layer(x, nil, "modulation")
			}
			for _, name := range []string{"layer.0", "layer.1"} {
				if c.ModulateDense {
					x = r.layer(x, m, name)
					continue
				}
				y := append([]float64(nil), x...)
				for i := range m {
					y[i] *= m[i]
				}
				x = r.layer(y, nil, name)
			}
			equal(t, "states", states.V, x)
			equal(t, "logits", logits.V, r.tasks(x)[0])
		}
	}
}

func equal(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if math.Abs(float64(got[i])-w) > 1e-4 {
			t.Fatalf("%s: element %d is %g, want %g", what, i, got[i], w)
		}
	}
}
