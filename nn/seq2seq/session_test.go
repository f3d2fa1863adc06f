package seq2seq

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
	"placer/ppo"
)

type fixture struct {
	ps      *nn.Params
	s       *Session
	x       nn.Mat
	actions [][]int32
	logProb [][]float32
}

func newFixture(t testing.TB, b *nn.Backend, c Config, of Shape) *fixture {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	f := &fixture{ps: nn.NewParams()}
	net := New(c, f.ps, r)
	for _, w := range net.choose.W { // far from uniform, so that differences show
		for i := range w.Value {
			w.Value[i] *= 20
		}
	}
	var err error
	if f.s, err = net.Session(b, of); err != nil {
		t.Fatal(err)
	}
	f.x = nn.NewMat(of.Sequences*of.Items, c.Features)
	for i := range f.x.V {
		f.x.V[i] = float32(r.NormFloat64())
	}
	for range of.Samples {
		f.actions, f.logProb = append(f.actions, make([]int32, of.Items)), append(f.logProb, make([]float32, of.Items))
	}
	if err := f.s.Sample(f.x, r, f.actions, f.logProb); err != nil {
		t.Fatal(err)
	}
	return f
}

// logProbs keeps the log probabilities that the training graph gives actions.
type logProbs struct {
	actions [][]int32
	got     [][]float64
}

func (l *logProbs) Loss(_ *nn.Context, outputs, _ []nn.Mat) float64 {
	p, x := make([]float64, outputs[0].D), outputs[0]
	for k, a := range l.actions {
		l.got = append(l.got, nil)
		for t, c := range a {
			row := x.Row(k*len(a) + t)
			l.got[k] = append(l.got[k], float64(row[c])-nn.SoftmaxRow(p, row))
		}
	}
	return 0
}

// TestStepsAgreeWithTraining: sampling step by step and the training graph, which
// is told the choices, give the same probabilities.
func TestStepsAgreeWithTraining(t *testing.T) {
	for _, b := range nntest.Backends(t) {
		for _, sequences := range []int{1, 4} {
			for _, aligned := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/sequences=%d/aligned=%v", b.Name(), sequences, aligned), func(t *testing.T) {
					c := Config{Features: 5, Width: 12, Choices: 3, Aligned: aligned}
					f := newFixture(t, b, c, Shape{17, 4, sequences})
					l := &logProbs{actions: f.actions}
					if _, err := f.s.Backward(f.x, f.actions, l); err != nil {
						t.Fatal(err)
					}
					seen := map[int32]bool{}
					for k := range f.actions {
						for i, a := range f.actions[k] {
							seen[a] = true
							if d := math.Abs(l.got[k][i] - float64(f.logProb[k][i])); d > 1e-4 {
								t.Fatalf("sample %d, item %d: log probability %g when sampled, %g in training", k, i, f.logProb[k][i], l.got[k][i])
							}
						}
					}
					if len(seen) < 2 {
						t.Errorf("only choices %v were drawn", seen)
					}
				})
			}
		}
	}
}

// TestGradientOfTheWhole: the loss changes along the gradient as fast as its norm
// says.
func TestGradientOfTheWhole(t *testing.T) {
	for _, b := range nntest.Backends(t)[:1] {
		for _, sequences := range []int{1, 3} {
			for _, aligned := range []bool{true, false} {
				f := newFixture(t, b, Config{Features: 5, Width: 12, Choices: 3, Aligned: aligned}, Shape{9, 3, sequences})
				o := &ppo.Objective{ClipEps: 0.2, Actions: f.actions, LogProb: f.logProb, Advantage: [][]float32{{1}, {-2}, {0.5}}}
				loss := func() float64 {
					l, err := f.s.Backward(f.x, f.actions, o)
					if err != nil {
						t.Fatal(err)
					}
					return l
				}
				if got, norm := nntest.Slope(f.ps, 1e-2, loss); norm == 0 || math.Abs(got/norm-1) > 0.02 {
					t.Errorf("%d sequences, aligned %v: the loss changes by %g along the gradient, its squared norm is %g", sequences, aligned, got, norm)
				}
			}
		}
	}
}

// TestEverySampleCounts: each sample's own choices decide its later
// probabilities, whatever the others do.
func TestSamplesAreIndependent(t *testing.T) {
	b := nntest.Backends(t)[0]
	f := newFixture(t, b, Config{Features: 5, Width: 12, Choices: 3, Aligned: true}, Shape{9, 3, 1})
	one := &logProbs{actions: f.actions}
	if _, err := f.s.Backward(f.x, f.actions, one); err != nil {
		t.Fatal(err)
	}
	changed := [][]int32{f.actions[0], append([]int32(nil), f.actions[1]...), f.actions[2]}
	changed[1][3] = (changed[1][3] + 1) % 3
	two := &logProbs{actions: changed}
	if _, err := f.s.Backward(f.x, changed, two); err != nil {
		t.Fatal(err)
	}
	for k := range changed {
		for i := range changed[k] {
			same := one.got[k][i] == two.got[k][i]
			if want := k != 1 || i < 3; want && !same || k == 1 && i == 4 && same {
				t.Errorf("sample %d, item %d: log probability %g, then %g", k, i, one.got[k][i], two.got[k][i])
			}
		}
	}
}

func TestSampleAllocatesNothing(t *testing.T) {
	b := nntest.Backends(t)[0]
	f := newFixture(t, b, Config{Features: 5, Width: 12, Choices: 3, Aligned: true}, Shape{40, 4, 1})
	if n := testing.AllocsPerRun(3, func() { f.s.step(1, f.actions) }); n > 1 {
		t.Errorf("a step of the decoders allocates %g times", n)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []Config{{Width: 8, Choices: 2}, {Features: 1, Width: 7, Choices: 2}, {Features: 1, Width: 8}} {
		if c.validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if err := standard(3, 2).validate(); err != nil {
		t.Error(err)
	}
}

// BenchmarkRound measures a round of 10 samples: decisions, and their gradient.
func BenchmarkRound(b *testing.B) {
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		b.Fatal(err)
	}
	for _, items := range []int{64, 256} {
		for _, sequences := range []int{1, 10} {
			f := newFixture(b, backend, standard(120, 8), Shape{items, 10, sequences})
			o := &ppo.Objective{ClipEps: 0.2, Actions: f.actions, LogProb: f.logProb}
			for range f.actions {
				o.Advantage = append(o.Advantage, []float32{1})
			}
			r := rand.New(rand.NewPCG(1, 2))
			b.Run(fmt.Sprintf("items=%d/sequences=%d/sample", items, sequences), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := f.s.Sample(f.x, r, f.actions, f.logProb); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("items=%d/sequences=%d/gradient", items, sequences), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := f.s.Backward(f.x, f.actions, o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// standard has a width of 64 and an aligned decoder.
func standard(features, choices int) Config {
	return Config{Features: features, Width: 64, Choices: choices, Aligned: true}
}
