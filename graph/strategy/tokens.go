package strategy

import (
	"fmt"

	"placer/graph"
	"placer/units"
)

// sharing is a step that replicas compute together: each has some of the tokens of every sample.
// Attention alone reads those of others, the keys and values of all (context parallelism: Llama 3,
// arXiv:2407.21783, section 3.3.2; with rings in place of gathers, Ring Attention: Liu et al.,
// arXiv:2310.01889). Of causal attention every rank has early and late tokens, so that all do as much.
type sharing struct {
	g, other    *graph.Graph
	batch, more int64 // samples of each
	ranks, seq  int64
}

// ShareTokens returns the step g, of so many samples, as each of ranks has it that share the tokens
// of its samples out. What of g is of tokens is told by other, the same model's step of another
// number of samples: it grows with them, and has a dimension of as many tokens as attention in one
// kernel has queries. Ops and tensors keep their ids.
func ShareTokens(g *graph.Graph, batch int64, other *graph.Graph, more, ranks int64) (*graph.Graph, error) {
	if g.NumOps() != other.NumOps() || g.NumTensors() != other.NumTensors() || batch == more {
		return nil, fmt.Errorf("graph %s: its ops depend on the batch, so that it cannot be told what is of tokens", g.Name())
	}
	x := &sharing{g: g, other: other, batch: batch, more: more, ranks: ranks}
	if err := x.find(); err != nil {
		return nil, err
	}
	b := graph.NewBuilder(g.Name())
	b.Grow(g.NumOps(), g.NumTensors())
	for i := range graph.OpID(g.NumOps()) {
		o, outs, err := x.part(i)
		if err != nil {
			return nil, fmt.Errorf("graph %s: replicas cannot share its tokens out: %w", g.Name(), err)
		}
		b.Op(o, g.Inputs(i), outs...)
		for _, p := range g.Control(i) {
			b.Control(p, i)
		}
	}
	return b.Build()
}

// find finds how many tokens a sample has.
func (x *sharing) find() error {
	g := x.g
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Kind != graph.Attention || o.Phase != graph.Forward || len(g.Inputs(i)) < 2 {
			continue
		}
		q, k := g.Tensor(g.Inputs(i)[0]).Shape, g.Tensor(g.Inputs(i)[1]).Shape
		if len(q) != 4 || len(k) != 4 {
			return fmt.Errorf("graph %s: %s reads queries %v and keys %v, of which it cannot be told what is of tokens", g.Name(), o.Name, q, k)
		}
		at := 2 // [B,heads,S,D]
		if t, end := g.Outputs(i); q[2] != k[2] && q[1] == k[1] || end-t > 1 && len(g.Tensor(t+1).Shape) == 3 && g.Tensor(t + 1).Shape[2] == q[1] && q[1] != q[2] {
			at = 1 // [B,S,heads,D]
		}
		switch {
		case q[at] != k[at]:
			return fmt.Errorf("graph %s: replicas cannot share its tokens out: %s has %d queries and %d keys", g.Name(), o.Name, q[at], k[at])
		case x.seq > 0 && x.seq != q[at]:
			return fmt.Errorf("graph %s: replicas cannot share its tokens out: attention is among %d of them and among %d (%s)", g.Name(), x.seq, q[at], o.Name)
		}
		x.seq = q[at]
	}
	switch {
	case x.seq == 0:
		return fmt.Errorf("graph %s: it has no attention in one kernel, among whose tokens replicas could share it out", g.Name())
	case x.seq%x.ranks != 0:
		return fmt.Errorf("graph %s: %d replicas cannot share %d tokens out evenly", g.Name(), x.ranks, x.seq)
	}
	return nil
}

// part returns op i and what it makes as a rank has it.
func (x *sharing) part(i graph.OpID) (o graph.Op, outs []graph.Tensor, err error) {
	o = *x.g.Op(i)
	grown := x.other.Op(i)
	grows := o.FLOPs != grown.FLOPs || o.Bytes != grown.Bytes
	for t, end := x.g.Outputs(i); t < end; t++ {
		y := *x.g.Tensor(t)
		if x.other.Tensor(t).Bytes != y.Bytes {
			grows = true
			at := x.dimension(t)
			switch {
			case at >= 0:
				x.divide(&y, at)
			case y.Shape == nil:
				y.Bytes = units.Bytes(ceil(int64(y.Bytes), x.ranks))
			case int64(y.Bytes) > x.batch*y.DType.Size(): // a number for each sample every rank may have
				return o, nil, fmt.Errorf("%s (%s) makes %v of all tokens", o.Name, o.Kind, y.Shape)
			}
		}
		outs = append(outs, y)
	}
	if !grows || o.Phase == graph.Update {
		return o, outs, nil
	}
	if c := o.Kind.Class(); c == graph.ClassConv || c == graph.ClassPool || o.Kind == graph.CausalConv || o.Repeats > 1 {
		return o, nil, fmt.Errorf("%s (%s) reads neighbouring tokens", o.Name, o.Kind)
	}
	if o.GEMM, err = x.product(i); err != nil {
		return o, nil, err
	}
	o.FLOPs = units.FLOPs(x.share(float64(o.FLOPs), float64(grown.FLOPs)))
	o.Bytes = units.Bytes(x.share(float64(o.Bytes), float64(grown.Bytes)))
	o.Workspace = units.Bytes(x.share(float64(o.Workspace), float64(grown.Workspace)))
	for _, t := range x.g.Inputs(i) { // keys and values are read whole
		if readsAll(x.g, t, i) {
			o.Bytes += x.g.Tensor(t).Bytes * units.Bytes(x.ranks-1) / units.Bytes(x.ranks)
		}
	}
	return o, outs, nil
}

