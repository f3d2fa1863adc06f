package transformerxl

import (
	"fmt"
	"math"

	"placer/nn"
	"placer/nn/vec"
)

// Attention adds multi-head attention within segments to g: x [N,e] is projected
// by w [e,3hd] and b [3hd] to queries, keys and values of heads heads of width d
// (columns: all queries, all keys, all values), and the result is softmax(q k' /
// sqrt(d)) v, [N,hd]. Segments are read at each run and must cover all rows.
//
// The gradient through the keys and values of memory rows reaches w and b but
// not x.
func Attention(g *nn.Graph, x *nn.Node, w, b *nn.Param, heads int, segments *[]Segment) *nn.Node {
	if w.Shape[1]%(3*heads) != 0 {
		panic(fmt.Sprintf("transformerxl: %d columns for queries, keys and values of %d heads", w.Shape[1], heads))
	}
	k := &attention{heads: heads, width: w.Shape[1] / (3 * heads), segments: segments}
	return g.Apply("attention", k, x.Shape()[0], k.heads*k.width, x, g.Param(w), g.Param(b))
}

// attention takes x, W, b. A row of qkv holds 3 heads width columns.
type attention struct {
	heads, width int
	segments     *[]Segment
	qkv          nn.Mat // of the current run
	kept         []float32
	// lse [N,heads] is the logarithm of each softmax's denominator. With it the
	// backward pass computes the probabilities again instead of keeping them.
	lse []float32
}

// Scratch keys: Shared, OfWorker and OfPiece.
const (
	keyProjected  = nn.FirstFreeKey // Shared: gradient of qkv
	keyMemory     = keyProjected + 1
	keyProb       = nn.FirstFreeKey // OfWorker
	keyProbGrad   = keyProb + 1
	keyWeight     = nn.FirstFreeKey // OfPiece
	keyWeightBias = keyWeight + 1
)

func (k *attention) scale() float32 { return float32(1 / math.Sqrt(float64(k.width))) }

// item splits a work item into its segment and head, the first rows of the
// segment and of its memory, and their numbers of rows.
func (k *attention) item(i int) (head, lo, mem, n, m int) {
	s := (*k.segments)[i/k.heads]
	return i % k.heads, int(s.Low), int(s.Memory), int(s.High - s.Low), int(s.High - s.Memory)
}

func (k *attention) Forward(c *nn.Context, in []nn.Mat, out nn.Mat) {
	k.qkv = nn.Mat{N: out.N, D: in[1].D, V: c.Kept(&k.kept, keyProjected, out.N*in[1].D)}
	lse := c.Kept(&k.lse, keyMemory, out.N*k.heads)
	nn.LinearForward(c, nn.Identity, in[:1], in[1:2], in[2].V, k.qkv)
	all, row, qkv, e, scale := k.heads*k.width, k.qkv.D, k.qkv.V, k.width, k.scale()
	c.Each(len(*k.segments)*k.heads, func(worker, i int) {
		h, lo, mem, n, m := k.item(i)
		p := c.OfWorker(worker, keyProb, n*m)
		c.Gemm(false, true, n, m, e, qkv[lo*row+h*e:], row, qkv[mem*row+all+h*e:], row, 0, p, m)
		for r := range n {
			x := p[r*m : r*m+m]
			top := vec.Max(x) * scale
			sum := vec.ExpShiftSum(x, x, scale, top)
			vec.Scale(x, 1/sum)
			lse[(lo+r)*k.heads+h] = top + float32(math.Log(float64(sum)))
		}
		c.Gemm(false, false, n, e, m, p, m, qkv[mem*row+2*all+h*e:], row, 0, out.V[lo*all+h*e:], all)
	})
}

func (k *attention) Backward(c *nn.Context, in []nn.Mat, out, grad nn.Mat, din []nn.Mat) {
	all, row, qkv, e, scale := k.heads*k.width, k.qkv.D, k.qkv.V, k.width, k.scale()
	d := c.Shared(keyProjected, len(qkv))      // gradient that reaches x
	dMem := c.Shared(keyMemory, k.qkv.N*2*all) // gradient of memory keys and values
	clear(dMem)
	c.Each(len(*k.segments)*k.heads, func(worker, i int) {
		h, lo, mem, n, m := k.item(i)
		past := lo - mem
		p, dp := c.OfWorker(worker, keyProb, n*m), c.OfWorker(worker, keyProbGrad, n*m)
		q, key, value, do := qkv[lo*row+h*e:], qkv[mem*row+all+h*e:], qkv[mem*row+2*all+h*e:], grad.V[lo*all+h*e:]
		c.Gemm(false, true, n, m, e, q, row, key, row, 0, p, m)
		for r := range n {
			x := p[r*m : r*m+m]
			vec.ExpShiftSum(x, x, scale, k.lse[(lo+r)*k.heads+h])
		}
		c.Gemm(true, false, n, e, n, p[past:], m, do, all, 0, d[lo*row+2*all+h*e:], row)
		c.Gemm(false, true, n, m, e, do, all, value, row, 0, dp, m)
		for r := range n {
			x, o := dp[r*m:r*m+m], (lo+r)*all+h*e
			vec.SoftmaxBack(x, p[r*m:r*m+m], x, vec.Dot(grad.V[o:o+e], out.V[o:o+e]), scale)
		}
		if past > 0 {
			// p is still needed for the values of memory, dp for its keys.
			c.Gemm(true, false, past, e, n, p, m, do, all, 0, dMem[mem*2*all+all+h*e:], 2*all)
			c.Gemm(true, false, past, e, n, dp, m, q, row, 0, dMem[mem*2*all+h*e:], 2*all)
		}
		c.Gemm(false, false, n, e, m, dp, m, key, row, 0, d[lo*row+h*e:], row)
		c.Gemm(true, false, n, e, n, dp[past:], m, q, row, 0, d[lo*row+all+h*e:], row)
	})
	k.project(c, in, d, dMem, din)
}

// project takes the gradients of qkv through the projection. dx is computed
// before the gradient of memory joins, which so reaches the weights only.
func (k *attention) project(c *nn.Context, in []nn.Mat, d, dMem []float32, din []nn.Mat) {
	x, w, row, all := in[0], in[1], k.qkv.D, k.heads*k.width
	c.Rows(x.N, func(_, piece int, first bool, lo, hi int) {
		if din[0].V != nil {
			c.Gemm(false, true, hi-lo, x.D, row, d[lo*row:hi*row], row, w.V, row, 0, din[0].V[lo*x.D:hi*x.D], x.D)
		}
		bias := c.OfPiece(piece, keyWeightBias, row)
		beta := float32(1)
		if first {
			clear(bias)
			beta = 0
		}
		for r := lo; r < hi; r++ {
			kv := d[r*row+all : (r+1)*row]
			vec.Add(kv, kv, dMem[r*2*all:(r+1)*2*all])
			vec.Add(bias, bias, d[r*row:(r+1)*row])
		}
		c.Gemm(true, false, x.D, row, hi-lo, x.V[lo*x.D:hi*x.D], x.D, d[lo*row:hi*row], row, beta, c.OfPiece(piece, keyWeight, x.D*row), row)
	})
	c.SumPieces(x.N, keyWeight, din[1].V)
	c.SumPieces(x.N, keyWeightBias, din[2].V)
}

// AttentionOp is Attention in an nn.Program; its inputs are x, w, b.
type AttentionOp struct {
	Heads, Width int
	Segments     *[]Segment
}

// Describe is as nn.Described says.
func (k *attention) Describe() any { return AttentionOp{k.heads, k.width, k.segments} }
