package transformerxl

import (
	"math/rand/v2"

	"placer/nn"
)

// attend is multi-head attention with its output projection.
type attend struct {
	heads   int
	in, out nn.Affine
}

// newAttend returns nil where the configuration has no attention.
func newAttend(c Config, ps *nn.Params, r *rand.Rand, name string) *attend {
	if !c.Attention {
		return nil
	}
	return &attend{c.Heads, ps.Affine(name+".qkv", r, c.Width, 3*c.Heads*c.HeadWidth), ps.Affine(name+".out", r, c.Heads*c.HeadWidth, c.Width)}
}

func (a *attend) apply(g *nn.Graph, x *nn.Node, s *[]Segment) *nn.Node {
	return a.out.Apply(g, nn.Identity, Attention(g, x, a.in.W[0], a.in.B, a.heads, s))
}

// layer is one Transformer-XL layer: attention, unless there is none, and a
// feed-forward network, each followed by a residual connection and layer
// normalisation.
type layer struct {
	attend         *attend
	norm1, norm2   nn.Norm
	inner, outward nn.Affine
}

func newLayer(c Config, ps *nn.Params, r *rand.Rand, name string) layer {
	l := layer{
		attend:  newAttend(c, ps, r, name+".attention"),
		inner:   ps.Affine(name+".inner", r, c.Width, c.Inner),
		outward: ps.Affine(name+".outward", r, c.Inner, c.Width),
		norm2:   ps.Norm(name+".norm2", c.Width),
	}
	if l.attend != nil {
		l.norm1 = ps.Norm(name+".norm1", c.Width)
	}
	return l
}

// apply adds the layer to g. dense, if not nil, modulates the input of the
// feed-forward network.
func (l layer) apply(g *nn.Graph, x, dense *nn.Node, s *[]Segment) *nn.Node {
	h := x
	if l.attend != nil {
		h = l.norm1.Apply(g, x, l.attend.apply(g, x, s))
	}
	y := h
	if dense != nil {
		y = g.Mul(dense, h)
	}
	return l.norm2.Apply(g, h, l.outward.Apply(g, nn.Identity, l.inner.Apply(g, nn.Relu, y)))
}
