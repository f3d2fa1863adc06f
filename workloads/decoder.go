package workloads

import (
	"fmt"
	"slices"

	"placer/graph"
	"placer/graph/train"
	"placer/internal/faults"
)

// decoder is a decoder-only language model: RMS norms before each part, rotary
// positions, grouped-query attention and a gated feed-forward part (Touvron et al.,
// LLaMA), whose place experts take when there are any (Jiang et al., Mixtral of
// Experts). Layer l of the model is layer l; the embedding belongs to the first, the
// output to the last.
type decoder struct {
	layers  int
	hidden  int64
	heads   int64 // divides hidden into an even number, where headDim is 0
	kvHeads int64 // divides heads
	headDim int64 // columns of a head; 0: hidden/heads
	ffn     int64
	vocab   int64
	seq     int64
	experts int64 // 0 for a dense model
	topK    int64 // experts per token
	// capacity is the number of tokens each expert has room for, in percent of an
	// even share, where each has ops of its own.
	capacity int64
	// grouped has the products of all experts of a layer in one kernel each, and no token dropped
	// (MegaBlocks: Gale et al., arXiv:2211.15841; Megatron-LM's --moe-grouped-gemm).
	grouped bool
	common
}

// newLlama returns the sizes of LLaMA 7B, one sequence of 2,048.
func newLlama() *decoder {
	return &decoder{layers: 32, hidden: 4096, heads: 32, kvHeads: 32, ffn: 11008, vocab: 32000, seq: 2048,
		common: common{batch: 1, dtype: graph.BF16, train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true, DenseTables: true}}}
}

// newLlama70B returns the sizes of Llama 2 70B (Touvron et al., arXiv:2307.09288), one
// sequence of 2,048.
func newLlama70B() *decoder {
	c := newLlama()
	c.layers, c.hidden, c.heads, c.kvHeads, c.ffn = 80, 8192, 64, 8, 28672
	return c
}

// newMoE returns the sizes of Mixtral 8x7B, one sequence of 2,048.
func newMoE() *decoder {
	c := newLlama()
	c.kvHeads, c.ffn, c.experts, c.topK, c.capacity = 8, 14336, 8, 2, 125
	return c
}

func (c *decoder) depth() int { return c.layers }

func (c *decoder) settings() []setting {
	all := []setting{
		{"layers", &c.layers, 1, 1024}, {"hidden", &c.hidden, 2, 1 << 18}, {"heads", &c.heads, 1, 1 << 12}, {"kv_heads", &c.kvHeads, 1, 1 << 12}, {"head_dim", &c.headDim, 0, 1 << 12}, {"ffn", &c.ffn, 1, 1 << 20},
		{"vocab", &c.vocab, 2, 1 << 24}, {"seq", &c.seq, 1, 1 << 18}, {"batch", &c.batch, 1, 1 << 16}, {name: "dtype", to: &c.dtype}, c.optimizer(), c.masterWeights(), c.attends(), {"micro_batches", &c.micro, 0, 1 << 10},
	}
	if c.experts != 0 {
		all = append(all, setting{"experts", &c.experts, 1, 1024}, setting{"top_k", &c.topK, 1, max(c.experts, 1)}, setting{"capacity", &c.capacity, 100, 10000}, setting{name: "grouped", to: &c.grouped})
	}
	return all
}

func (c *decoder) faults() (errs faults.List) {
	errs.If(c.headDim%2 != 0, "head_dim is %d, want an even number", c.headDim)
	errs.If(c.headDim == 0 && c.heads > 0 && c.hidden%(2*c.heads) != 0, "hidden is %d, want a multiple of twice the %d heads", c.hidden, c.heads)
	errs.If(c.kvHeads > 0 && c.heads%c.kvHeads != 0, "heads is %d, want a multiple of the %d kv_heads", c.heads, c.kvHeads)
	errs.If(c.micro > 0 && c.batch%c.micro != 0, "batch is %d, want a multiple of the %d micro_batches", c.batch, c.micro)
	errs.If(c.micro > 1 && c.inference, "micro_batches is %d without an optimizer", c.micro)
	switch {
	case c.experts != 0:
		errs = append(errs, between("layers * experts", int64(c.layers)*c.experts, 1, 1<<14))
	case c.topK != 0:
		errs = append(errs, fmt.Errorf("top_k is %d without experts", c.topK))
	}
	return errs
}

