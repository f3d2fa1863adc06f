package nntest

import (
	"fmt"
	"math"

	"placer/nn"
)

// lstmCase runs k sequences of n steps through h cells.
func lstmCase(k, n, h int, reverse bool) Case {
	return Case{Name: fmt.Sprintf("lstm/%dx%d/width=%d/reverse=%v", k, n, h, reverse), Shapes: [][]int{{k * n, 4 * h}, {h, 4 * h}},
		Build: func(g *nn.Graph, p []*nn.Param) *nn.Node { return g.LSTM(g.Param(p[0]), p[1], k, reverse) },
		Reference: func(x, _ [][]float64) []float64 {
			y := make([]float64, k*n*h)
			for s := range k {
				cell, out := make([]float64, h), make([]float64, h)
				for t := range n {
					r := s*n + t
					if reverse {
						r = s*n + n - 1 - t
					}
					z := MatMul(out, x[1], 1, h, 4*h)
					for j := range z {
						z[j] += x[0][r*4*h+j]
					}
					for j := range h {
						cell[j] = Sigmoid(z[h+j])*cell[j] + Sigmoid(z[j])*math.Tanh(z[3*h+j])
						out[j] = Sigmoid(z[2*h+j]) * math.Tanh(cell[j])
					}
					copy(y[r*h:], out)
				}
			}
			return y
		}}
}

// attendCase lets k sequences of n queries attend to memories of m rows.
func attendCase(k, n, m, d int, shared bool) Case {
	rows := k * m
	if shared {
		rows = m
	}
	return Case{Name: fmt.Sprintf("attend/%dx%d/memory=%d/width=%d/shared=%v", k, n, m, d, shared), Shapes: [][]int{{k * n, d}, {rows, d}},
		Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
			return g.Attend(g.Param(p[0]), g.Param(p[1]), k, shared)
		},
		Reference: func(x, _ [][]float64) []float64 {
			y := make([]float64, k*n*d)
			for r := range k * n {
				mem := x[1]
				if !shared {
					mem = mem[r/n*m*d : (r/n+1)*m*d]
				}
				p := Softmax(MatMul(mem, x[0][r*d:r*d+d], m, d, 1))
				copy(y[r*d:], MatMul(p, mem, 1, m, d))
			}
			return y
		}}
}
