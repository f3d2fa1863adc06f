package workloads

import (
	"errors"
	"fmt"
	"slices"

	"placer/graph"
	"placer/graph/train"
)

// TransformerXLConfig describes Transformer-XL (Dai et al., Transformer-XL:
// Attentive Language Models beyond a Fixed-Length Context): a sequence is cut
// into segments; every layer attends to the segment and, without gradient, to
// the layer's input in the segment before, with relative positions.
type TransformerXLConfig struct {
	Layers   int
	Batch    int
	Sequence int // a multiple of Segment
	Segment  int // also the length of the memory
	Hidden   int
	FFN      int
	Heads    int
	HeadDim  int
	Vocab    int
	// Dropout puts a dropout op behind the attention and behind the feed-forward
	// part.
	Dropout bool
	Train   train.Config
}

// DefaultTransformerXL returns the papers' setting for a number of layers.
func DefaultTransformerXL(layers int) TransformerXLConfig {
	return TransformerXLConfig{Layers: layers, Batch: 64, Sequence: 256, Segment: 64, Hidden: 500, FFN: 1000, Heads: 10, HeadDim: 50, Vocab: 10000, Dropout: true,
		Train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}
}

// Validate reports every fault of c.
func (c TransformerXLConfig) Validate() error {
	errs := []error{between("layers", c.Layers, 1, 1024), between("batch", c.Batch, 1, 1<<16), between("sequence", c.Sequence, 1, 1<<20),
		between("segment", c.Segment, 1, 1<<16), between("hidden", c.Hidden, 2, 1<<16), between("ffn", c.FFN, 1, 1<<20), between("heads", c.Heads, 1, 1<<12),
		between("head_dim", c.HeadDim, 1, 1<<12), between("vocab", c.Vocab, 2, 1<<28), c.Train.Validate()}
	if c.Segment > 0 && c.Sequence%c.Segment != 0 {
		errs = append(errs, fmt.Errorf("sequence of %d is no multiple of the segment, %d", c.Sequence, c.Segment))
	} else if c.Segment > 0 {
		errs = append(errs, between("layers * sequence / segment", c.Layers*(c.Sequence/c.Segment), 1, 1<<13))
	}
	if c.Hidden%2 != 0 {
		errs = append(errs, fmt.Errorf("hidden is %d, want an even number", c.Hidden))
	}
	return errors.Join(errs...)
}

// TransformerXL returns the training graph of c. Layer l of the model is layer
// l; the embedding belongs to the first, the softmax to the last.
func TransformerXL(c TransformerXLConfig) (*graph.Graph, error) {
	return c.generate(fmt.Sprintf("trfxl%d", c.Layers))
}

// Build returns TransformerXL(c).
func (c TransformerXLConfig) Build() (*graph.Graph, error) { return TransformerXL(c) }

func (c TransformerXLConfig) generate(name string) (*graph.Graph, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("transformer-xl: %w", err)
	}
	n := newNet(name, graph.F32)
	n.dynamic = !c.Train.StaticShapes
	c.forward(n)
	return n.training(c.Train)
}

func trfxlSpecs() (specs []Spec) {
	for _, layers := range []int{2, 4, 8} {
		s := Spec{Name: fmt.Sprintf("trfxl%d", layers), Family: "trfxl", Layers: layers, GPUs: layers,
			Note:   "vocabulary 10,000 with a full softmax, four segments a step",
			params: DefaultTransformerXL(layers)}
		if layers == 2 {
			s.PublishedOps = 2618
		}
		specs = append(specs, s)
	}
	return specs
}

// xlLayer are the variables of a layer and what its segments share.
type xlLayer struct {
	query, keyValue, out tensor // [d,A], [d,2A], [A,d] with A = heads * head_dim
	content, position    tensor // [N,1,1,D] biases of the query
	relative             tensor // [N,2S,D] keys of the relative positions
	norm                 [2][2]tensor
	inner, outer         [2]tensor // kernel and bias of the feed-forward part
	memory               tensor    // [B,S,d] input of the segment before
}