// dim returns the columns of a head.
func (c *decoder) dim() int64 {
	if c.headDim > 0 {
		return c.headDim
	}
	return c.hidden / c.heads
}

// rotary holds cosines and sines of the positions, [S,D] each.
type rotary struct{ cos, sin tensor }

func (c *decoder) forward(n *net) {
	batch, seq, d, vocab := c.batch, c.seq, c.hidden, c.vocab
	input := n.placeholder("input", ints(batch, seq))
	var x, mask tensor // mask: where products read it
	var r rotary
	n.within("embedding", 1, func() {
		x = n.embed(n.variable("table", vocab, d), n.reshape(input, batch*seq)) // [B*S,d]
		r = rotary{n.constant(n.of(seq, c.dim())), n.constant(n.of(seq, c.dim()))}
		if c.scores == Products {
			mask = n.constant(n.of(seq, seq))
		}
	})
	var balance []tensor
	for l := range c.layers {
		n.inLayer(l+1, func() {
			y := n.rmsNorm(x)
			n.within("attention", l+1, func() { y = c.attend(n, y, r, mask) })
			x = n.binary("Add", x, y)
			y = n.rmsNorm(x)
			if c.experts == 0 {
				n.within("ffn", l+1, func() { y = c.feedForward(n, y) })
			} else {
				n.within("experts", l+1, func() {
					var loss tensor
					y, loss = c.mixture(n, y)
					balance = append(balance, loss)
				})
			}
			x = n.binary("Add", x, y)
		})
	}
	n.within("output", c.layers, func() {
		target := n.placeholder("target", ints(batch, seq))
		logits := n.cast(n.matmul(n.rmsNorm(x), n.variable("weights", d, vocab)), graph.F32)
		loss := n.mean(n.crossEntropy(logits, n.reshape(target, batch*seq)))
		if len(balance) > 0 {
			n.binary("Add", loss, n.cast(n.binary("Mul", n.addN(balance...), n.scalar()), graph.F32))
		}
	})
}

// mean is the mean over all of x.
func (n *net) mean(x tensor) tensor { return n.sumAll("Mean", x) }

// rmsNorm divides x, [R,d], by its root mean square and multiplies by a trained
// factor: one kernel, which saves 1/rms of each row.
func (n *net) rmsNorm(x tensor) tensor {
	w := n.variable("norm", n.dim(x, 1))
	op := n.add("RMSNorm", "RMSNorm", []tensor{x, w}, n.like(x), n.of(n.dim(x, 0), 1))
	return n.b.Output(op, 0)
}

// rotate turns pairs of dimensions of x, [..., S,D], by an angle that grows with
// the position.
func (n *net) rotate(x tensor, r rotary) tensor {
	halves := n.split(x, -1, 2)
	turned := n.concat(-1, n.unary("Neg", halves[1]), halves[0])
	return n.binary("Add", n.binary("Mul", x, r.cos), n.binary("Mul", turned, r.sin))
}

// attend is causal attention on x, [B*S,d], in which heads/kv_heads queries share
// a key.
func (c *decoder) attend(n *net, x tensor, r rotary, mask tensor) tensor {
	batch, seq, d := c.batch, c.seq, c.hidden
	dim, kv := c.dim(), c.kvHeads
	group := c.heads / kv
	heads := func(name string, count int64) tensor { // [B,heads,S,D]
		return n.heads(n.matmul(x, n.variable(name, d, count*dim)), c.scores, batch, seq, count)
	}
	q := n.rotate(heads("query", c.heads), r)
	k := n.rotate(heads("key", kv), r)
	v := heads("value", kv)
	var y tensor
	if c.scores == OneKernel {
		y = n.flash(q, k, v, true)
	} else {
		score := n.batchMatmul(n.reshape(q, batch, kv, group*seq, dim), k, true)
		score = n.binary("Mul", n.reshape(score, batch, kv, group, seq, seq), n.scalar())
		p := n.reshape(n.softmax(n.binary("Add", score, mask)), batch, kv, group*seq, seq)
		y = n.reshape(n.batchMatmul(p, v, false), batch, c.heads, seq, dim)
	}
	return n.matmul(n.joined(y, c.scores), n.variable("out", c.heads*dim, d))
}

