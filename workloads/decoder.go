package workloads

import (
	"errors"
	"fmt"
	"slices"

	"placer/graph"
	"placer/graph/train"
)

// DecoderConfig describes a decoder-only language model: RMS norms before each
// part, rotary positions, grouped-query attention and a gated feed-forward part
// (Touvron et al., LLaMA), whose place experts take when Experts is positive
// (Jiang et al., Mixtral of Experts).
type DecoderConfig struct {
	Layers  int
	Hidden  int
	Heads   int // divides Hidden into an even number
	KVHeads int // divides Heads
	FFN     int
	Vocab   int
	Seq     int
	Batch   int
	Experts int // 0 for a dense model
	TopK    int // experts per token
	// Capacity is the number of tokens each expert has room for, in percent of an
	// even share.
	Capacity int
	DType    graph.DType
	Train    train.Config
}

// DefaultLlama returns the sizes of LLaMA 7B, one sequence of 2,048.
func DefaultLlama() DecoderConfig {
	return DecoderConfig{Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 32, FFN: 11008, Vocab: 32000, Seq: 2048, Batch: 1,
		DType: graph.BF16, Train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}
}

// DefaultMoE returns the sizes of Mixtral 8x7B, one sequence of 2,048.
func DefaultMoE() DecoderConfig {
	c := DefaultLlama()
	c.KVHeads, c.FFN, c.Experts, c.TopK, c.Capacity = 8, 14336, 8, 2, 125
	return c
}

// Validate reports every fault of c.
func (c DecoderConfig) Validate() error {
	errs := []error{between("layers", c.Layers, 1, 1024), between("hidden", c.Hidden, 2, 1<<18), between("heads", c.Heads, 1, 1<<12),
		between("kv_heads", c.KVHeads, 1, 1<<12), between("ffn", c.FFN, 1, 1<<20), between("vocab", c.Vocab, 2, 1<<24),
		between("seq", c.Seq, 1, 1<<18), between("batch", c.Batch, 1, 1<<16), floatType(c.DType), c.Train.Validate()}
	if c.Heads > 0 && c.Hidden%(2*c.Heads) != 0 {
		errs = append(errs, fmt.Errorf("hidden is %d, want a multiple of twice the %d heads", c.Hidden, c.Heads))
	}
	if c.KVHeads > 0 && c.Heads%c.KVHeads != 0 {
		errs = append(errs, fmt.Errorf("heads is %d, want a multiple of the %d kv_heads", c.Heads, c.KVHeads))
	}
	if c.Experts != 0 {
		errs = append(errs, between("experts", c.Experts, 1, 1024), between("top_k", c.TopK, 1, max(c.Experts, 1)), between("capacity", c.Capacity, 100, 10000),
			between("layers * experts", c.Layers*c.Experts, 1, 1<<14))
	} else if c.TopK != 0 {
		errs = append(errs, fmt.Errorf("top_k is %d without experts", c.TopK))
	}
	return errors.Join(errs...)
}

func floatType(t graph.DType) error {
	switch t {
	case graph.F32, graph.F16, graph.BF16, graph.F64:
		return nil
	}
	return fmt.Errorf("dtype is %v, want f32, f16, bf16 or f64", t)
}

// Decoder returns the training graph of c. Layer l of the model is layer l; the
// embedding belongs to the first, the output to the last.
func Decoder(c DecoderConfig) (*graph.Graph, error) { return c.generate(c.family()) }

// Build returns Decoder(c).
func (c DecoderConfig) Build() (*graph.Graph, error) { return Decoder(c) }

func (c DecoderConfig) family() string {
	if c.Experts > 0 {
		return "moe"
	}
	return "llama"
}

func (c DecoderConfig) generate(name string) (*graph.Graph, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.family(), err)
	}
	n := newNet(name, c.DType)
	n.dynamic = !c.Train.StaticShapes
	c.forward(n)
	return n.training(c.Train)
}

func decoderSpecs() []Spec {
	llama, moe := DefaultLlama(), DefaultMoE()
	return []Spec{
		{Name: "llama", Family: "llama", Layers: llama.Layers, Note: "the sizes of LLaMA 7B, bf16, one sequence of 2,048", params: llama},
		{Name: "moe", Family: "moe", Layers: moe.Layers, Note: "the sizes of Mixtral 8x7B, bf16, one sequence of 2,048", params: moe},
	}
}

// rotary holds cosines and sines of the positions, [S,D] each.
type rotary struct{ cos, sin tensor }

