package seq2seq

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/internal/faults"
	"placer/nn"
	"placer/nn/vec"
)

// Config describes a Network.
type Config struct {
	Features int // F, columns of an item
	Width    int // H, of the embedding, of both directions of the encoder together, and of the decoder; even
	Choices  int // A
	// Aligned adds the encoder's state at item t to the input of decoder step t. The
	// papers leave it to the attention to find the item a step is about, which takes
	// far more trials to learn.
	Aligned bool
}

// validate reports every fault of c.
func (c Config) validate() error {
	var all faults.List
	all.If(c.Features < 1 || c.Choices < 1, "seq2seq: %d features and %d choices, want at least 1", c.Features, c.Choices)
	all.If(c.Width < 2 || c.Width%2 != 0, "seq2seq: width is %d, want an even number", c.Width)
	return errors.Join(all...)
}

// Network holds the parameters.
type Network struct {
	config Config

	embed       nn.Affine
	ahead, back direction
	remember    nn.Affine // of both directions: what is attended to
	align       nn.Affine // of both directions, or its bias alone: into the decoder's gates
	told        *nn.Param
	decode      *nn.Param // [H,4H]
	query       nn.Affine
	choose      nn.Affine // of what was attended to and the decoder's state
}

// direction is one of the encoder's two LSTMs.
type direction struct {
	in nn.Affine
	wh *nn.Param
}

// New adds the parameters of a network to ps, with random weights. It panics if c
// is not valid.
func New(c Config, ps *nn.Params, r *rand.Rand) *Network {
	if err := c.validate(); err != nil {
		panic(err)
	}
	h, half := c.Width, c.Width/2
	n := &Network{config: c, embed: newAffine(ps, r, "embed", h, c.Features)}
	newDirection := func(name string) direction {
		return direction{newGates(ps, r, name, half, h), ps.Glorot(name+".h", r, half, 4*half)}
	}
	n.ahead, n.back = newDirection("ahead"), newDirection("back")
	n.remember = newAffine(ps, r, "remember", h, half, half)
	if c.Aligned {
		n.align = newGates(ps, r, "decoder", h, half, half)
	} else {
		n.align = nn.Affine{B: ps.Constant("decoder.b", 0, 1, 4*h)}
		forget(n.align.B, h)
	}
	n.told = ps.Glorot("told", r, c.Choices+1, 4*h)
	n.decode = ps.Glorot("decoder.h", r, h, 4*h)
	n.query = newAffine(ps, r, "query", h, h)
	n.choose = newAffine(ps, r, "choose", c.Choices, h, h)
	for _, w := range n.choose.W {
		vec.Scale(w.Value, outputScale)
	}
	return n
}

// outputScale makes the first policy nearly uniform.
const outputScale = 0.1

// newAffine adds a map of inputs of rows columns each to columns columns. Its bias comes before
// its weights, unlike Params.Affine's: in this order the gradient's norm is summed.
func newAffine(ps *nn.Params, r *rand.Rand, name string, columns int, rows ...int) nn.Affine {
	a := nn.Affine{B: ps.Constant(name+".b", 0, columns)}
	for i, n := range rows {
		a.W = append(a.W, ps.Glorot(fmt.Sprintf("%s.w%d", name, i), r, n, columns))
	}
	return a
}

// newGates is the input of an LSTM of h cells.
func newGates(ps *nn.Params, r *rand.Rand, name string, h int, rows ...int) nn.Affine {
	a := newAffine(ps, r, name, 4*h, rows...)
	forget(a.B, h)
	return a
}

// forget starts forget gates open, so that gradients reach far.
func forget(b *nn.Param, h int) {
	for i := h; i < 2*h; i++ {
		b.Value[i] = 1
	}
}

// encode adds the encoder over x [MT,F], M sequences, to g and returns what the
// decoder attends to, [MT,H], and what each item adds to the decoder's gates,
// [MT,4H], or [1,4H] where it is the same for all.
func (n *Network) encode(g *nn.Graph, x *nn.Node, sequences int) (memory, gates *nn.Node) {
	e := n.embed.Apply(g, nn.Identity, x)
	a := g.LSTM(n.ahead.in.Apply(g, nn.Identity, e), n.ahead.wh, sequences, false)
	b := g.LSTM(n.back.in.Apply(g, nn.Identity, e), n.back.wh, sequences, true)
	memory = n.remember.Apply(g, nn.Identity, a, b)
	if !n.config.Aligned {
		return memory, g.Param(n.align.B)
	}
	return memory, n.align.Apply(g, nn.Identity, a, b)
}

// logits adds the decoder of K sequences to g, told the choice before each step, [KT],
// and returns the logits, [KT,A].
func (n *Network) logits(g *nn.Graph, memory, gates *nn.Node, s Shape, told *[]int32) *nn.Node {
	d := g.LSTM(g.AddEmbedding(gates, n.told, s.Samples*s.Items, told), n.decode, s.Samples, false)
	seen := g.Attend(n.query.Apply(g, nn.Identity, d), memory, s.Samples, s.Sequences == 1)
	return n.choose.Apply(g, nn.Identity, seen, d)
}