// feedForward is down(swish(gate(x)) * up(x)) on x, [R,d], with its variables.
func (c *decoder) feedForward(n *net, x tensor) tensor {
	d, f := c.hidden, c.ffn
	gate := n.unary("Swish", n.matmul(x, n.variable("gate", d, f)))
	up := n.matmul(x, n.variable("up", d, f))
	return n.matmul(n.binary("Mul", gate, up), n.variable("down", f, d))
}

// mixture sends each row of x, [R,d], to its best experts and adds up their
// outputs by the router's weights. It also returns the loss that keeps the
// experts evenly loaded (Shazeer et al., Outrageously Large Neural Networks).
func (c *decoder) mixture(n *net, x tensor) (y, balance tensor) {
	rows, d, e, k := n.dim(x, 0), c.hidden, c.experts, c.topK
	p := n.softmax(n.matmul(x, n.variable("router", d, e))) // [R,E]
	top := n.add("TopK", "TopK", []tensor{p, n.axis()}, n.of(rows, k), ints(rows, k))
	weight, chosen := n.b.Output(top, 0), n.b.Output(top, 1)
	weight = n.binary("RealDiv", weight, n.reduce("Sum", weight, true, 1))
	weight = n.reshape(weight, rows*k, 1)

	hits := n.op("OneHot", n.of(rows, k, e), chosen, n.axis(), n.scalar(), n.scalar())
	share := n.reduce("Mean", hits, false, 0, 1)
	balance = n.sumAll("Sum", n.binary("Mul", share, n.reduce("Mean", p, false, 0)))

	if c.grouped {
		return c.together(n, x, weight, n.reshape(chosen, rows*k)), balance
	}
	room := (rows*k*c.capacity + 100*e - 1) / (100 * e)
	// Slots 0..R*K-1 are partitioned by the expert that each row chose.
	slots := n.op("Range", ints(rows*k), n.axis(), n.axis(), n.axis())
	parts := make([]graph.Tensor, e)
	for i := range parts {
		parts[i] = ints(room)
	}
	partition := n.add("DynamicPartition", "DynamicPartition", []tensor{slots, n.reshape(chosen, rows*k)}, parts...)
	outputs, at := make([]tensor, e), make([]tensor, e)
	for i := range outputs {
		n.sub(fmt.Sprintf("expert_%d", i), func() {
			slot := n.b.Output(partition, i)
			at[i] = n.binary("FloorDiv", slot, n.axis()) // the slot's row
			share := n.gather(weight, slot)
			outputs[i] = n.binary("Mul", c.feedForward(n, n.gather(x, at[i])), share)
		})
	}
	sum := n.op("UnsortedSegmentSum", n.like(x), n.concat(0, outputs...), n.concat(0, at...), n.axis())
	return sum, balance
}

// together adds up, by weight, [R*K,1], what the experts of chosen, [R*K], make of the rows of x, [R,d],
// in the order of the experts: three products for all of them.
func (c *decoder) together(n *net, x, weight, chosen tensor) tensor {
	sent := n.dim(chosen, 0)
	sorted := n.add("sort", "TopK", []tensor{chosen, n.axis()}, ints(sent), ints(sent))
	slot := n.b.Output(sorted, 1)
	at := n.binary("FloorDiv", slot, n.axis()) // the slot's row
	product := func(x tensor, name string, out int64) tensor {
		in := n.dim(x, 1)
		y := n.product("BatchMatMul", graph.GEMM{Batch: c.experts, M: (sent + c.experts - 1) / c.experts, N: out, K: in}, n.of(sent, out), x, n.variable(name, c.experts, in, out))
		n.b.At(n.b.TensorAt(y).Producer).FLOPs = graph.GEMM{Batch: 1, M: sent, N: out, K: in}.FLOPs()
		return y
	}
	x = n.gather(x, at)
	h := n.binary("Mul", n.unary("Swish", product(x, "gate", c.ffn)), product(x, "up", c.ffn))
	y := n.binary("Mul", product(h, "down", c.hidden), n.gather(weight, slot))
	return n.op("UnsortedSegmentSum", n.of(n.dim(weight, 0)/c.topK, c.hidden), y, at, n.axis())
}

// gather takes the rows of x, [R,...], that indices, [K], name.
func (n *net) gather(x, indices tensor) tensor {
	s := slices.Clone(n.shape(x))
	s[0] = n.dim(indices, 0)
	return n.op("GatherV2", n.of(s...), x, indices, n.axis())
}
