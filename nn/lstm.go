package nn

import (
	"fmt"

	"placer/nn/vec"
)

// LSTM runs a long short-term memory (Hochreiter and Schmidhuber, 1997, with the
// forget gate of Gers et al., 2000) over sequences side by side, each from a
// state of zero, and returns the outputs, [KT,H]. z [KT,4H] is what the inputs
// add to the gates, biases included: a Linear of them. wh [H,4H] is what the
// output of the step before adds. Rows k T up to (k+1) T are sequence k; with
// reverse, the last row comes first. Columns are the gates i, f, o and the
// candidate g, H each:
//
//	c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')
func (g *Graph) LSTM(z *Node, wh *Param, sequences int, reverse bool) *Node {
	s, h := z.Shape(), wh.Shape[0]
	if sequences < 1 || s[0]%sequences != 0 || s[1] != 4*h || wh.Shape[1] != 4*h {
		panic(fmt.Sprintf("nn: LSTM over %v in %d sequences with weights %v", s, sequences, wh.Shape))
	}
	return g.Apply("lstm", &lstm{sequences: sequences, reverse: reverse}, s[0], h, z, g.Param(wh))
}

type lstm struct {
	sequences int
	reverse   bool

	gates   []float32 // [KT,4H] sigmoid of i, f and o, tanh of g
	cell    []float32 // [KT,H]
	squeeze []float32 // [KT,H] tanh of cell
}

// at returns the row, within a sequence of n, of step t.
func (k *lstm) at(t, n int) int {
	if k.reverse {
		return n - 1 - t
	}
	return t
}

func (k *lstm) Forward(c *Context, in []Mat, out Mat) {
	z, wh := in[0], in[1]
	h, n := out.D, out.N/k.sequences
	gates := c.Kept(&k.gates, keyGrad, z.N*4*h)
	cell := c.Kept(&k.cell, keyBias, z.N*h)
	squeeze := c.Kept(&k.squeeze, keyWeight0, z.N*h)
	zero := c.Shared(keyWeight1, 3*h)
	clear(zero)
	copy(gates, z.V)
	for t := range n {
		r := k.at(t, n)
		if t > 0 {
			before := k.at(t-1, n)
			c.Gemm(false, false, k.sequences, 4*h, h, out.V[before*h:], n*h, wh.V, 4*h, 1, gates[r*4*h:], n*4*h)
		}
		for s := range k.sequences {
			row := s*n + r
			var last []float32
			if t > 0 {
				b := s*n + k.at(t-1, n)
				last = cell[b*h : b*h+h]
			}
			LSTMStep(gates[row*4*h:row*4*h+4*h], last, cell[row*h:row*h+h], squeeze[row*h:row*h+h], out.Row(row), zero)
		}
	}
}

// LSTMStep advances one state: it turns the sums of the gates, [4H], into the
// gates, and writes the cell, its tanh and the output, [H] each. last is the cell
// before, nil for zero; zero are 3H zeros.
func LSTMStep(gates, last, cell, squeeze, out, zero []float32) {
	h := len(out)
	vec.SigmoidBias(gates[:3*h], zero)
	g := gates[3*h : 4*h]
	tanh(g, zero)
	vec.Mul(cell, gates[:h], g)
	if last != nil {
		vec.MulAdd(cell, gates[h:2*h], last)
	}
	copy(squeeze, cell)
	tanh(squeeze, zero)
	vec.Mul(out, gates[2*h:3*h], squeeze)
}

// tanh replaces x by tanh(x) = 2 sigmoid(2x) - 1; zero has at least its length.
func tanh(x, zero []float32) {
	vec.Scale(x, 2)
	vec.SigmoidBias(x, zero[:len(x)])
	vec.Normalize(x, x, 0.5, 2)
}

func (k *lstm) Backward(c *Context, in []Mat, out, grad Mat, din []Mat) {
	z, wh := in[0], in[1]
	h, n := out.D, out.N/k.sequences
	dz := din[0].V
	if dz == nil {
		dz = c.Shared(keyGrad, z.N*4*h)
	}
	dh, dc := c.Shared(keyBias, k.sequences*h), c.Shared(keyWeight0, k.sequences*h)
	clear(dh)
	clear(dc)
	for t := n - 1; t >= 0; t-- {
		r := k.at(t, n)
		for s := range k.sequences {
			row := s*n + r
			var last []float32
			if t > 0 {
				b := s*n + k.at(t-1, n)
				last = k.cell[b*h : b*h+h]
			}
			own := dh[s*h : s*h+h]
			vec.Add(own, own, grad.Row(row))
			lstmStepBack(k.gates[row*4*h:row*4*h+4*h], last, k.squeeze[row*h:row*h+h], own, dc[s*h:s*h+h], dz[row*4*h:row*4*h+4*h])
		}
		if t > 0 {
			c.Gemm(false, true, k.sequences, h, 4*h, dz[r*4*h:], n*4*h, wh.V, 4*h, 0, dh, h)
		}
	}
	if din[1].V == nil {
		return
	}
	// Outputs meet the gates of the next step: one row later, or earlier.
	from, to := 0, 1
	if k.reverse {
		from, to = 1, 0
	}
	clear(din[1].V)
	for s := range k.sequences {
		if n > 1 {
			a, b := (s*n+from)*h, (s*n+to)*4*h
			c.Gemm(true, false, h, 4*h, n-1, out.V[a:a+(n-1)*h], h, dz[b:b+(n-1)*4*h], 4*h, 1, din[1].V, 4*h)
		}
	}
}

// lstmStepBack writes the gradient of the sums of the gates into dz, given that
// of the output, dh, and of the cell, dc, which it replaces by that of the cell
// before.
func lstmStepBack(gates, last, squeeze, dh, dc, dz []float32) {
	h := len(dh)
	i, f, o, g := gates[:h], gates[h:2*h], gates[2*h:3*h], gates[3*h:4*h]
	di, df, do, dg := dz[:h], dz[h:2*h], dz[2*h:3*h], dz[3*h:4*h]
	for j := range dh {
		q := squeeze[j]
		d := dc[j] + dh[j]*o[j]*(1-q*q)
		do[j] = dh[j] * q * o[j] * (1 - o[j])
		di[j] = d * g[j] * i[j] * (1 - i[j])
		dg[j] = d * i[j] * (1 - g[j]*g[j])
		df[j] = 0
		if last != nil {
			df[j] = d * last[j] * f[j] * (1 - f[j])
		}
		dc[j] = d * f[j]
	}
}