func (c TransformerXLConfig) forward(n *net) {
	batch, seq, seg, d := int64(c.Batch), int64(c.Sequence), int64(c.Segment), int64(c.Hidden)
	input := n.placeholder("input", ints(batch, seq))
	target := n.placeholder("target", ints(batch, seq))
	n.b.At(n.b.TensorAt(target).Producer).Layer = int32(c.Layers)
	var table, positions, mask, w, b tensor
	n.within("embedding", 1, func() {
		table = n.variable("table", int64(c.Vocab), d)
		positions = n.positions(2*seg, d)
	})
	n.within("mask", 1, func() { mask = n.causalMask(seg) })
	layers := make([]xlLayer, c.Layers)
	for l := range layers {
		n.within(layerName(l+1), l+1, func() { layers[l] = c.variables(n, positions) })
	}
	n.within("softmax", c.Layers, func() { w, b = n.variable("w", d, int64(c.Vocab)), n.variable("b", int64(c.Vocab)) })

	var losses []tensor
	for s := range c.Sequence / c.Segment {
		n.within(fmt.Sprintf("segment_%d", s), 1, func() {
			var x tensor // [B*S,d]
			n.within("embedding", 1, func() {
				ids := n.reshape(n.slice(input, batch, seg), batch*seg)
				x = n.binary("Mul", n.embed(table, ids), n.scalar())
			})
			for l := range layers {
				n.within(layerName(l+1), l+1, func() { x = c.layer(n, &layers[l], x, mask) })
			}
			n.within("softmax", c.Layers, func() {
				logits := n.bias(n.matmul(x, w), b)
				y := n.reshape(n.slice(target, batch, seg), batch*seg)
				losses = append(losses, n.sumAll("Mean", n.crossEntropy(logits, y)))
			})
		})
	}
	n.within("loss", c.Layers, func() { n.binary("RealDiv", n.addN(losses...), n.scalar()) })
}

// positions are the sinusoids of the relative positions, [K,d].
func (n *net) positions(k, d int64) tensor {
	at := n.cast(n.host("Range", ints(k), n.axis(), n.axis(), n.axis()), n.dtype)
	angle := n.binary("Mul", n.expand(at, 1), n.constant(n.of(1, d/2)))
	return n.concat(1, n.unary("Sin", angle), n.unary("Cos", angle))
}

// causalMask is minus infinity where a query, [S], must not see a key, [2S].
func (n *net) causalMask(s int64) tensor {
	query := n.host("Range", ints(s), n.axis(), n.axis(), n.axis())
	key := n.host("Range", ints(2*s), n.axis(), n.axis(), n.axis())
	future := n.binary("Greater", n.expand(key, 0), n.expand(query, 1))
	return n.binary("Mul", n.cast(future, n.dtype), n.scalar())
}

func (c TransformerXLConfig) variables(n *net, positions tensor) (l xlLayer) {
	d, heads, dim := int64(c.Hidden), int64(c.Heads), int64(c.HeadDim)
	a := heads * dim
	l.query, l.keyValue, l.out = n.variable("query", d, a), n.variable("key_value", d, 2*a), n.variable("out", a, d)
	l.content, l.position = n.variable("content_bias", heads, 1, 1, dim), n.variable("position_bias", heads, 1, 1, dim)
	for k := range l.norm {
		l.norm[k] = [2]tensor{n.variable("gamma", d), n.variable("beta", d)}
	}
	l.inner = [2]tensor{n.variable("inner", d, int64(c.FFN)), n.variable("inner_bias", int64(c.FFN))}
	l.outer = [2]tensor{n.variable("outer", int64(c.FFN), d), n.variable("outer_bias", d)}
	r := n.matmul(positions, n.variable("relative", d, a))
	l.relative = n.transpose(n.reshape(r, n.dim(positions, 0), heads, dim), 1, 0, 2)
	l.memory = n.placeholder("memory", n.of(int64(c.Batch), int64(c.Segment), d))
	return l
}

