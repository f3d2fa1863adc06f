package workloads

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/units"
)

// Decoder is a decoder-only language model as it serves requests. It says of each part what
// it is and which module of Hugging Face's implementation it belongs to (transformers 5).
type Decoder struct {
	Hidden, Vocab int64
	Embedding     Embedding
	Blocks        []Block
	Norm          Norm // behind the blocks
	Head          Head
	DType         graph.DType
	// Stored returns what a parameter occupies where that is not its elements times the
	// type's size: quantized weights. It may be nil.
	Stored func(Weight) (units.Bytes, bool)
	// Multiplied returns the type that a product with a parameter is computed in where that
	// is not the model's own: activations are quantized too. It may be nil, and says nothing
	// of training.
	Multiplied func(Weight) (graph.DType, bool)
}

// Embedding looks tokens up, and positions where they are learnt.
type Embedding struct {
	Table     string // a module
	Positions string // "" where positions are not learnt
	Rows      int64  // of the positions' table
	Scaled    bool   // embeddings are multiplied by a number
	Norm      Norm
	PerLayer  *LayerTable
}

// LayerTable has an embedding of Columns for each layer, which is added to a projection of the
// token's embedding.
type LayerTable struct {
	Table, Projection string // modules
	Columns           int64  // of each layer
	Norm              Norm
}

// Head makes logits.
type Head struct {
	Path   string
	Tied   bool // its weights are the embedding's
	Bias   bool
	Scaled bool // logits are multiplied by a number
	Capped bool // a hyperbolic tangent bounds them
}

// Weight is a parameter: [in, out] of a product, [experts, in, out] of a mixture's.
type Weight struct {
	Module, Name string
	Shape        graph.Shape
	Product      bool // a linear layer's or experts', which quantizers take; no router's
}

// Serving is what one step of a Decoder works on.
type Serving struct {
	Batch int64 // sequences
	Seq   int64 // tokens of each that the step computes: 1 where it decodes
	Past  int64 // tokens of each whose keys and values are there already
	// Kept is the type in which keys and values are kept; F32: the model's own.
	Kept graph.DType
	// Scores says what becomes of those of attention.
	Scores Scores
	// Training says that the step ends with the mean cross entropy of every token's logits,
	// in f32 as transformers and torchtitan compute it.
	Training bool
}

// Validate reports the first size that is out of range.
func (d *Decoder) Validate() error {
	for _, s := range []size{{"layers", int64(len(d.Blocks)), 1, MaxLayers}, {"hidden size", d.Hidden, 1, 1 << 18}, {"vocabulary", d.Vocab, 1, 1 << 24}, {"positions", d.Embedding.Rows, 0, 1 << 24}} {
		if err := s.check(); err != nil {
			return err
		}
	}
	own := map[bool]bool{}
	for i := range d.Blocks {
		b := &d.Blocks[i]
		if err := b.validate(); err != nil {
			return err
		}
		local := b.Attention.Window > 0
		if b.Attention.Reuse && !own[local] {
			return fmt.Errorf("%s has no keys and values, nor has a layer of its kind before", b.Path)
		}
		own[local] = own[local] || b.attends()
	}
	return nil
}

// MaxLayers bounds the blocks of a Decoder.
const MaxLayers = 1024

// size is a number with its range.
type size struct {
	name      string
	x         int64
	low, high int64
}

func (s size) check() error { return between("number of "+s.name, s.x, s.low, s.high) }

// Step returns the graph of one forward step of d: a prefill where s.Past is 0, a
// decoding step where s.Seq is 1. The logits are of the last token of each sequence;
// where s.Training, of every token, and their loss is behind them.
// Keys and values of tokens before are resident, and co-located with the op that adds
// the step's own.
func (d *Decoder) Step(name string, s Serving) (*graph.Graph, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	for _, x := range []size{{"batch", s.Batch, 1, 1 << 16}, {"seq", s.Seq, 1, 1 << 20}, {"past", s.Past, 0, 1 << 24}} {
		if err := between(x.name, x.x, x.low, x.high); err != nil {
			return nil, err
		}
	}
	for i := range d.Blocks {
		switch b := &d.Blocks[i]; {
		case s.Training && b.Delta != nil:
			return nil, fmt.Errorf("%s is linear attention, of which no training step is built", b.Delta.Path)
		case s.Training && b.Scan != nil:
			return nil, fmt.Errorf("%s is a state space, of which no training step is built", b.Scan.Path)
		}
	}
	if s.Training && s.Past > 0 {
		return nil, fmt.Errorf("past is %d, want 0: a training step has no tokens before it", s.Past)
	}
	n := &serving{net: newNet(name, d.DType), d: d, s: s, own: map[bool]keysAndValues{}}
	n.forward()
	return n.b.Build()
}

