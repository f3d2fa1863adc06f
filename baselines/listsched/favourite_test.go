package listsched

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// randomProgram has n nodes and edges among near ones.
func randomProgram(rng *rand.Rand, n int) *program {
	p := &program{}
	for v := range n {
		p.seconds = append(p.seconds, 1+9*rng.Float64())
		for q := max(0, v-5); q < v; q++ {
			if rng.IntN(3) == 0 {
				p.edges = append(p.edges, edge{int32(q), int32(v), 8 * rng.Float64()})
			}
		}
	}
	return p
}

// check fails unless y is a solution of p of length w.
func check(t *testing.T, p *program, y []float64, w float64) {
	t.Helper()
	out, in := make([]float64, len(p.seconds)), make([]float64, len(p.seconds))
	for k, x := range p.edges {
		if y[k] < -1e-9 {
			t.Fatalf("y = %g", y[k])
		}
		out[x.from] += y[k]
		in[x.to] += y[k]
	}
	for v := range out {
		if out[v] > 1+1e-9 || in[v] > 1+1e-9 {
			t.Fatalf("node %d: sums %g and %g", v, out[v], in[v])
		}
	}
	if got := p.length(y); math.Abs(got-w) > 1e-6*w {
		t.Fatalf("longest path %g, want %g", got, w)
	}
}

// TestDescend: the approximation is a solution at most 1% above the simplex
// method's optimum, and never below.
func TestDescend(t *testing.T) {
	worst := 0.0
	for seed := range uint64(40) {
		p := randomProgram(rand.New(rand.NewPCG(seed, 1)), 4+int(seed%12))
		if p.rows() > simplexRows || len(p.edges) == 0 {
			continue
		}
		y, want, err := p.exact()
		if err != nil {
			t.Fatal(err)
		}
		check(t, p, y, want)
		y, got := p.descend(context.Background(), descendRounds)
		check(t, p, y, got)
		if got < want*(1-1e-9) {
			t.Fatalf("seed %d: %g is below the optimum %g", seed, got, want)
		}
		worst = max(worst, got/want-1)
	}
	if t.Logf("worst excess %.2f%%", 100*worst); worst > 0.01 {
		t.Errorf("worst excess %.2f%%, want at most 1%%", 100*worst)
	}
}

// TestProgram: node 0 gives to 1 and 2, of which 1 is on the longer way. Freeing
// edge 0-1 alone leaves max(1+5+1, 1+2+4) = 7 by way of 2 and 1+6 by way of 1;
// nothing beats 7, and without favourites it is 1+4+6 = 11.
func TestProgram(t *testing.T) {
	p := &program{seconds: []float64{1, 6, 4}, edges: []edge{{0, 1, 4}, {0, 2, 2}}}
	if got := p.length(nil); got != 11 {
		t.Errorf("without favourites %g, want 11", got)
	}
	y, w, exact := p.solve(context.Background())
	if !exact || math.Abs(w-7) > 1e-9 || math.Abs(y[0]-1) > 1e-9 {
		t.Errorf("y %v, w %g, exact %v, want edge 0 free and 7", y, w, exact)
	}
	if p.floor() != 7 {
		t.Errorf("floor %g", p.floor())
	}
}
