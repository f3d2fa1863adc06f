package workloads

import (
	"placer/graph"
	"placer/units"
)

// padding is how a window treats the border.
type padding bool

const (
	same  padding = true  // output of ceil(size/stride)
	valid padding = false // only whole windows
)

// windows returns the number of windows of size k along d.
func (p padding) windows(d, k, stride int64) int64 {
	if p == same {
		return (d + stride - 1) / stride
	}
	return (d-k)/stride + 1
}

// conv2d convolves x, [B,Y,X,C], with w, [KY,KX,C,O], giving [B,Y',X',O].
func (n *net) conv2d(x, w tensor, stride int64, p padding) tensor {
	a, k := n.shape(x), n.shape(w)
	mustEqual("convolution", a, k, len(a) == 4 && len(k) == 4 && a[3] == k[2])
	y, z := p.windows(a[1], k[0], stride), p.windows(a[2], k[1], stride)
	m := graph.GEMM{Batch: 1, M: a[0] * y * z, N: k[3], K: k[0] * k[1] * k[2]}
	return n.product("Conv2D", m, n.of(a[0], y, z, k[3]), x, w)
}

// pool applies MaxPool or AvgPool with square windows of size k.
func (n *net) pool(kind graph.Kind, x tensor, k, stride int64, p padding) tensor {
	a := n.shape(x)
	y := n.op(kind, n.of(a[0], p.windows(a[1], k, stride), p.windows(a[2], k, stride), a[3]), x)
	n.b.At(n.b.TensorAt(y).Producer).FLOPs = units.FLOPs(k * k * n.elements(y))
	return y
}
