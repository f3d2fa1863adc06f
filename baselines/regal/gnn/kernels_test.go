package gnn

import (
	"math"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// Messages along edges and back, summed and averaged, against their definition,
// forward and backward. Row 3 has no edge, the last edge row is padding.
func TestMessages(t *testing.T) {
	l := &links{from: []int32{0, 0, 1, 2}, to: []int32{1, 2, 2, 1}}
	const n, m, h = 4, 5, 3
	for _, c := range []struct {
		name       string
		back, mean bool
	}{{"sum", false, false}, {"mean", false, true}, {"back", true, false}, {"back mean", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			for _, b := range nntest.Backends(t) {
				nntest.Check(t, b, nntest.Case{
					Shapes: [][]int{{n, h}, {n, h}, {m, h}},
					Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
						return g.Apply("messages", &messages{links: l, back: c.back, mean: c.mean}, n, h, g.Param(p[0]), g.Param(p[1]), g.Param(p[2]))
					},
					Reference: func(x, _ [][]float64) []float64 {
						out := make([]float64, n*h)
						for v := range int32(n) {
							count := 0.0
							for e := range l.from {
								end := l.to[e]
								if c.back {
									end = l.from[e]
								}
								if end != v {
									continue
								}
								count++
								for j := range int32(h) {
									out[v*h+j] += max(0, x[0][l.from[e]*h+j]+x[1][l.to[e]*h+j]+x[2][int32(e)*h+j])
								}
							}
							for j := range int32(h) {
								if c.mean && count > 0 {
									out[v*h+j] /= count
								}
							}
						}
						return out
					},
				})
			}
		})
	}
}

func TestGRU(t *testing.T) {
	const n, h = 3, 4
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, b := range nntest.Backends(t) {
		nntest.Check(t, b, nntest.Case{
			Shapes: [][]int{{n, 3 * h}, {n, 3 * h}, {n, h}},
			Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
				return g.Apply("gru", &gru{}, n, h, g.Param(p[0]), g.Param(p[1]), g.Param(p[2]))
			},
			Reference: func(x, _ [][]float64) []float64 {
				out := make([]float64, n*h)
				for i := range n {
					for j := range h {
						at := func(k, gate int) float64 { return x[k][i*3*h+gate*h+j] }
						r, u := logistic(at(0, 0)+at(1, 0)), logistic(at(0, 1)+at(1, 1))
						out[i*h+j] = (1-u)*math.Tanh(at(0, 2)+r*at(1, 2)) + u*x[2][i*h+j]
					}
				}
				return out
			},
		})
	}
}

func TestProducts(t *testing.T) {
	const n = 3
	for _, b := range nntest.Backends(t) {
		nntest.Check(t, b, nntest.Case{
			Shapes: [][]int{{n, 4}, {4, 2}, {n, 1}, {2}},
			Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
				return g.Apply("products", products{}, n, 2, g.Param(p[0]), g.Param(p[1]), g.Param(p[2]), g.Param(p[3]))
			},
			Reference: func(x, _ [][]float64) []float64 {
				out := make([]float64, n*2)
				for i := range n {
					for j := range 2 {
						for k := range 4 {
							out[i*2+j] += x[0][i*4+k] * x[1][k*2+j]
						}
						out[i*2+j] += x[2][i] * x[3][j]
					}
				}
				return out
			},
		})
	}
}
