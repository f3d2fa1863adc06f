package graphsage

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// randomLists gives each of n nodes up to most neighbours, some none.
func randomLists(r *rand.Rand, n, most int) *Neighbours {
	l := &Neighbours{Start: []int32{0}}
	for range n {
		for range r.IntN(most + 1) {
			l.Index = append(l.Index, int32(r.IntN(n)))
		}
		l.Start = append(l.Start, int32(len(l.Index)))
	}
	return l
}

// pooled is the definition of Aggregate (GO, section 4.1).
func pooled(h, w, b []float64, lists *Neighbours, n, e int) []float64 {
	d := len(b)
	z := nntest.Map(nntest.AddRow(nntest.MatMul(h, w, n, e, d), b), nntest.Sigmoid)
	y := make([]float64, n*d)
	for v := range n {
		for _, u := range lists.Index[lists.Start[v]:lists.Start[v+1]] {
			for c := range d {
				y[v*d+c] = max(y[v*d+c], z[int(u)*d+c]) // a sigmoid is above 0
			}
		}
	}
	return y
}

func TestAggregate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, b := range nntest.Backends(t) {
		for _, s := range []struct{ n, e, d, most int }{{1, 3, 4, 2}, {9, 4, 8, 5}, {40, 7, 33, 3}, {600, 5, 70, 5}} {
			t.Run(fmt.Sprintf("%s/n=%d/d=%d", b.Name(), s.n, s.d), func(t *testing.T) {
				lists := randomLists(r, s.n, s.most)
				nntest.Check(t, b, nntest.Case{
					Shapes: [][]int{{s.n, s.e}, {s.e, s.d}, {s.d}},
					Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
						return Aggregate(g, g.Param(p[0]), p[1], p[2], &lists)
					},
					Reference: func(x, _ [][]float64) []float64 { return pooled(x[0], x[1], x[2], lists, s.n, s.e) },
				})
			})
		}
	}
}

func TestNeighboursCheck(t *testing.T) {
	cases := []struct {
		name string
		l    Neighbours
		n    int
		ok   bool
	}{
		{"empty", Neighbours{Start: []int32{0}}, 0, true},
		{"chain", Neighbours{[]int32{0, 1, 2}, []int32{1, 0}}, 2, true},
		{"too few starts", Neighbours{[]int32{0, 1}, []int32{1}}, 2, false},
		{"unknown node", Neighbours{[]int32{0, 1, 2}, []int32{1, 2}}, 2, false},
		{"negative node", Neighbours{[]int32{0, 1, 2}, []int32{1, -1}}, 2, false},
		{"falling starts", Neighbours{[]int32{0, 2, 1, 2}, []int32{1, 0}}, 3, false},
		{"unused index", Neighbours{[]int32{0, 1, 1}, []int32{1, 0}}, 2, false},
		{"first start", Neighbours{[]int32{1, 1, 2}, []int32{1, 0}}, 2, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.l.Check(c.n); (err == nil) != c.ok {
				t.Errorf("Check: %v, want ok %v", err, c.ok)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	l := &Neighbours{[]int32{0, 0, 7, 9}, []int32{0, 1, 2, 3, 4, 5, 6, 0, 1}}
	if got, want := fmt.Sprint(*l.Limit(3)), "{[0 0 3 5] [0 2 4 0 1]}"; got != want {
		t.Errorf("Limit(3) = %s, want %s", got, want)
	}
	if l.Limit(0) != l {
		t.Error("Limit(0) changed the lists")
	}
	if err := l.Limit(1).Check(3); err != nil {
		t.Error(err)
	}
}