// serving is a Decoder's step being built.
type serving struct {
	*net
	d    *Decoder
	s    Serving
	path string // of the module
	// group is the last co-location group.
	group  int32
	layers tensor                 // [B*S,layers,columns] of the table for each layer
	own    map[bool]keysAndValues // of the last layer that has its own, with a window or without
	chosen tensor                 // the tokens that each token of the present layer attends to, by the last indexer
}

// module runs f for the ops of the module of that path, in layer l.
func (n *serving) module(path string, l int, f func()) {
	first := n.b.NumOps()
	n.path, n.scope, n.layer = path, strings.ReplaceAll(path, ".", "/")+"/", int32(l)
	f()
	for i := first; i < n.b.NumOps(); i++ {
		if o := n.b.At(graph.OpID(i)); o.Module == "" {
			o.Module = path
		}
	}
}

// parameter adds a parameter of the module and its read.
func (n *serving) parameter(name string, product bool, dims ...int64) tensor {
	read := n.variable(name, dims...)
	if n.d.Stored == nil {
		return read
	}
	if size, ok := n.d.Stored(Weight{n.path, name, dims, product}); ok {
		v := n.variableOf(read)
		n.b.At(n.b.TensorAt(v).Producer).Resident = size
		n.b.TensorAt(v).Bytes, n.b.TensorAt(read).Bytes = size, size
	}
	return read
}

// times is y, the product with the module's parameter of that name and those dimensions,
// computed in the type that the parameter is multiplied in.
func (n *serving) times(y tensor, name string, dims ...int64) tensor {
	if n.d.Multiplied == nil || n.s.Training {
		return y
	}
	if t, ok := n.d.Multiplied(Weight{n.path, name, dims, true}); ok {
		n.b.At(n.b.TensorAt(y).Producer).DType = t
	}
	return y
}

// bytes is what x occupies.
func (n *serving) bytes(x tensor) units.Bytes {
	if t := n.b.TensorAt(x); t.Bytes >= 0 {
		return t.Bytes
	}
	return bytesOf(*n.b.TensorAt(x))
}

// linear is x, [R,in], times a weight of out columns, with a bias where there is one.
func (n *serving) linear(path string, l int, x tensor, out int64, bias bool) (y tensor) {
	n.module(path, l, func() {
		in := n.dim(x, 1)
		y = n.times(n.matmul(x, n.parameter("weight", true, in, out)), "weight", in, out)
		if bias {
			y = n.bias(y, n.parameter("bias", false, out))
		}
	})
	return y
}

// norm normalises the last dimension of x.
func (n *serving) norm(w Norm, l int, x tensor) (y tensor) {
	if w.Kind == "" {
		return x
	}
	n.module(w.Path, l, func() {
		in := []tensor{x}
		if w.Dims != nil {
			in = append(in, n.parameter("weight", false, w.Dims...))
		}
		if w.Bias {
			in = append(in, n.parameter("bias", false, w.Dims...))
		}
		y = n.op(w.Kind, n.like(x), in...)
	})
	return y
}

// scale multiplies x by a number.
func (n *serving) scale(x tensor) tensor { return n.binary("Mul", x, n.scalar()) }

