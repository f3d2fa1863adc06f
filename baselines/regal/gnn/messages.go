package gnn

import (
	"fmt"

	"placer/nn"
	"placer/nn/vec"
)

// links are the edges of the graph that a compiled network works on now. Rows of
// its matrices behind them are padding.
type links struct{ from, to []int32 }

// messages sums the hidden layer of messages at one end of each edge e = (u,v):
//
//	out[v] = Σ_e relu(a[u] + b[v] + c[e]), at v the target, with back at the source
//
// or with mean their mean. a, b and out are [N,H], c is [M,H].
type messages struct {
	links      *links
	back, mean bool

	active []float32 // [M,H] what the rectifier lets through, 0 where it is shut
	degree []float32 // [N]
}

func (k *messages) end(e int) int32 {
	if k.back {
		return k.links.from[e]
	}
	return k.links.to[e]
}

func (k *messages) Forward(c *nn.Context, in []nn.Mat, out nn.Mat) {
	a, b, x := in[0], in[1], in[2]
	m, h := len(k.links.from), out.D
	if m > x.N {
		panic(fmt.Sprintf("gnn: %d edges in %s", m, x))
	}
	k.degree = resize(k.degree, out.N)
	clear(k.degree)
	clear(out.V)
	active := c.Kept(&k.active, nn.FirstFreeKey, x.N*h)
	zero := c.Shared(nn.FirstFreeKey+1, h)
	clear(zero)
	for e := range m {
		z := active[e*h : e*h+h]
		vec.Add(z, a.Row(int(k.links.from[e])), b.Row(int(k.links.to[e])))
		vec.Add(z, z, x.Row(e))
		vec.ReluBias(z, zero)
		v := int(k.end(e))
		vec.Add(out.Row(v), out.Row(v), z)
		k.degree[v]++
	}
	if k.mean {
		for v, n := range k.degree {
			vec.Scale(out.Row(v), 1/max(n, 1))
		}
	}
}

func (k *messages) Backward(c *nn.Context, _ []nn.Mat, _, grad nn.Mat, din []nn.Mat) {
	h := grad.D
	clear(din[0].V)
	clear(din[1].V)
	clear(din[2].V)
	scaled := c.Shared(nn.FirstFreeKey+2, h)
	for e := range k.links.from {
		v := int(k.end(e))
		copy(scaled, grad.Row(v))
		if k.mean {
			vec.Scale(scaled, 1/k.degree[v])
		}
		dz := din[2].Row(e)
		vec.ReluBack(dz, k.active[e*h:e*h+h], scaled)
		from, to := din[0].Row(int(k.links.from[e])), din[1].Row(int(k.links.to[e]))
		vec.Add(from, from, dz)
		vec.Add(to, to, dz)
	}
}

func resize(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n)
	}
	return x[:n]
}
