package workloads

// memory is what decoder steps attend to: the encoder's outputs, [B,S,H], and
// their projection, [B,S,A], with the variables of the normalised Bahdanau score
// (tf.contrib.seq2seq.BahdanauAttention with normalize=True).
type memory struct {
	values, keys tensor // [B,S,H], [B,S,A]
	query        tensor // [H,A]
	v, g, b      tensor // [A], [], [A]
	mask         tensor // [B,S], true within the sentence
}

// attentionMemory joins the encoder's outputs, S of [B,H], and projects them.
// lengths, [B], masks positions past the end of each sentence.
func (n *net) attentionMemory(outputs []tensor, lengths tensor) memory {
	batch, hidden, s := n.dim(outputs[0], 0), n.dim(outputs[0], 1), int64(len(outputs))
	var m memory
	x := n.pack(1, outputs...)
	// The outputs past the end of a sentence become zero.
	live := n.cast(n.sequenceMask(lengths, s), n.dtype)
	m.values = n.binary("Mul", x, n.expand(live, 2))
	flat := n.reshape(m.values, batch*s, hidden)
	m.keys = n.reshape(n.matmul(flat, n.variable("memory_kernel", hidden, hidden)), batch, s, hidden)
	m.query = n.variable("query_kernel", hidden, hidden)
	m.v, m.g, m.b = n.variable("v", hidden), n.variable("g"), n.variable("b", hidden)
	m.mask = n.sequenceMask(lengths, s)
	return m
}

// sequenceMask is tf.sequence_mask: [B,S], whether each position is within the
// length.
func (n *net) sequenceMask(lengths tensor, s int64) tensor {
	row := n.host("Range", ints(s), n.axis(), n.axis(), n.axis())
	return n.binary("Less", n.expand(row, 0), n.expand(lengths, 1))
}

// attend returns the context, [B,H], of query, [B,H].
func (n *net) attend(m *memory, query tensor) tensor {
	hidden := n.dim(query, 1)
	q := n.expand(n.matmul(query, m.query), 1) // [B,1,A]
	// The score is sum(v' * tanh(keys + query + b)) with v' = g * v / |v|.
	square := n.sumAll("Sum", n.unary("Square", m.v))
	v := n.binary("Mul", n.binary("Mul", m.g, m.v), n.unary("Rsqrt", square))
	t := n.unary("Tanh", n.binary("Add", n.binary("Add", m.keys, q), m.b)) // [B,S,A]
	score := n.reduce("Sum", n.binary("Mul", v, t), false, 2)              // [B,S]
	// Positions past the end score minus infinity.
	low := n.op("Fill", n.like(score), n.shapeOf(score), n.scalar())
	score = n.op("Select", n.like(score), m.mask, score, low)
	align := n.expand(n.softmax(score), 1) // [B,1,S]
	context := n.squeeze(n.batchMatmul(align, m.values, false), 1)
	mustEqual("context", n.shape(context), n.shape(query), n.dim(context, 1) == hidden)
	return context
}

// softmax normalises x over its last dimension.
func (n *net) softmax(x tensor) tensor { return n.op("Softmax", n.like(x), x) }
