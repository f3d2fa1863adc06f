package workloads

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/units"
)

// Decoder is a decoder-only language model as it serves requests: LLaMA's blocks
// (Touvron et al., arXiv:2302.13971), with experts Mixtral's (Jiang et al.,
// arXiv:2401.04088). Modules have the names of Hugging Face's implementations.
type Decoder struct {
	Layers         int
	Hidden         int64
	Heads, KVHeads int64 // queries, and keys and values, of a layer
	HeadDim        int64
	FFN            int64
	Vocab          int64
	Experts, TopK  int64 // 0 and 0 for a dense model
	Bias           bool  // queries, keys and values have biases, as in Qwen2
	Tied           bool  // the output's weights are the embedding's
	DType          graph.DType
	// Stored returns what the weight of that name occupies where it is not its elements
	// times the type's size: quantized weights. It may be nil.
	Stored func(name string) (units.Bytes, bool)
}

// Serving is what one step of a Decoder works on.
type Serving struct {
	Batch int64 // sequences
	Seq   int64 // tokens of each that the step computes: 1 where it decodes
	Past  int64 // tokens of each whose keys and values are there already
}

// Validate reports the first size that is out of range.
func (d *Decoder) Validate() error {
	for _, s := range []struct {
		name      string
		x         int64
		low, high int64
	}{{"layers", int64(d.Layers), 1, 1024}, {"hidden size", d.Hidden, 1, 1 << 18}, {"attention heads", d.Heads, 1, 1 << 12}, {"key and value heads", d.KVHeads, 1, 1 << 12},
		{"head size", d.HeadDim, 1, 1 << 14}, {"feed-forward size", d.FFN, 1, 1 << 20}, {"vocabulary", d.Vocab, 1, 1 << 24}, {"experts", d.Experts, 0, 1024}, {"experts a token", d.TopK, min(d.Experts, 1), d.Experts}} {
		if err := between("number of "+s.name, s.x, s.low, s.high); err != nil {
			return err
		}
	}
	if d.Heads%d.KVHeads != 0 {
		return fmt.Errorf("%d attention heads are no multiple of %d key and value heads", d.Heads, d.KVHeads)
	}
	if int64(d.Layers)*max(d.Experts, 1) > 1<<14 {
		return fmt.Errorf("%d layers of %d experts are too many", d.Layers, d.Experts)
	}
	return nil
}

// Step returns the graph of one forward step of d: a prefill where s.Past is 0, a
// decoding step where s.Seq is 1. The logits are of the last token of each sequence.
// Keys and values of tokens before are resident, and co-located with the op that adds
// the step's own.
func (d *Decoder) Step(name string, s Serving) (*graph.Graph, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		name      string
		x         int64
		low, high int64
	}{{"batch", s.Batch, 1, 1 << 16}, {"seq", s.Seq, 1, 1 << 20}, {"past", s.Past, 0, 1 << 24}} {
		if err := between(x.name, x.x, x.low, x.high); err != nil {
			return nil, err
		}
	}
	n := &serving{net: newNet(name, d.DType), d: d, s: s}
	n.forward()
	return n.b.Build()
}

// serving is a Decoder's step being built.
type serving struct {
	*net
	d *Decoder
	s Serving
	// group is the last co-location group.
	group int32
}

// module runs f for the ops of the module of that path, in layer l.
func (n *serving) module(path string, l int, f func()) {
	first := n.b.NumOps()
	n.scope, n.layer = strings.ReplaceAll(path, ".", "/")+"/", int32(l)
	f()
	for i := first; i < n.b.NumOps(); i++ {
		if o := n.b.At(graph.OpID(i)); o.Module == "" {
			o.Module = path
		}
	}
}

// weight adds the weight "path.weight" and its read.
func (n *serving) weight(path string, dims ...int64) tensor {
	read := n.variable("weight", dims...)
	if n.d.Stored == nil {
		return read
	}
	if size, ok := n.d.Stored(path + ".weight"); ok {
		v := n.variableOf(read)
		n.b.At(n.b.TensorAt(v).Producer).Resident = size
		n.b.TensorAt(v).Bytes, n.b.TensorAt(read).Bytes = size, size
	}
	return read
}

// linear is x, [R,in], times a weight of out columns, with a bias where there is one.
func (n *serving) linear(path string, l int, x tensor, out int64, bias bool) (y tensor) {
	n.module(path, l, func() {
		y = n.matmul(x, n.weight(path, n.dim(x, 1), out))
		if bias {
			y = n.bias(y, n.variable("bias", out))
		}
	})
	return y
}

// norm is the root mean square norm of the module of that path.
func (n *serving) norm(path string, l int, x tensor) (y tensor) {
	n.module(path, l, func() { y = n.rmsNorm(x) })
	return y
}

