package blas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// naive is the definition, in float64.
func naive(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	for i := range m {
		for j := range n {
			s := 0.0
			for l := range k {
				x, y := a[min(i*lda+l, len(a)-1)], b[min(l*ldb+j, len(b)-1)]
				if transA {
					x = a[l*lda+i]
				}
				if transB {
					y = b[j*ldb+l]
				}
				s += float64(x) * float64(y)
			}
			o := float64(alpha) * s
			if beta != 0 {
				o += float64(beta) * float64(c[i*ldc+j])
			}
			c[i*ldc+j] = float32(o)
		}
	}
}

// implementations lists what this machine has.
func implementations(t testing.TB) []Gemm {
	all := []Gemm{Gonum{}}
	for _, n := range natives() {
		all = append(all, n)
	}
	if l, err := Open(); err == nil {
		all = append(all, l)
	} else {
		t.Log(err)
	}
	return all
}

// TestSgemm compares every implementation with the definition over random
// shapes, transpositions, strides and scalars; with beta 0 it must not read C.
func TestSgemm(t *testing.T) {
	for _, g := range implementations(t) {
		t.Run(g.Name(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			for i := range 300 {
				m, n, k := 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(70)
				if i%10 == 0 {
					k += 500 // more than is packed at a time
				}
				ta, tb := r.IntN(2) == 1, r.IntN(2) == 1
				ra, ca, rb, cb := m, k, k, n
				if ta {
					ra, ca = k, m
				}
				if tb {
					rb, cb = n, k
				}
				lda, ldb, ldc := ca+r.IntN(9), cb+r.IntN(9), n+r.IntN(9)
				a, b, c := fill(r, (ra-1)*lda+ca), fill(r, (rb-1)*ldb+cb), fill(r, (m-1)*ldc+n)
				alpha, beta := float32(1), float32(0)
				switch r.IntN(3) {
				case 0:
					alpha, beta = 0.5, 1
				case 1:
					beta = -0.3
				}
				want := append([]float32(nil), c...)
				if beta == 0 {
					for i := range m {
						for j := range n {
							c[i*ldc+j] = float32(math.NaN())
						}
					}
				}
				naive(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, want, ldc)
				g.Sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
				for i := range c {
					if d := math.Abs(float64(c[i] - want[i])); !(d < 1e-5*(10+math.Abs(float64(want[i])))) {
						t.Fatalf("m=%d n=%d k=%d transA=%v transB=%v ld %d %d %d: element %d is %g, want %g", m, n, k, ta, tb, lda, ldb, ldc, i, c[i], want[i])
					}
				}
			}
		})
	}
}

func fill(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// TestSgemmRefusesShortSlices: C code would write past the end.
func TestSgemmRefusesShortSlices(t *testing.T) {
	x := func(n int) []float32 { return make([]float32, n) }
	cases := []struct {
		name    string
		a, b, c []float32
		lda     int
		want    string
	}{
		{"A short", x(11), x(12), x(9), 4, "A [3,4]"},
		{"B short", x(12), x(11), x(9), 4, "B [4,3]"},
		{"C short", x(12), x(12), x(8), 4, "C [3,3]"},
		{"leading dimension", x(12), x(12), x(9), 3, "leading dimension 3"},
	}
	for _, g := range implementations(t) {
		for _, c := range cases {
			t.Run(g.Name()+"/"+c.name, func(t *testing.T) {
				defer func() {
					if p := fmt.Sprint(recover()); !strings.Contains(p, c.want) {
						t.Errorf("panic %q, want one naming %q", p, c.want)
					}
				}()
				g.Sgemm(false, false, 3, 3, 4, 1, c.a, c.lda, c.b, 3, 0, c.c, 3)
			})
		}
	}
}

func TestOpenReportsEveryName(t *testing.T) {
	_, err := Open("libnone-a.so", "libnone-b.so")
	if err == nil || !strings.Contains(err.Error(), "libnone-a.so") || !strings.Contains(err.Error(), "libnone-b.so") {
		t.Errorf("Open: %v, want an error naming both libraries", err)
	}
}

func BenchmarkSgemm(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, g := range implementations(b) {
		for _, s := range [][3]int{{256, 128, 128}, {256, 384, 128}, {256, 512, 25}, {256, 25, 512}, {1, 128, 128}} {
			b.Run(fmt.Sprintf("%s/m=%d/n=%d/k=%d", g.Name(), s[0], s[1], s[2]), func(b *testing.B) {
				m, n, k := s[0], s[1], s[2]
				x, y, z := fill(r, m*k), fill(r, k*n), fill(r, m*n)
				for b.Loop() {
					g.Sgemm(false, false, m, n, k, 1, x, k, y, n, 0, z, n)
				}
				b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// TestNarrow: the kernel for narrow matrices gives the same bits as the wide ones, so that
// nothing learned or placed depends on which one was taken.
func TestNarrow(t *testing.T) {
	for _, n := range natives() {
		wide := &Native{name: n.name, wide: n.wide}
		r := rand.New(rand.NewPCG(5, 6))
		for i := range 200 {
			m, cols, k := 1+r.IntN(20), 1+r.IntN(n.narrow.columns), 1+r.IntN(70)
			if i%2 == 0 {
				cols = n.narrow.columns // as it is, not packed
			}
			if i%10 == 0 {
				k += 500
			}
			a, b, c := fill(r, m*k), fill(r, k*cols), fill(r, m*cols)
			want := append([]float32(nil), c...)
			ta, tb, beta := r.IntN(2) == 1, r.IntN(4) == 0, float32(r.IntN(2))
			lda, ldb := k, cols
			if ta {
				lda = m
			}
			if tb {
				ldb = k
			}
			wide.Sgemm(ta, tb, m, cols, k, 1, a, lda, b, ldb, beta, want, cols)
			n.Sgemm(ta, tb, m, cols, k, 1, a, lda, b, ldb, beta, c, cols)
			for j := range c {
				if math.Float32bits(c[j]) != math.Float32bits(want[j]) {
					t.Fatalf("%s, [%d,%d] by [%d,%d], element %d: %g and %g", n.name, m, k, k, cols, j, c[j], want[j])
				}
			}
		}
	}
}
