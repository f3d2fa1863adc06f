package workloads

import (
	"fmt"
	"slices"

	"placer/graph"
	"placer/graph/train"
	"placer/internal/faults"
)

// transformerXL is Transformer-XL (Dai et al., Transformer-XL: Attentive Language
// Models beyond a Fixed-Length Context): a sequence is cut into segments; every
// layer attends to the segment and, without gradient, to the layer's input in the
// segment before, with relative positions. Layer l of the model is layer l; the
// embedding belongs to the first, the softmax to the last.
type transformerXL struct {
	layers   int
	sequence int64 // a multiple of segment
	segment  int64 // also the length of the memory
	hidden   int64
	ffn      int64
	heads    int64
	headDim  int64
	vocab    int64
	// dropout puts a dropout op behind the attention and behind the feed-forward
	// part.
	dropout bool
	common
}

// newTransformerXL returns the papers' setting for a number of layers.
func newTransformerXL(layers int) *transformerXL {
	return &transformerXL{layers: layers, sequence: 256, segment: 64, hidden: 500, ffn: 1000, heads: 10, headDim: 50, vocab: 10000, dropout: true,
		common: common{batch: 64, train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}}
}

func (c *transformerXL) depth() int { return c.layers }

func (c *transformerXL) settings() []setting {
	return []setting{
		{"layers", &c.layers, 1, 1024}, {"batch", &c.batch, 1, 1 << 16}, {"sequence", &c.sequence, 1, 1 << 20}, {"segment", &c.segment, 1, 1 << 16},
		{"hidden", &c.hidden, 2, 1 << 16}, {"ffn", &c.ffn, 1, 1 << 20}, {"heads", &c.heads, 1, 1 << 12}, {"head_dim", &c.headDim, 1, 1 << 12},
		{"vocab", &c.vocab, 2, 1 << 28}, {name: "dropout", to: &c.dropout}, c.optimizer(),
	}
}

func (c *transformerXL) faults() (errs faults.List) {
	if c.segment > 0 && c.sequence%c.segment != 0 {
		errs = append(errs, fmt.Errorf("sequence of %d is no multiple of the segment, %d", c.sequence, c.segment))
	} else if c.segment > 0 {
		errs = append(errs, between("layers * sequence / segment", int64(c.layers)*(c.sequence/c.segment), 1, 1<<13))
	}
	errs.If(c.hidden%2 != 0, "hidden is %d, want an even number", c.hidden)
	return errs
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

func (c *transformerXL) forward(n *net) {
	batch, seq, seg, d := c.batch, c.sequence, c.segment, c.hidden
	input := n.placeholder("input", ints(batch, seq))
	target := n.lastPlaceholder("target", c.layers, batch, seq)
	var table, positions, mask, w, b tensor
	n.within("embedding", 1, func() {
		table = n.variable("table", c.vocab, d)
		positions = n.positions(2*seg, d)
	})
	n.within("mask", 1, func() { mask = n.causalMask(seg) })
	layers := make([]xlLayer, c.layers)
	for l := range layers {
		n.inLayer(l+1, func() { layers[l] = c.variables(n, positions) })
	}
	n.within("softmax", c.layers, func() { w, b = n.variable("w", d, c.vocab), n.variable("b", c.vocab) })

	var losses []tensor
	for s := range c.sequence / c.segment {
		n.within(fmt.Sprintf("segment_%d", s), 1, func() {
			var x tensor // [B*S,d]
			n.within("embedding", 1, func() {
				ids := n.reshape(n.slice(input, batch, seg), batch*seg)
				x = n.binary("Mul", n.embed(table, ids), n.scalar())
			})
			for l := range layers {
				n.inLayer(l+1, func() { x = c.layer(n, &layers[l], x, mask) })
			}
			n.within("softmax", c.layers, func() {
				logits := n.bias(n.matmul(x, w), b)
				y := n.reshape(n.slice(target, batch, seg), batch*seg)
				losses = append(losses, n.sumAll("Mean", n.crossEntropy(logits, y)))
			})
		})
	}
	n.within("loss", c.layers, func() { n.binary("RealDiv", n.addN(losses...), n.scalar()) })
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

func (c *transformerXL) variables(n *net, positions tensor) (l xlLayer) {
	d, heads, dim := c.hidden, c.heads, c.headDim
	a := heads * dim
	l.query, l.keyValue, l.out = n.variable("query", d, a), n.variable("key_value", d, 2*a), n.variable("out", a, d)
	l.content, l.position = n.variable("content_bias", heads, 1, 1, dim), n.variable("position_bias", heads, 1, 1, dim)
	for k := range l.norm {
		l.norm[k] = [2]tensor{n.variable("gamma", d), n.variable("beta", d)}
	}
	l.inner = [2]tensor{n.variable("inner", d, c.ffn), n.variable("inner_bias", c.ffn)}
	l.outer = [2]tensor{n.variable("outer", c.ffn, d), n.variable("outer_bias", d)}
	r := n.matmul(positions, n.variable("relative", d, a))
	l.relative = n.transpose(n.reshape(r, n.dim(positions, 0), heads, dim), 1, 0, 2)
	l.memory = n.placeholder("memory", n.of(c.batch, c.segment, d))
	return l
}

// layer is one layer on one segment, x of [B*S,d].
func (c *transformerXL) layer(n *net, l *xlLayer, x, mask tensor) tensor {
	batch, seg, d := c.batch, c.segment, c.hidden
	segment := n.reshape(x, batch, seg, d)
	both := n.reshape(n.concat(1, l.memory, segment), batch*2*seg, d)
	l.memory = n.unary("StopGradient", segment)
	var y tensor
	n.sub("attention", func() { y = c.attend(n, l, x, both, mask) })
	if c.dropout {
		y = n.dropout(y)
	}
	x = n.layerNorm(n.binary("Add", y, x), l.norm[0])
	n.sub("ffn", func() {
		y = n.unary("Relu", n.bias(n.matmul(x, l.inner[0]), l.inner[1]))
		y = n.bias(n.matmul(y, l.outer[0]), l.outer[1])
	})
	if c.dropout {
		y = n.dropout(y)
	}
	return n.layerNorm(n.binary("Add", y, x), l.norm[1])
}

// attend returns the attention, [B*S,d], of x, [B*S,d], over memory and segment
// both, [B*2S,d].
func (c *transformerXL) attend(n *net, l *xlLayer, x, both, mask tensor) tensor {
	batch, seg, heads, dim := c.batch, c.segment, c.heads, c.headDim
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
	n.sub("layer_norm", func() {
		rows, d := n.dim(x, 0), n.dim(x, 1)
		view := n.reshape(x, 1, rows, d, 1)
		op := n.add("FusedBatchNorm", "FusedBatchNorm", []tensor{view, n.constant(n.of(rows)), n.constant(n.of(rows)), n.constant(n.of(0)), n.constant(n.of(0))},
			n.like(view), n.of(rows), n.of(rows), n.of(rows), n.of(rows))
		y = n.reshape(n.b.Output(op, 0), rows, d)
		y = n.binary("Add", n.binary("Mul", y, w[0]), w[1])
	})
	return y
}