func (c DecoderConfig) forward(n *net) {
	batch, seq, d, vocab := int64(c.Batch), int64(c.Seq), int64(c.Hidden), int64(c.Vocab)
	input := n.placeholder("input", ints(batch, seq))
	var x, mask tensor
	var r rotary
	n.within("embedding", 1, func() {
		x = n.embed(n.variable("table", vocab, d), n.reshape(input, batch*seq)) // [B*S,d]
		r = rotary{n.constant(n.of(seq, d/int64(c.Heads))), n.constant(n.of(seq, d/int64(c.Heads)))}
		mask = n.constant(n.of(seq, seq))
	})
	var balance []tensor
	for l := range c.Layers {
		n.within(layerName(l+1), l+1, func() {
			y := n.rmsNorm(x)
			n.within("attention", l+1, func() { y = c.attend(n, y, r, mask) })
			x = n.binary("Add", x, y)
			y = n.rmsNorm(x)
			if c.Experts == 0 {
				n.within("ffn", l+1, func() { y = c.feedForward(n, y) })
			} else {
				n.within("experts", l+1, func() {
					var loss tensor
					y, loss = c.experts(n, y)
					balance = append(balance, loss)
				})
			}
			x = n.binary("Add", x, y)
		})
	}
	n.within("output", c.Layers, func() {
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
func (c DecoderConfig) attend(n *net, x tensor, r rotary, mask tensor) tensor {
	batch, seq, d := int64(c.Batch), int64(c.Seq), int64(c.Hidden)
	dim, kv := d/int64(c.Heads), int64(c.KVHeads)
	group := int64(c.Heads) / kv
	heads := func(name string, count int64) tensor { // [B,heads,S,D]
		y := n.matmul(x, n.variable(name, d, count*dim))
		return n.transpose(n.reshape(y, batch, seq, count, dim), 0, 2, 1, 3)
	}
	q := n.rotate(heads("query", int64(c.Heads)), r)
	k := n.rotate(heads("key", kv), r)
	v := heads("value", kv)
	score := n.batchMatmul(n.reshape(q, batch, kv, group*seq, dim), k, true)
	score = n.binary("Mul", n.reshape(score, batch, kv, group, seq, seq), n.scalar())
	p := n.reshape(n.softmax(n.binary("Add", score, mask)), batch, kv, group*seq, seq)
	y := n.reshape(n.batchMatmul(p, v, false), batch, int64(c.Heads), seq, dim)
	y = n.reshape(n.transpose(y, 0, 2, 1, 3), batch*seq, d)
	return n.matmul(y, n.variable("out", d, d))
}

// feedForward is down(swish(gate(x)) * up(x)) on x, [R,d], with its variables.
func (c DecoderConfig) feedForward(n *net, x tensor) tensor {
	d, f := int64(c.Hidden), int64(c.FFN)
	gate := n.unary("Swish", n.matmul(x, n.variable("gate", d, f)))
	up := n.matmul(x, n.variable("up", d, f))
	return n.matmul(n.binary("Mul", gate, up), n.variable("down", f, d))
}

// experts sends each row of x, [R,d], to its best experts and adds up their
// outputs by the router's weights. It also returns the loss that keeps the
// experts evenly loaded (Shazeer et al., Outrageously Large Neural Networks).
func (c DecoderConfig) experts(n *net, x tensor) (y, balance tensor) {
	rows, d, e, k := n.dim(x, 0), int64(c.Hidden), int64(c.Experts), int64(c.TopK)
	room := (rows*k*int64(c.Capacity) + 100*e - 1) / (100 * e)
	p := n.softmax(n.matmul(x, n.variable("router", d, e))) // [R,E]
	top := n.add("TopK", "TopK", []tensor{p, n.axis()}, n.of(rows, k), ints(rows, k))
	weight, chosen := n.b.Output(top, 0), n.b.Output(top, 1)
	weight = n.binary("RealDiv", weight, n.reduce("Sum", weight, true, 1))
	weight = n.reshape(weight, rows*k, 1)

	hits := n.op("OneHot", n.of(rows, k, e), chosen, n.axis(), n.scalar(), n.scalar())
	share := n.reduce("Mean", hits, false, 0, 1)
	balance = n.sumAll("Sum", n.binary("Mul", share, n.reduce("Mean", p, false, 0)))

	// Slots 0..R*K-1 are partitioned by the expert that each row chose.
	slots := n.op("Range", ints(rows*k), n.axis(), n.axis(), n.axis())
	parts := make([]graph.Tensor, e)
	for i := range parts {
		parts[i] = ints(room)
	}
	partition := n.add("DynamicPartition", "DynamicPartition", []tensor{slots, n.reshape(chosen, rows*k)}, parts...)
	outputs, at := make([]tensor, e), make([]tensor, e)
	for i := range outputs {
		n.within(fmt.Sprintf("expert_%d", i), int(n.layer), func() {
			slot := n.b.Output(partition, i)
			at[i] = n.binary("FloorDiv", slot, n.axis()) // the slot's row
			share := n.gather(weight, slot)
			outputs[i] = n.binary("Mul", c.feedForward(n, n.gather(x, at[i])), share)
		})
	}
	sum := n.op("UnsortedSegmentSum", n.like(x), n.concat(0, outputs...), n.concat(0, at...), n.axis())
	return sum, balance
}

// gather takes the rows of x, [R,...], that indices, [K], name.
func (n *net) gather(x, indices tensor) tensor {
	s := slices.Clone(n.shape(x))
	s[0] = n.dim(indices, 0)
	return n.op("GatherV2", n.of(s...), x, indices, n.axis())
}
