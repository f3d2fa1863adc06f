package workloads

// layerTable looks up what tokens have for each layer, and adds the projection of their embeddings
// x, [B*S,d].
func (n *serving) layerTable(x tensor) {
	t := n.d.Embedding.PerLayer
	if t == nil {
		return
	}
	rows, layers := n.dim(x, 0), int64(len(n.d.Blocks))
	y := n.reshape(n.linear(t.Projection, 1, n.scaled(t.Projection, x), layers*t.Columns, false), rows, layers, t.Columns)
	y = n.norm(t.Norm, 1, y)
	n.module(t.Table, 1, func() {
		input := n.placeholder("input_ids", ints(n.s.Batch, n.s.Seq))
		z := n.embed(n.parameter("weight", false, n.d.Vocab, layers*t.Columns), n.reshape(input, rows))
		n.layers = n.scale(n.binary("Add", y, n.reshape(n.scale(z), rows, layers, t.Columns)))
	})
}

// scaled multiplies x by a number, in a module.
func (n *serving) scaled(path string, x tensor) (y tensor) {
	n.module(path, 1, func() { y = n.scale(x) })
	return y
}

// perLayer adds to x, [B*S,d], what the token's embedding for layer l says.
func (n *serving) perLayer(b *Block, l int, x tensor, add func(x, y tensor) tensor) tensor {
	p := b.PerLayer
	if p == nil {
		return x
	}
	columns := n.d.Embedding.PerLayer.Columns
	y := n.linear(b.Path+"."+p.Gate.Name, l, x, columns, p.Gate.Bias)
	n.module(b.Path, l, func() {
		own := n.op("StridedSlice", n.like(y), n.layers)
		n.b.At(n.b.TensorAt(own).Producer).Bytes = 2 * n.bytes(y)
		y = n.binary("Mul", n.unary(p.Activation, y), own)
	})
	y = n.norm(p.After, l, n.linear(b.Path+"."+p.Projection.Name, l, y, n.d.Hidden, p.Projection.Bias))
	return add(x, y)
}

// keysAndValues are those of a layer, that other layers read too.
type keysAndValues struct {
	k, v []tensor
	past int64
}
