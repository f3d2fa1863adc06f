package synth_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func stream(k uint64) *rand.Rand { return rand.New(rand.NewPCG(11, k)) }

// The numbers of A.1.4, over 400 graphs.
func TestPaperNumbers(t *testing.T) {
	models := map[string]int{}
	var ops, outputs [3]float64
	var edges, control, size, squares, tensors, noise, timed float64
	minOps, maxOps := math.MaxInt, 0
	for k := range uint64(400) {
		p := synth.Default().Generate(stream(k))
		n := int32(p.N() - 2)
		models[p.Name()]++
		minOps, maxOps = min(minOps, int(n)), max(maxOps, int(n))
		if p.Time()[0] != 0 || p.Time()[n+1] != 0 || len(p.Inputs(0)) != 0 {
			t.Fatal("source or sink cost something")
		}
		for i := int32(1); i <= n; i++ {
			made, toSink := 0, len(p.Inputs(i))
			for x, end := p.Outputs(i); x < end; x++ {
				if !p.Control(x) {
					made++
					tensors++
					size += float64(p.Size(x))
					squares += float64(p.Size(x)) * float64(p.Size(x))
				}
			}
			ops[0]++
			outputs[made]++
			if toSink == 0 {
				t.Fatalf("op %d has no predecessor", i)
			}
			for _, x := range p.Inputs(i) {
				u := p.Producer(x)
				if u == 0 {
					continue
				}
				hasOutput := false
				for y, end := p.Outputs(u); y < end; y++ {
					hasOutput = hasOutput || !p.Control(y)
				}
				if hasOutput {
					edges++
					if p.Control(x) {
						control++
					}
				}
			}
			if m := float64(p.Memory(i)); m > 0 {
				x := p.Time()[i]/m - 1
				noise += x * x
				timed++
			}
		}
	}
	for name, got := range map[string][3]float64{ // got, want, tolerance
		"0 outputs":     {outputs[0] / ops[0], 0.1, 0.01},
		"2 outputs":     {outputs[2] / ops[0], 0.1, 0.01},
		"control edges": {control / edges, 0.2, 0.01},
		"tensor size":   {size / tensors, 50, 0.3},
		"size spread":   {math.Sqrt(squares/tensors - size/tensors*size/tensors), 10, 0.2},
		"time noise":    {math.Sqrt(noise / timed), 0.1, 0.003},
	} {
		if math.Abs(got[0]-got[1]) > got[2] {
			t.Errorf("%s: %.4f, want %g", name, got[0], got[1])
		}
	}
	if minOps < 50 || maxOps > 200 || minOps > 53 || maxOps < 197 {
		t.Errorf("%d to %d ops, want 50 to 200", minOps, maxOps)
	}
	for _, m := range []string{"erdos-renyi", "barabasi-albert", "watts-strogatz", "stochastic-block"} {
		if models[m] < 70 || models[m] > 130 {
			t.Errorf("%d of 400 graphs are %s", models[m], m)
		}
	}
}

// Edge counts that the models' definitions give.
func TestTopologies(t *testing.T) {
	c := synth.Default()
	c.MinOps, c.MaxOps, c.NoOutput, c.TwoOut, c.Control = 100, 100, 0, 0, 0
	sum, count := map[string]float64{}, map[string]float64{}
	for k := range uint64(200) {
		p := c.Generate(stream(k))
		for i := int32(1); i <= 100; i++ {
			for _, x := range p.Inputs(i) {
				if p.Producer(x) != 0 {
					sum[p.Name()]++
				}
			}
		}
		count[p.Name()]++
	}
	for name, want := range map[string]float64{"erdos-renyi": 0.05 * 4950, "barabasi-albert": 196, "watts-strogatz": 200, "stochastic-block": 4*300*0.3 + 3750*0.01} {
		if got := sum[name] / count[name]; math.Abs(got-want) > 0.03*want {
			t.Errorf("%s: %.1f edges on average, want %.1f", name, got, want)
		}
	}
}

func TestFilteredIsDeterministic(t *testing.T) {
	c, f := synth.Default(), synth.DefaultFilter()
	f.Low, f.High, f.Improvement = 200, 1000, 0.05
	a, tried, err := synth.Filtered(context.Background(), c, f, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	b, again, _ := synth.Filtered(context.Background(), c, f, 3, 5)
	if tried != again || !reflect.DeepEqual(a.Spec(), b.Spec()) {
		t.Error("graph 5 of seed 3 is not always the same")
	}
	other, _, _ := synth.Filtered(context.Background(), c, f, 3, 6)
	if reflect.DeepEqual(a.Spec(), other.Spec()) {
		t.Error("graphs 5 and 6 are equal")
	}
	f.Improvement = 0.99
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, _, err := synth.Filtered(ctx, c, f, 3, 5); err == nil {
		t.Error("an ended context gives a graph")
	}
}

func TestAugment(t *testing.T) {
	p := synth.Default().Generate(stream(1))
	q := synth.Augment(p, "copy", stream(2))
	low, high := math.Inf(1), 0.0
	for i, x := range p.Time() {
		if x > 0 {
			low, high = min(low, q.Time()[i]/x), max(high, q.Time()[i]/x)
		}
	}
	if low < 0.5 || high > 1.5 || low > 0.55 || high < 1.45 {
		t.Errorf("factors from %g to %g, want 0.5 to 1.5", low, high)
	}
	for x := range int32(p.T()) {
		if f := float64(q.Size(x)) / float64(p.Size(x)); p.Size(x) > 0 && (f < 0.48 || f > 1.52) || p.Control(x) != q.Control(x) {
			t.Errorf("tensor %d: size %d became %d", x, p.Size(x), q.Size(x))
		}
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*synth.Config){
		"ops": func(c *synth.Config) { c.MinOps = 3 }, "range": func(c *synth.Config) { c.MaxOps = 10 },
		"probability": func(c *synth.Config) { c.NoOutput = 1 }, "size": func(c *synth.Config) { c.Size = math.NaN() },
	} {
		c := synth.Default()
		if change(&c); c.Validate() == nil {
			t.Errorf("%s passed", name)
		}
	}
}

func Example() {
	p := synth.Default().Generate(rand.New(rand.NewPCG(1, 0)))
	e := sched.NewEvaluator(p, sched.RunTime)
	one := e.Place(make([]uint8, p.N()), p.Order()).Time
	fmt.Println(p.Name(), p.N() >= 52 && p.N() <= 202, one == p.Work(), p.LowerBound() >= p.Work()/2)
	// Output: stochastic-block true true true
}
