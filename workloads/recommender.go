package workloads

import (
	"placer/graph/train"
	"placer/internal/faults"
)

// recommender predicts clicks from numbers and categories (Naumov et al.,
// arXiv:1906.00091): tables of embeddings, a bottom network for the numbers, products of
// all pairs of embeddings, and top networks. With towers there are several top networks,
// each for one target, and with experts a mixture of them, weighed by a gate of its own,
// is what each tower reads (Ma et al., KDD 2018). The bottom network's layers are the
// first, experts are one layer, those of the towers the last; tables and products belong
// to the bottom's last.
type recommender struct {
	tables  int   // of embeddings
	rows    int64 // of the largest table; table i has rows / 2^(i mod 4)
	dim     int64 // of an embedding
	lookups int64 // of a sample in a table, which are added up
	numbers int64 // of a sample
	bottom  int   // layers
	top     int   // layers of a tower
	width   int64 // of the layers
	towers  int
	experts int // 0 for none
	common
}

// newRecommender returns a small model of one tower.
func newRecommender() *recommender {
	return &recommender{tables: 8, rows: 1 << 20, dim: 64, lookups: 4, numbers: 16, bottom: 3, top: 3, width: 512, towers: 1,
		common: common{batch: 2048, train: train.Config{Optimizer: train.Adam, StaticShapes: true}}}
}

func (c *recommender) depth() int { return c.bottom + min(c.experts, 1) + c.top }

func (c *recommender) settings() []setting {
	return []setting{
		{"tables", &c.tables, 1, 1024}, {"rows", &c.rows, 8, 1 << 32}, {"dim", &c.dim, 1, 1 << 14}, {"lookups", &c.lookups, 1, 1 << 14}, {"numbers", &c.numbers, 1, 1 << 16},
		{"bottom", &c.bottom, 1, 1024}, {"top", &c.top, 1, 1024}, {"width", &c.width, 1, 1 << 18}, {"towers", &c.towers, 1, 256}, {"experts", &c.experts, 0, 256},
		{"batch", &c.batch, 1, 1 << 24}, c.optimizer(),
	}
}

func (c *recommender) faults() faults.List {
	return faults.List{between("towers * top", int64(c.towers)*int64(c.top), 1, 1<<12)}
}

func (c *recommender) forward(n *net) {
	var x tensor
	n.within("numbers", 1, func() { x = n.placeholder("numbers", n.of(c.batch, c.numbers)) })
	for l := range c.bottom {
		n.inLayer(l+1, func() {
			out := c.width
			if l+1 == c.bottom {
				out = c.dim
			}
			x = n.unary("Relu", n.dense(x, out))
		})
	}
	n.within("interaction", c.bottom, func() { x = c.interaction(n, x) })
	reads := make([]tensor, c.towers)
	for k := range reads {
		reads[k] = x
	}
	if c.experts > 0 {
		n.within("experts", c.bottom+1, func() { c.mixture(n, x, reads) })
	}
	var losses []tensor
	for _, y := range reads {
		for l := range c.top {
			n.within("tower", c.depth()-c.top+l+1, func() {
				if l+1 < c.top {
					y = n.unary("Relu", n.dense(y, c.width))
					return
				}
				y = n.unary("Sigmoid", n.dense(y, 1))
				losses = append(losses, n.mean(n.binary("SquaredDifference", y, n.placeholder("clicks", n.like(y)))))
			})
		}
	}
	n.within("loss", c.depth(), func() { n.addN(losses...) })
}

// interaction returns x, [B,dim], beside the products of all pairs of it and the
// embeddings.
func (c *recommender) interaction(n *net, x tensor) tensor {
	vectors := []tensor{x}
	for i := range c.tables {
		n.sub("table", func() {
			table := n.variable("rows", max(2, c.rows>>(i%4)), c.dim)
			found := n.embed(table, n.placeholder("ids", ints(c.batch, c.lookups)))
			vectors = append(vectors, n.reduce("Sum", found, false, 1))
		})
	}
	k := int64(len(vectors))
	all := n.pack(1, vectors...) // [B,K,dim]
	pairs := n.reshape(n.batchMatmul(all, all, true), c.batch, k*k)
	return n.concat(1, x, pairs)
}

// mixture replaces what each tower reads by experts' outputs under its gate.
func (c *recommender) mixture(n *net, x tensor, reads []tensor) {
	outputs := make([]tensor, c.experts)
	for e := range outputs {
		n.sub("expert", func() { outputs[e] = n.unary("Relu", n.dense(n.unary("Relu", n.dense(x, c.width)), c.width)) })
	}
	all := n.pack(1, outputs...) // [B,E,width]
	for k := range reads {
		n.sub("gate", func() {
			weight := n.expand(n.softmax(n.dense(x, int64(c.experts))), 1) // [B,1,E]
			reads[k] = n.reshape(n.batchMatmul(weight, all, false), c.batch, c.width)
		})
	}
}