// share returns what a rank has of a, of which it is b in the other graph: of what grows with the
// samples its share, and all else.
func (x *sharing) share(a, b float64) float64 {
	of := (b - a) / float64(x.more-x.batch) * float64(x.batch)
	of = min(max(of, 0), a)
	return a - of + of/float64(x.ranks)
}

// divide gives tensor y a rank's part of dimension at.
func (x *sharing) divide(y *graph.Tensor, at int) {
	was := y.Shape[at]
	y.Shape = append(graph.Shape{}, y.Shape...)
	y.Shape[at] = ceil(was, x.ranks)
	y.Bytes = units.Bytes(float64(y.Bytes) / float64(was) * float64(y.Shape[at]))
}

// dimension returns the dimension of tensor t that is of tokens, -1 where there is none: one that
// grows with the samples and has all their tokens, else one of a sample's tokens, else one that
// grows with the samples and is not their number, such as an expert's rows.
func (x *sharing) dimension(t graph.TensorID) int {
	a, b := x.g.Tensor(t).Shape, x.other.Tensor(t).Shape
	if len(a) != len(b) {
		return -1
	}
	for k, d := range a {
		if d != b[k] && d%x.batch == 0 && x.tokens(d/x.batch) {
			return k
		}
	}
	for k, d := range a {
		if d == b[k] && d > 1 && x.near(d) {
			return k
		}
	}
	for k, d := range a {
		if d == b[k] && d%x.seq == 0 && d > 0 {
			return k
		}
	}
	for k, d := range a {
		if d != b[k] && d != x.batch {
			return k
		}
	}
	return -1
}

// tokens reports whether a dimension of so many for each sample is of tokens: once or several times
// each, as rows for the experts chosen for it.
func (x *sharing) tokens(n int64) bool { return n > 0 && n%x.seq == 0 || n > 1 && x.near(n) }

// near reports whether n are a sample's tokens, or those but for one at an end, as where tokens are
// set beside the next ones.
func (x *sharing) near(n int64) bool { return n >= x.seq-1 && n <= x.seq+1 }

// product returns the product that a rank does of op i.
func (x *sharing) product(i graph.OpID) (m graph.GEMM, err error) {
	o := x.g.Op(i)
	m, grown := o.GEMM, x.other.Op(i).GEMM
	switch {
	case m.IsZero():
	case o.Kind == graph.Attention || o.Kind == graph.AttentionGrad:
		m.M = ceil(m.M, x.ranks)
	case m.Batch != grown.Batch && x.ofSamples(i) > 1 && min(m.M, m.N, m.K) > 1:
		return m, fmt.Errorf("%s (%s) multiplies activations of all tokens, as attention does that is not one kernel", o.Name, o.Kind)
	case m.Batch != grown.Batch && x.near(m.N):
		m.N = ceil(m.N, x.ranks)
	case m.Batch != grown.Batch || m.M != grown.M:
		m.M = ceil(m.M, x.ranks)
	case m.K != grown.K:
		m.K = ceil(m.K, x.ranks)
	case m.N != grown.N:
		m.N = ceil(m.N, x.ranks)
	}
	return m, nil
}

// ofSamples counts the inputs of op i that grow with the samples.
func (x *sharing) ofSamples(i graph.OpID) (n int) {
	for _, t := range x.g.Inputs(i) {
		if x.g.Tensor(t).Bytes != x.other.Tensor(t).Bytes {
			n++
		}
	}
	return n
}

// readsAll reports whether op i, attention or its gradient, reads tensor t of all tokens: keys or
// values.
func readsAll(g *graph.Graph, t graph.TensorID, i graph.OpID) bool {
	o, in := g.Op(i), g.Inputs(i)
	from := 1 // behind queries
	switch o.Kind {
	case graph.Attention:
	case graph.AttentionGrad: // the gradient of the output comes first
		from = 2
	default:
		return false
	}
	to := from + 2
	if f := o.Forward; o.Kind == graph.AttentionGrad && f != graph.None {
		to = min(to, len(g.Inputs(f))+1)
	}
	for k := from; k < min(to, len(in)); k++ {
		if in[k] == t {
			return keyOrValue(g, t)
		}
	}
	return false
}

// keyOrValue reports whether tensor t, which attention reads, is of keys or values and of the
// samples: not one number a head, as sinks are, nor which keys a query reads.
func keyOrValue(g *graph.Graph, t graph.TensorID) bool {
	x := g.Tensor(t)
	return len(x.Shape) == 4 && x.DType != graph.I32 && x.DType != graph.I64 && x.DType != graph.Bool
}

// givesAll reports whether tensor t, which op i makes, is a gradient of keys or values of all
// tokens, of which a rank has the sum over its own queries.
func givesAll(g *graph.Graph, t graph.TensorID, i graph.OpID) bool {
	at := int(t - first(g, i))
	if g.Op(i).Kind != graph.AttentionGrad || at < 1 || at > 2 || at+1 >= len(g.Inputs(i)) {
		return false
	}
	return readsAll(g, g.Inputs(i)[at+1], i) && g.Tensor(t).Shape.Equal(g.Tensor(g.Inputs(i)[at+1]).Shape)
}
