package gnn

import (
	"math"

	"placer/nn"
	"placer/nn/vec"
)

// gru updates a state (Cho et al., 2014, with the reset gate behind the product):
//
//	r = sigmoid(x0 + y0), u = sigmoid(x1 + y1), n = tanh(x2 + r y2)
//	h' = (1-u) n + u h
//
// x and y are [N,3H], linear in the input and in the state; h and h' are [N,H].
type gru struct{ gates []float32 } // [N,3H]

func (k *gru) Forward(c *nn.Context, in []nn.Mat, out nn.Mat) {
	h := out.D
	gates := c.Kept(&k.gates, nn.FirstFreeKey, out.N*3*h)
	for i := range out.N {
		x, y, s, to, g := in[0].Row(i), in[1].Row(i), in[2].Row(i), out.Row(i), gates[i*3*h:]
		for j := range h {
			r, u := vec.Sigmoid(x[j]+y[j]), vec.Sigmoid(x[h+j]+y[h+j])
			n := tanh(x[2*h+j] + r*y[2*h+j])
			g[j], g[h+j], g[2*h+j] = r, u, n
			to[j] = n + u*(s[j]-n)
		}
	}
}

func (k *gru) Backward(_ *nn.Context, in []nn.Mat, _, grad nn.Mat, din []nn.Mat) {
	h := grad.D
	for i := range grad.N {
		y, s, d, g := in[1].Row(i), in[2].Row(i), grad.Row(i), k.gates[i*3*h:]
		dx, dy, ds := din[0].Row(i), din[1].Row(i), din[2].Row(i)
		for j := range h {
			r, u, n := g[j], g[h+j], g[2*h+j]
			dn := d[j] * (1 - u) * (1 - n*n)
			du := d[j] * (s[j] - n) * u * (1 - u)
			dr := dn * y[2*h+j] * r * (1 - r)
			dx[j], dx[h+j], dx[2*h+j] = dr, du, dn
			dy[j], dy[h+j], dy[2*h+j] = dr, du, dn*r
			ds[j] = d[j] * u
		}
	}
}

func tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }
