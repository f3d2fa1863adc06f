package transformerxl

import (
	"math/rand/v2"

	"placer/nn"
)

// affine is a weight matrix with its bias.
type affine struct {
	w []*nn.Param
	b *nn.Param
}

func newAffine(ps *nn.Params, r *rand.Rand, name string, rows, columns int) affine {
	return affine{[]*nn.Param{ps.Glorot(name+".w", r, rows, columns)}, ps.Constant(name+".b", 0, columns)}
}

func (a affine) apply(g *nn.Graph, f nn.Activation, x *nn.Node) *nn.Node {
	return g.Linear(f, []*nn.Node{x}, a.w, a.b)
}

type norm struct{ gain, bias *nn.Param }

func newNorm(ps *nn.Params, name string, d int) norm {
	return norm{ps.Constant(name+".gain", 1, d), ps.Constant(name+".bias", 0, d)}
}

func (n norm) apply(g *nn.Graph, xs ...*nn.Node) *nn.Node { return g.LayerNorm(n.gain, n.bias, xs...) }

// attend is multi-head attention with its output projection.
type attend struct {
	heads   int
	in, out affine
}

// newAttend returns nil where the configuration has no attention.
func newAttend(c Config, ps *nn.Params, r *rand.Rand, name string) *attend {
	if !c.Attention {
		return nil
	}
	return &attend{c.Heads, newAffine(ps, r, name+".qkv", c.Width, 3*c.Heads*c.HeadWidth), newAffine(ps, r, name+".out", c.Heads*c.HeadWidth, c.Width)}
}

func (a *attend) apply(g *nn.Graph, x *nn.Node, s *[]Segment) *nn.Node {
	return a.out.apply(g, nn.Identity, Attention(g, x, a.in.w[0], a.in.b, a.heads, s))
}

// layer is one Transformer-XL layer: attention, unless there is none, and a
// feed-forward network, each followed by a residual connection and layer
// normalisation.
type layer struct {
	attend         *attend
	norm1, norm2   norm
	inner, outward affine
}

func newLayer(c Config, ps *nn.Params, r *rand.Rand, name string) layer {
	l := layer{
		attend:  newAttend(c, ps, r, name+".attention"),
		inner:   newAffine(ps, r, name+".inner", c.Width, c.Inner),
		outward: newAffine(ps, r, name+".outward", c.Inner, c.Width),
		norm2:   newNorm(ps, name+".norm2", c.Width),
	}
	if l.attend != nil {
		l.norm1 = newNorm(ps, name+".norm1", c.Width)
	}
	return l
}

// apply adds the layer to g. dense, if not nil, modulates the input of the
// feed-forward network.
func (l layer) apply(g *nn.Graph, x, dense *nn.Node, s *[]Segment) *nn.Node {
	h := x
	if l.attend != nil {
		h = l.norm1.apply(g, x, l.attend.apply(g, x, s))
	}
	y := h
	if dense != nil {
		y = g.Mul(dense, h)
	}
	return l.norm2.apply(g, h, l.outward.apply(g, nn.Identity, l.inner.apply(g, nn.Relu, y)))
}
