package gnn

import "placer/nn"

// products adds matrix products: inputs x1, w1, x2, w2, ... give Σ xi wi. A
// vector w, [1,O], is one row.
type products struct{}

func (products) Forward(c *nn.Context, in []nn.Mat, out nn.Mat) {
	for i := 0; i < len(in); i += 2 {
		x, w := in[i], in[i+1]
		beta := float32(1)
		if i == 0 {
			beta = 0
		}
		c.Gemm(false, false, out.N, out.D, x.D, x.V, x.D, w.V, w.D, beta, out.V, out.D)
	}
}

func (products) Backward(c *nn.Context, in []nn.Mat, _, grad nn.Mat, din []nn.Mat) {
	for i := 0; i < len(in); i += 2 {
		x, w := in[i], in[i+1]
		if dx := din[i]; dx.V != nil {
			c.Gemm(false, true, x.N, x.D, grad.D, grad.V, grad.D, w.V, w.D, 0, dx.V, dx.D)
		}
		if dw := din[i+1]; dw.V != nil {
			c.Gemm(true, false, x.D, grad.D, x.N, x.V, x.D, grad.V, grad.D, 0, dw.V, dw.D)
		}
	}
}
