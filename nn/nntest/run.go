package nntest

import (
	"fmt"
	"testing"

	"placer/nn"
)

// Run checks every operation of package nn on b. Row counts cross the borders of
// the blocks and partial sums that work is cut into.
func Run(t *testing.T, b *nn.Backend) {
	for _, c := range cases() {
		t.Run(c.Name, func(t *testing.T) { Check(t, b, c) })
	}
}

func cases() (all []Case) {
	activations := []struct {
		name string
		a    nn.Activation
		f    func(float64) float64
	}{{"identity", nn.Identity, func(v float64) float64 { return v }}, {"relu", nn.Relu, Relu}, {"sigmoid", nn.Sigmoid, Sigmoid}}
	for _, act := range activations {
		for _, n := range []int{1, 7, 300, 2500} {
			all = append(all, linearCase(fmt.Sprintf("linear/%s/rows=%d", act.name, n), act.a, act.f, n, []int{5}, 9))
		}
		all = append(all, linearCase("linear/"+act.name+"/inputs=2", act.a, act.f, 261, []int{4, 11}, 8))
	}
	all = append(all, linearCase("linear/inputs=3", nn.Identity, activations[0].f, 17, []int{3, 1, 6}, 1))
	for _, d := range []int{1, 5, 25, 40} {
		all = append(all,
			Case{Name: fmt.Sprintf("norm/width=%d", d), Shapes: [][]int{{270, d}, {d}, {d}},
				Build: func(g *nn.Graph, p []*nn.Param) *nn.Node { return g.LayerNorm(p[1], p[2], g.Param(p[0])) },
				Reference: func(x, _ [][]float64) []float64 {
					return LayerNorm(x[0], x[1], x[2])
				}},
			Case{Name: fmt.Sprintf("norm/residual/width=%d", d), Shapes: [][]int{{270, d}, {270, d}, {d}, {d}},
				Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
					return g.LayerNorm(p[2], p[3], g.Param(p[0]), g.Param(p[1]))
				},
				Reference: func(x, _ [][]float64) []float64 {
					s := append([]float64(nil), x[0]...)
					for i, v := range x[1] {
						s[i] += v
					}
					return LayerNorm(s, x[2], x[3])
				}})
	}
	for _, n := range [][2]int{{5, 5}, {300, 300}, {5, 20}, {270, 810}} {
		all = append(all,
			Case{Name: fmt.Sprintf("mul/%d,%d", n[0], n[1]), Shapes: [][]int{{n[0], 6}, {n[1], 6}},
				Build: func(g *nn.Graph, p []*nn.Param) *nn.Node { return g.Mul(g.Param(p[0]), g.Param(p[1])) },
				Reference: func(x, _ [][]float64) []float64 {
					y := append([]float64(nil), x[1]...)
					for i := range y {
						y[i] *= x[0][i%len(x[0])]
					}
					return y
				}},
			Case{Name: fmt.Sprintf("add/%d,%d", n[0], n[1]), Shapes: [][]int{{n[0], 6}, {n[1], 6}},
				Build: func(g *nn.Graph, p []*nn.Param) *nn.Node { return g.AddRepeated(g.Param(p[1]), g.Param(p[0])) },
				Reference: func(x, _ [][]float64) []float64 {
					y := append([]float64(nil), x[1]...)
					for i := range y {
						y[i] += x[0][i%len(x[0])]
					}
					return y
				}},
			embeddingCase(n[0], n[1]))
	}
	for _, k := range []int{1, 3} {
		all = append(all, lstmCase(k, 1, 5, false), lstmCase(k, 9, 5, false), lstmCase(k, 9, 8, true), lstmCase(17, 4, 3, k == 1),
			attendCase(k, 7, 11, 5, true), attendCase(k, 7, 11, 5, false), attendCase(k, 1, 1, 3, false))
	}
	for _, n := range []int{1, 270} {
		all = append(all, concatCase(n), reshapeCase(n))
	}
	return append(all, meanCase(false), meanCase(true), maskCase("row", []bool{true, false, true}), maskCase("each", eachMask(20)), sharedCase())
}

func linearCase(name string, a nn.Activation, f func(float64) float64, n int, widths []int, d int) Case {
	c := Case{Name: name}
	for _, w := range widths {
		c.Shapes = append(c.Shapes, []int{n, w}, []int{w, d})
	}
	c.Shapes = append(c.Shapes, []int{d})
	c.Build = func(g *nn.Graph, p []*nn.Param) *nn.Node {
		var xs []*nn.Node
		var ws []*nn.Param
		for i := range widths {
			xs, ws = append(xs, g.Param(p[2*i])), append(ws, p[2*i+1])
		}
		return g.Linear(a, xs, ws, p[2*len(widths)])
	}
	c.Reference = func(x, _ [][]float64) []float64 {
		y := make([]float64, n*d)
		for i, w := range widths {
			for j, v := range MatMul(x[2*i], x[2*i+1], n, w, d) {
				y[j] += v
			}
		}
		return Map(AddRow(y, x[2*len(widths)]), f)
	}
	return c
}

