package brkga_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/regal/brkga"
)

// sphere is the squared distance from a point; trace keeps every chromosome.
type sphere struct {
	at    []float32
	trace [][]float32
	costs []float64
}

func (s *sphere) Keys() int { return len(s.at) }

func (s *sphere) Cost(keys []float32) float64 {
	sum := 0.0
	for i, x := range keys {
		sum += float64((x - s.at[i]) * (x - s.at[i]))
	}
	s.trace = append(s.trace, slices.Clone(keys))
	s.costs = append(s.costs, sum)
	return sum
}

func point(n int) *sphere {
	s := &sphere{at: make([]float32, n)}
	for i := range s.at {
		s.at[i] = float32(i) / float32(n)
	}
	return s
}

func stream(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// One generation, checked by hand: the elites come unevaluated, every key of a
// child is one of the elites' or of the others', mutants are new.
func TestGeneration(t *testing.T) {
	c := brkga.Config{Populations: 1, Chromosomes: 12, Elites: 3, Mutants: 4, EliteBias: 0.8}
	f := point(40)
	brkga.Run(context.Background(), f, brkga.Uniform{}, c, brkga.Budget{Evaluations: 12 + 9}, stream(1))
	first := make([]int, 12)
	for i := range first {
		first[i] = i
	}
	slices.SortFunc(first, func(a, b int) int { return int(math.Copysign(1, f.costs[a]-f.costs[b])) })
	has := func(from []int, key int, x float32) bool {
		return slices.ContainsFunc(from, func(i int) bool { return f.trace[i][key] == x })
	}
	elite := 0
	for _, child := range f.trace[12:17] {
		for k, x := range child {
			switch {
			case has(first[:3], k, x):
				elite++
			case !has(first[3:], k, x):
				t.Fatalf("key %d of a child has no parent", k)
			}
		}
	}
	if share := float64(elite) / 200; share < 0.7 || share > 0.9 {
		t.Errorf("children took %.2f of their keys from elites, want about 0.8", share)
	}
	for _, mutant := range f.trace[17:] {
		if has(first, 0, mutant[0]) {
			t.Error("a mutant has a parent's key")
		}
	}
}

// Chromosomes come from the distributions alone in one generation (IDRS).
func TestOneGeneration(t *testing.T) {
	c := brkga.Default()
	c.OneGeneration = true
	f := point(10)
	got := brkga.Run(context.Background(), f, brkga.Uniform{}, c, brkga.Budget{Evaluations: 500}, stream(2))
	want := stream(2)
	keys := make([]float32, 10)
	for i := range 500 {
		brkga.Uniform{}.Sample(want, keys)
		if !slices.Equal(keys, f.trace[i]) {
			t.Fatalf("chromosome %d is no sample", i)
		}
	}
	if got.Cost != slices.Min(f.costs) || got.Evaluations != 500 {
		t.Errorf("cost %g after %d evaluations", got.Cost, got.Evaluations)
	}
}

func TestBudgetAndCheckpoints(t *testing.T) {
	for _, c := range []brkga.Config{brkga.Default(), {Populations: 3, Chromosomes: 30, Elites: 6, Mutants: 6, EliteBias: 0.6}} {
		f := point(30)
		b := brkga.Budget{Evaluations: 2000, Checkpoints: []int{1, 50, 1000, 2000, 3000}}
		got := brkga.Run(context.Background(), f, brkga.Uniform{}, c, b, stream(3))
		if got.Evaluations != 2000 || len(f.costs) != 2000 {
			t.Fatalf("%d and %d evaluations, want 2000", got.Evaluations, len(f.costs))
		}
		for i, at := range b.Checkpoints[:4] {
			if want := slices.Min(f.costs[:at]); got.Checkpoints[i] != want {
				t.Errorf("best of %d is %g, want %g", at, got.Checkpoints[i], want)
			}
		}
		if !math.IsInf(got.Checkpoints[4], 1) || got.Cost != got.Checkpoints[3] || f.Cost(got.Best) != got.Cost {
			t.Errorf("result %g, checkpoints %v", got.Cost, got.Checkpoints)
		}
		if len(got.Population) != c.Chromosomes || f.Cost(got.Population[0]) > f.Cost(got.Population[1]) {
			t.Error("the population is not one sorted generation")
		}
		if got.Cost > got.Checkpoints[1]/2 {
			t.Errorf("evolution went from %g to %g only", got.Checkpoints[1], got.Cost)
		}
		again := brkga.Run(context.Background(), point(30), brkga.Uniform{}, c, b, stream(3))
		if !slices.Equal(again.Best, got.Best) {
			t.Error("the same stream gives another result")
		}
	}
}

// A generation that ends with the budget is the last full one.
func TestLastGeneration(t *testing.T) {
	c := brkga.Config{Populations: 1, Chromosomes: 30, Elites: 6, Mutants: 6, EliteBias: 0.6}
	last := func(evaluations int) [][]float32 {
		return brkga.Run(context.Background(), point(20), brkga.Uniform{}, c, brkga.Budget{Evaluations: evaluations}, stream(5)).Population
	}
	for _, full := range []int{30, 30 + 24, 30 + 2*24} {
		at, behind := last(full), last(full+1)
		if !slices.EqualFunc(at, behind, slices.Equal) {
			t.Errorf("the population of %d evaluations is not that of %d, whose last is of a generation that has begun", full, full+1)
		}
	}
	if slices.EqualFunc(last(54), last(53), slices.Equal) {
		t.Error("a generation that is one short counts as full")
	}
}

func TestStopsWithContext(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if got := brkga.Run(ctx, point(5), brkga.Uniform{}, brkga.Default(), brkga.Budget{Evaluations: 1e9}, stream(4)); got.Evaluations > 64 || len(got.Best) != 5 {
		t.Errorf("%d evaluations after the end", got.Evaluations)
	}
}

// A.6 in numbers: the distribution of (m, v, k) has the mean and the variance that
// the action names, and samples have them too.
func TestQuantised(t *testing.T) {
	for _, k := range []int{2, 4, 16} {
		for m := range k {
			for v := range k {
				s := brkga.Quantised(m, v, k)
				mean := s.Alpha / (s.Alpha + s.Beta)
				variance := mean * (1 - mean) / (s.Alpha + s.Beta + 1)
				wantMean := float64(m+1) / float64(k+1)
				wantVariance := wantMean * (1 - wantMean) * float64(v+1) / float64(k+1)
				if math.Abs(mean-wantMean) > 1e-12 || math.Abs(variance-wantVariance) > 1e-12 {
					t.Errorf("k %d, m %d, v %d: mean %g, variance %g", k, m, v, mean, variance)
				}
				if k != 16 || m%5 == 0 && v%5 == 0 {
					checkSamples(t, s, wantMean, wantVariance)
				}
			}
		}
	}
	if c := brkga.QuantisedBias(0, 2); math.Abs(c-2.0/3) > 1e-15 {
		t.Errorf("bias %g, want 2/3", c)
	}
}

func checkSamples(t *testing.T, s brkga.Shape, mean, variance float64) {
	t.Helper()
	b := brkga.Beta{Keys: []brkga.Shape{s, {1, 1}}}
	r := stream(9)
	keys := make([]float32, 3)
	const n = 20000
	var sum, squares float64
	for range n {
		b.Sample(r, keys)
		for _, x := range keys {
			if !(x >= 0 && x <= 1) {
				t.Fatalf("%+v: key %g", s, x)
			}
		}
		sum += float64(keys[0])
		squares += float64(keys[0]) * float64(keys[0])
	}
	gotMean := sum / n
	if gotVariance := squares/n - gotMean*gotMean; math.Abs(gotMean-mean) > 0.015 || math.Abs(gotVariance-variance) > 0.01 {
		t.Errorf("%+v: samples have mean %g and variance %g, want %g and %g", s, gotMean, gotVariance, mean, variance)
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*brkga.Config){
		"populations": func(c *brkga.Config) { c.Populations = 0 }, "elites": func(c *brkga.Config) { c.Elites = 0 },
		"mutants": func(c *brkga.Config) { c.Mutants = 90 }, "bias": func(c *brkga.Config) { c.EliteBias = 0.4 },
		"all elite": func(c *brkga.Config) { c.Elites, c.Mutants = 100, 0 },
	} {
		c := brkga.Default()
		if change(&c); c.Validate() == nil {
			t.Errorf("%s passed", name)
		}
	}
	if err := brkga.Default().Validate(); err != nil {
		t.Error(err)
	}
}

func Example() {
	f := point(20)
	got := brkga.Run(context.Background(), f, brkga.Uniform{}, brkga.Default(), brkga.Budget{Evaluations: 3000, Checkpoints: []int{100, 3000}}, stream(1))
	fmt.Println(got.Evaluations, got.Checkpoints[1] < got.Checkpoints[0]/10)
	// Output: 3000 true
}