func (n *serving) forward() {
	d, s := n.d, n.s
	var x, table tensor
	n.module(d.Embedding.Table, 1, func() {
		input := n.placeholder("input_ids", ints(s.Batch, s.Seq))
		table = n.parameter("weight", false, d.Vocab, d.Hidden)
		x = n.embed(table, n.reshape(input, s.Batch*s.Seq))
		if d.Embedding.Scaled {
			x = n.scale(x)
		}
	})
	if d.Embedding.Positions != "" {
		n.module(d.Embedding.Positions, 1, func() {
			rows := n.gather(n.parameter("weight", false, d.Embedding.Rows, d.Hidden), n.vector(int(s.Seq)))
			x = n.reshape(n.binary("Add", n.reshape(x, s.Batch, s.Seq, d.Hidden), rows), s.Batch*s.Seq, d.Hidden)
		})
	}
	x = n.norm(d.Embedding.Norm, 1, x)
	n.layerTable(x)
	for i := range d.Blocks {
		if d.Blocks[i].Attention.Reuse { // it and those behind it keep nothing of the others
			x = n.lastTokens(i+1, x)
		}
		x = n.block(&d.Blocks[i], i+1, x)
	}
	last := len(d.Blocks)
	x = n.lastTokens(last, x)
	x = n.norm(d.Norm, last, x)
	n.module(d.Head.Path, last, func() {
		if d.Head.Tied { // the product reads the table as it lies
			rows := n.dim(x, 0)
			x = n.product("MatMul", graph.GEMM{Batch: 1, M: rows, N: d.Vocab, K: d.Hidden}, n.of(rows, d.Vocab), x, table)
		} else {
			x = n.times(n.matmul(x, n.parameter("weight", true, d.Hidden, d.Vocab)), "weight", d.Hidden, d.Vocab)
		}
		if d.Head.Bias {
			x = n.bias(x, n.parameter("bias", false, d.Vocab))
		}
		if d.Head.Scaled {
			x = n.scale(x)
		}
		if d.Head.Capped {
			x = n.unary("Tanh", x)
		}
	})
	if s.Training {
		n.module("", last, func() {
			labels := n.placeholder("labels", ints(s.Batch, s.Seq))
			n.mean(n.crossEntropy(n.cast(x, graph.F32), n.reshape(labels, s.Batch*s.Seq)))
		})
	}
}

// block is a layer of x, [B*S,d].
func (n *serving) block(b *Block, l int, x tensor) tensor {
	add := func(x, y tensor) (z tensor) {
		n.module(b.Path, l, func() {
			if b.Scaled {
				y = n.scale(y)
			}
			z = n.binary("Add", x, y)
		})
		return z
	}
	in := n.norm(b.Before, l, x)
	var y tensor
	switch {
	case b.Delta != nil:
		y = n.delta(b.Delta, l, in)
	case b.Scan != nil:
		y = n.scan(b.Scan, l, in)
	case b.attends():
		y = n.attention(&b.Attention, l, in)
	default:
		return add(x, n.feedForward(b, l, x))
	}
	y = n.norm(b.After, l, y)
	if b.MLP.Path == "" {
		return add(x, y)
	}
	if !b.Parallel {
		x = add(x, y)
		x = add(x, n.feedForward(b, l, x))
		return n.perLayer(b, l, x, add)
	}
	if b.MLPBefore.Kind != "" {
		in = n.norm(b.MLPBefore, l, x)
	}
	return add(add(x, y), n.norm(b.MLPAfter, l, n.mlp(&b.MLP, l, in)))
}

// lastTokens goes on with the last token of each sequence of x, [B*S,d], alone, whose logits are
// wanted: those before are behind it from layer l on.
func (n *serving) lastTokens(l int, x tensor) (y tensor) {
	if n.s.Seq == 1 || n.s.Training {
		return x
	}
	root, _, _ := strings.Cut(n.d.Embedding.Table, ".")
	n.module(root, l, func() { y = n.gather(x, n.vector(int(n.s.Batch))) })
	n.s.Past, n.s.Seq = n.s.Past+n.s.Seq-1, 1
	return y
}

// feedForward is what a block's perceptron gives, and a mixture beside it.
func (n *serving) feedForward(b *Block, l int, x tensor) tensor {
	y := n.mlp(&b.MLP, l, n.norm(b.MLPBefore, l, x))
	if m := b.Beside; m != nil {
		y = n.norm(m.MLPAfter, l, y)
		z := n.norm(m.After, l, n.routed(&m.MLP, l, x, n.norm(m.Before, l, x)))
		n.module(b.Path, l, func() { y = n.binary("Add", y, z) })
	}
	return n.norm(b.MLPAfter, l, y)
}