func embeddingCase(n, rows int) Case {
	const d, table = 6, 4
	index := make([]int32, rows)
	for i := range index {
		index[i] = int32(i*7%(table+1)) - 1
	}
	return Case{Name: fmt.Sprintf("embedding/%d,%d", n, rows), Shapes: [][]int{{n, d}, {table, d}},
		Build: func(g *nn.Graph, p []*nn.Param) *nn.Node { return g.AddEmbedding(g.Param(p[0]), p[1], rows, &index) },
		Reference: func(x, _ [][]float64) []float64 {
			y := make([]float64, rows*d)
			for r := range rows {
				for c := range d {
					y[r*d+c] = x[0][r%n*d+c]
					if index[r] >= 0 {
						y[r*d+c] += x[1][int(index[r])*d+c]
					}
				}
			}
			return y
		}}
}

func meanCase(stop bool) Case {
	const n, d = 290, 5
	bounds := []int32{0, 3, 3, 270, n} // the second group is empty
	return Case{Name: fmt.Sprintf("mean/stop=%v", stop), Shapes: [][]int{{n, d}},
		Build: func(g *nn.Graph, p []*nn.Param) *nn.Node { return g.MeanRows(g.Param(p[0]), 4, &bounds, stop) },
		Reference: func(x, fixed [][]float64) []float64 {
			if stop {
				x = fixed
			}
			y := make([]float64, 4*d)
			for i := range 4 {
				for r := bounds[i]; r < bounds[i+1]; r++ {
					for c := range d {
						y[i*d+c] += x[0][int(r)*d+c] / float64(bounds[i+1]-bounds[i])
					}
				}
			}
			return y
		}}
}

// eachMask forbids a third of the entries of n of [n,3].
func eachMask(n int) []bool {
	m := make([]bool, 3*n)
	for i := range m {
		m[i] = i*5%7 > 1
	}
	return m
}

func maskCase(name string, allowed []bool) Case {
	return Case{Name: "mask/" + name, Shapes: [][]int{{40, 3}},
		Build: func(g *nn.Graph, p []*nn.Param) *nn.Node { return g.Mask(g.Param(p[0]), &allowed) },
		Reference: func(x, _ [][]float64) []float64 {
			y := append([]float64(nil), x[0]...)
			for i := range y {
				if !allowed[i%len(allowed)] {
					y[i] = nn.Masked
				}
			}
			return y
		}}
}

// concatCase has one input twice: its gradients add up.
func concatCase(n int) Case {
	return Case{Name: fmt.Sprintf("concat/rows=%d", n), Shapes: [][]int{{n, 3}, {n, 1}},
		Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
			return g.Concat(g.Param(p[0]), g.Param(p[1]), g.Param(p[0]))
		},
		Reference: func(x, _ [][]float64) (y []float64) {
			for r := range n {
				y = append(y, x[0][3*r:3*r+3]...)
				y = append(y, x[1][r])
				y = append(y, x[0][3*r:3*r+3]...)
			}
			return y
		}}
}

func reshapeCase(n int) Case {
	return Case{Name: fmt.Sprintf("reshape/rows=%d", n), Shapes: [][]int{{n, 6}, {3 * n, 2}},
		Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
			return g.Mul(g.Param(p[1]), g.Reshape(g.Param(p[0]), 3*n, 2))
		},
		Reference: func(x, _ [][]float64) []float64 {
			y := append([]float64(nil), x[0]...)
			for i := range y {
				y[i] *= x[1][i]
			}
			return y
		}}
}

// sharedCase uses a weight twice and a value three times: gradients add up.
func sharedCase() Case {
	const n, d = 30, 5
	return Case{Name: "shared", Shapes: [][]int{{n, d}, {d, d}, {d}},
		Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
			h := g.Linear(nn.Sigmoid, []*nn.Node{g.Param(p[0])}, p[1:2], p[2])
			y := g.Linear(nn.Sigmoid, []*nn.Node{h}, p[1:2], p[2])
			return g.Mul(h, g.AddRepeated(y, h))
		},
		Reference: func(x, _ [][]float64) []float64 {
			h := Map(AddRow(MatMul(x[0], x[1], n, d, d), x[2]), Sigmoid)
			y := Map(AddRow(MatMul(h, x[1], n, d, d), x[2]), Sigmoid)
			for i := range y {
				y[i] = h[i] * (y[i] + h[i])
			}
			return y
		}}
}