func (n *serving) forward() {
	d, s := n.d, n.s
	var x, table tensor
	n.module("model.embed_tokens", 1, func() {
		input := n.placeholder("input_ids", ints(s.Batch, s.Seq))
		table = n.weight("model.embed_tokens", d.Vocab, d.Hidden)
		x = n.embed(table, n.reshape(input, s.Batch*s.Seq))
	})
	for i := range d.Layers {
		path, l := fmt.Sprintf("model.layers.%d", i), i+1
		y := n.attention(path+".self_attn", l, n.norm(path+".input_layernorm", l, x))
		n.module(path, l, func() { x = n.binary("Add", x, y) })
		y = n.norm(path+".post_attention_layernorm", l, x)
		if d.Experts > 0 {
			y = n.mixture(path+".block_sparse_moe", l, y)
		} else {
			y = n.feedForward(path+".mlp", "gate_proj", "up_proj", "down_proj", l, y)
		}
		n.module(path, l, func() { x = n.binary("Add", x, y) })
	}
	if s.Seq > 1 {
		n.module("model", d.Layers, func() { x = n.gather(x, n.vector(int(s.Batch))) }) // the last tokens
	}
	x = n.norm("model.norm", d.Layers, x)
	n.module("lm_head", d.Layers, func() {
		if d.Tied { // the product reads the table as it lies
			rows := n.dim(x, 0)
			n.product("MatMul", graph.GEMM{Batch: 1, M: rows, N: d.Vocab, K: d.Hidden}, n.of(rows, d.Vocab), x, table)
			return
		}
		n.matmul(x, n.weight("lm_head", d.Hidden, d.Vocab))
	})
}

// attention is causal attention of x, [B*S,d], over the tokens before and its own.
func (n *serving) attention(path string, l int, x tensor) (y tensor) {
	d, b, s := n.d, n.s.Batch, n.s.Seq
	all, group := n.s.Past+s, d.Heads/d.KVHeads
	heads := func(name string, count int64, turn bool) (y tensor) { // [B,heads,S,D]
		y = n.linear(path+"."+name, l, x, count*d.HeadDim, d.Bias)
		n.module(path, l, func() {
			y = n.reshape(y, b, s, count, d.HeadDim)
			if s > 1 {
				y = n.transpose(y, 0, 2, 1, 3)
			} else {
				y = n.reshape(y, b, count, s, d.HeadDim)
			}
			if turn {
				y = n.unary("RotaryEmbedding", y)
			}
		})
		return y
	}
	q := heads("q_proj", d.Heads, true)
	k := heads("k_proj", d.KVHeads, true)
	v := heads("v_proj", d.KVHeads, false)
	n.module(path, l, func() {
		k, v := n.cache("key_cache", k), n.cache("value_cache", v)
		score := n.of(b, d.KVHeads, group*s, all)
		p := n.product("BatchMatMul", graph.GEMM{Batch: b * d.KVHeads, M: group * s, N: all, K: d.HeadDim}, score, append([]tensor{q}, k...)...)
		p = n.softmax(p)
		y = n.product("BatchMatMul", graph.GEMM{Batch: b * d.KVHeads, M: group * s, N: d.HeadDim, K: all}, n.of(b, d.Heads, s, d.HeadDim), append([]tensor{p}, v...)...)
		if s > 1 {
			y = n.transpose(y, 0, 2, 1, 3)
		}
		y = n.reshape(y, b*s, d.Heads*d.HeadDim)
	})
	return n.linear(path+".o_proj", l, y, d.Hidden, false)
}

// cache adds the keys or values x, [B,heads,S,D], to those of the tokens before, and
// returns both.
func (n *serving) cache(name string, x tensor) []tensor {
	if n.s.Past == 0 {
		return []tensor{x}
	}
	s := n.shape(x)
	held := n.of(s[0], s[1], n.s.Past, s[3])
	held.Resident = true
	n.group++
	c := n.add(name, "VariableV2", nil, held)
	n.b.At(c).Resident, n.b.At(c).Group = bytesOf(held), n.group
	old := n.b.Output(c, 0)
	w := n.add(name+"/append", "Assign", []tensor{x, old})
	o := n.b.At(w)
	o.Group, o.FLOPs, o.Bytes = n.group, 0, 2*bytesOf(n.like(x))
	return []tensor{old, x}
}

// feedForward is down(swish(gate(x)) * up(x)).
func (n *serving) feedForward(path, gate, up, down string, l int, x tensor) (y tensor) {
	g := n.linear(path+"."+gate, l, x, n.d.FFN, false)
	u := n.linear(path+"."+up, l, x, n.d.FFN, false)
	n.module(path, l, func() { y = n.binary("Mul", n.unary("Swish", g), u) })
	return n.linear(path+"."+down, l, y, n.d.Hidden, false)
}

// mixture sends each row of x, [R,d], to its best experts, which have even shares, of at
// least a row.
func (n *serving) mixture(path string, l int, x tensor) (y tensor) {
	d, rows := n.d, n.dim(x, 0)
	room := (rows*d.TopK + d.Experts - 1) / d.Experts
	p := n.linear(path+".gate", l, x, d.Experts, false)
	var weight, chosen tensor
	n.module(path, l, func() {
		p = n.softmax(p)
		top := n.add("TopK", "TopK", []tensor{p}, n.of(rows, d.TopK), ints(rows, d.TopK))
		weight, chosen = n.b.Output(top, 0), n.b.Output(top, 1)
	})
	parts := []tensor{chosen, weight}
	for e := range d.Experts {
		expert := fmt.Sprintf("%s.experts.%d", path, e)
		var mine tensor
		n.module(expert, l, func() { mine = n.op("GatherV2", n.of(room, d.Hidden), x, chosen) })
		parts = append(parts, n.feedForward(expert, "w1", "w3", "w2", l, mine))
	}
	n.module(path, l, func() { y = n.op("UnsortedSegmentSum", n.like(x), parts...) })
	return y
}