// layer is one layer on one segment, x of [B*S,d].
func (c TransformerXLConfig) layer(n *net, l *xlLayer, x, mask tensor) tensor {
	batch, seg, d := int64(c.Batch), int64(c.Segment), int64(c.Hidden)
	segment := n.reshape(x, batch, seg, d)
	both := n.reshape(n.concat(1, l.memory, segment), batch*2*seg, d)
	l.memory = n.unary("StopGradient", segment)
	var y tensor
	n.within("attention", int(n.layer), func() { y = c.attend(n, l, x, both, mask) })
	if c.Dropout {
		y = n.dropout(y)
	}
	x = n.layerNorm(n.binary("Add", y, x), l.norm[0])
	n.within("ffn", int(n.layer), func() {
		y = n.unary("Relu", n.bias(n.matmul(x, l.inner[0]), l.inner[1]))
		y = n.bias(n.matmul(y, l.outer[0]), l.outer[1])
	})
	if c.Dropout {
		y = n.dropout(y)
	}
	return n.layerNorm(n.binary("Add", y, x), l.norm[1])
}

// attend returns the attention, [B*S,d], of x, [B*S,d], over memory and segment
// both, [B*2S,d].
func (c TransformerXLConfig) attend(n *net, l *xlLayer, x, both, mask tensor) tensor {
	batch, seg, heads, dim := int64(c.Batch), int64(c.Segment), int64(c.Heads), int64(c.HeadDim)
	// split gives each head its part: [N,B,len,D].
	split := func(t tensor, length int64) tensor {
		return n.transpose(n.reshape(t, batch, length, heads, dim), 2, 0, 1, 3)
	}
	q := split(n.matmul(x, l.query), seg)
	kv := n.split(n.matmul(both, l.keyValue), 1, 2)
	k, v := split(kv[0], 2*seg), split(kv[1], 2*seg)
	content := n.batchMatmul(n.binary("Add", q, l.content), k, true) // [N,B,S,2S]
	p := n.reshape(n.binary("Add", q, l.position), heads, batch*seg, dim)
	position := n.relativeShift(n.reshape(n.batchMatmul(p, l.relative, true), heads, batch, seg, 2*seg))
	score := n.binary("Mul", n.binary("Add", content, position), n.scalar())
	y := n.batchMatmul(n.softmax(n.binary("Add", score, mask)), v, false) // [N,B,S,D]
	y = n.reshape(n.transpose(y, 1, 2, 0, 3), batch*seg, heads*dim)
	return n.matmul(y, l.out)
}

// relativeShift turns scores by relative position, [..., S,K], into scores by
// key: it pads a column, reads the memory with rows one longer, and drops the
// first row.
func (n *net) relativeShift(x tensor) tensor {
	s := slices.Clone(n.shape(x))
	r := len(s)
	q, k := s[r-2], s[r-1]
	lead := s[:r-2]
	dims := func(a, b int64) graph.Shape { return append(slices.Clone(lead), a, b) }
	y := n.op("Pad", n.of(dims(q, k+1)...), x, n.vector(2*r))
	y = n.reshape(y, dims(k+1, q)...)
	y = n.op("Slice", n.of(dims(k, q)...), y, n.vector(r), n.vector(r))
	return n.reshape(y, dims(q, k)...)
}

// layerNorm normalises x, [R,d], over its last dimension: the kernel of batch
// normalisation on a view of [1,R,d,1] whose channels are the rows, then the
// trained factor and offset.
func (n *net) layerNorm(x tensor, w [2]tensor) (y tensor) {
	n.within("layer_norm", int(n.layer), func() {
		rows, d := n.dim(x, 0), n.dim(x, 1)
		view := n.reshape(x, 1, rows, d, 1)
		op := n.add("FusedBatchNorm", "FusedBatchNorm", []tensor{view, n.constant(n.of(rows)), n.constant(n.of(rows)), n.constant(n.of(0)), n.constant(n.of(0))},
			n.like(view), n.of(rows), n.of(rows), n.of(rows), n.of(rows))
		y = n.reshape(n.b.Output(op, 0), rows, d)
		y = n.binary("Add", n.binary("Mul", y, w[0]), w[1])
	})
	return y
}
