package ppo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// randomObjective returns an objective of k samples of n nodes with a choices,
// with old log probabilities near those of logits x, [n,a] or [kn,a]. Ratios keep
// away from the clipping borders, where there is no derivative.
func randomObjective(r *rand.Rand, x nn.Mat, k, n int, perNode bool) *Objective {
	o := &Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5}
	p := make([]float64, x.D)
	for s := range k {
		a, l := make([]int32, n), make([]float32, n)
		for v := range n {
			row := x.Row(v)
			if x.N > n {
				row = x.Row(s*n + v)
			}
			lz := nn.SoftmaxRow(p, row)
			a[v] = int32(r.IntN(x.D))
			for p[a[v]] == 0 {
				a[v] = int32(r.IntN(x.D))
			}
			shift := []float64{-0.5, -0.1, 0, 0.1, 0.5}[r.IntN(5)]
			l[v] = float32(float64(row[a[v]]) - lz + shift)
		}
		o.Actions, o.LogProb = append(o.Actions, a), append(o.LogProb, l)
		adv := make([]float32, 1)
		if perNode {
			adv = make([]float32, n)
		}
		for i := range adv {
			adv[i] = float32(r.NormFloat64())
		}
		o.Advantage = append(o.Advantage, adv)
		o.Return = append(o.Return, float32(r.NormFloat64()))
	}
	return o
}

// TestObjectiveGradient compares the gradient with central differences of the
// loss, for shared and for separate logits, one advantage or one per node, and
// with forbidden choices.
func TestObjectiveGradient(t *testing.T) {
	for _, c := range []struct {
		k, n, rows, values int
		perNode, masked    bool
	}{
		{1, 1, 1, 1, false, false},
		{4, 3, 3, 1, false, false},
		{4, 3, 12, 4, false, false},
		{3, 5, 5, 1, true, true},
		{3, 300, 900, 3, true, false},
	} {
		t.Run(fmt.Sprintf("samples=%d/nodes=%d/rows=%d", c.k, c.n, c.rows), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(c.rows)))
			ctx := nn.NewContext(nntest.Backends(t)[0])
			x, v := nn.NewMat(c.rows, 5), nn.NewMat(c.values, 1)
			for i := range x.V {
				x.V[i] = float32(r.NormFloat64())
				if c.masked && i%5 == 2 {
					x.V[i] = nn.Masked
				}
			}
			for i := range v.V {
				v.V[i] = float32(r.NormFloat64())
			}
			o := randomObjective(r, x, c.k, c.n, c.perNode)
			dx, dv := nn.NewMat(x.N, x.D), nn.NewMat(v.N, 1)
			o.Loss(ctx, []nn.Mat{x, v}, []nn.Mat{dx, dv})
			loss := func() float64 {
				return o.Loss(ctx, []nn.Mat{x, v}, []nn.Mat{nn.NewMat(x.N, x.D), nn.NewMat(v.N, 1)})
			}
			for _, m := range []struct{ x, d nn.Mat }{{x, dx}, {v, dv}} {
				for _, i := range r.Perm(len(m.x.V))[:min(60, len(m.x.V))] {
					if m.x.V[i] == nn.Masked {
						if m.d.V[i] != 0 {
							t.Fatalf("gradient of forbidden choice %d is %g, want 0", i, m.d.V[i])
						}
						continue
					}
					old := m.x.V[i]
					const h = 1e-2
					m.x.V[i] = old + h
					high, up := loss(), float64(m.x.V[i])
					m.x.V[i] = old - h
					low, down := loss(), float64(m.x.V[i])
					m.x.V[i] = old
					want := (high - low) / (up - down)
					if got := float64(m.d.V[i]); math.Abs(got-want) > 1e-4/math.Sqrt(float64(c.n))+1e-3*math.Abs(want) {
						t.Fatalf("gradient %d is %g, central difference %g", i, got, want)
					}
				}
			}
		})
	}
}

// TestSharedLogitsEqualCopies: K samples on shared logits give the loss, and in
// sum the gradient, of K copies of the logits.
func TestSharedLogitsEqualCopies(t *testing.T) {
	const k, n, a = 4, 7, 3
	r := rand.New(rand.NewPCG(4, 4))
	ctx := nn.NewContext(nntest.Backends(t)[0])
	x := nn.NewMat(n, a)
	for i := range x.V {
		x.V[i] = float32(r.NormFloat64())
	}
	many := nn.NewMat(k*n, a)
	for i := range k {
		copy(many.Rows(i*n, (i+1)*n).V, x.V)
	}
	o := randomObjective(r, x, k, n, false)
	v, dv := nn.NewMat(1, 1), nn.NewMat(1, 1)
	d1, d2 := nn.NewMat(n, a), nn.NewMat(k*n, a)
	l1 := o.Loss(ctx, []nn.Mat{x, v}, []nn.Mat{d1, dv})
	s1 := o.Stats
	l2 := o.Loss(ctx, []nn.Mat{many, v}, []nn.Mat{d2, dv})
	if math.Abs(l1-l2) > 1e-9 || math.Abs(s1.KL3-o.Stats.KL3) > 1e-9 || s1.ClipFraction != o.Stats.ClipFraction {
		t.Errorf("shared %g %+v, copies %g %+v", l1, s1, l2, o.Stats)
	}
	for i := range d1.V {
		sum := float32(0)
		for j := range k {
			sum += d2.V[j*n*a+i]
		}
		if math.Abs(float64(sum-d1.V[i])) > 1e-6 {
			t.Fatalf("gradient %d is %g shared, %g over copies", i, d1.V[i], sum)
		}
	}
}

func TestObjectiveRefusesOtherShapes(t *testing.T) {
	ctx := nn.NewContext(nntest.Backends(t)[0])
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "[5,3], for 2 samples of 4 choices") {
			t.Errorf("panic %q, want one naming both shapes", p)
		}
	}()
	o := &Objective{Actions: make([][]int32, 2), LogProb: make([][]float32, 2), Advantage: make([][]float32, 2)}
	for i := range 2 {
		o.Actions[i], o.LogProb[i], o.Advantage[i] = make([]int32, 4), make([]float32, 4), make([]float32, 1)
	}
	o.Loss(ctx, []nn.Mat{nn.NewMat(5, 3), nn.NewMat(1, 1)}, []nn.Mat{nn.NewMat(5, 3), nn.NewMat(1, 1)})
}
