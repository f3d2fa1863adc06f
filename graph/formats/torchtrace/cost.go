package torchtrace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"placer/graph"
	"placer/internal/words"
	"placer/units"
)

// product returns the matrix product that an operator amounts to; zero for none. It follows
// itself so many times, 0 for once. in are the tensors among the arguments, in their order.
func (n *etNode) product(kind graph.Kind, in, out []tensor) (g graph.GEMM, repeats int64) {
	short := strings.TrimSuffix(strings.TrimPrefix(n.Name, "aten::"), "_")
	switch {
	case len(in) < 2 || len(out) < 1:
		return g, 0
	case strings.Contains(short, "attention"):
		g = n.attention(short, in)
	case strings.Contains(short, "_rnn"):
		g, repeats = recurrent(short, in)
	case kind == "MatMul" || kind == "BatchMatMul":
		g = multiply(short, in)
	case kind == "GroupedMatMul":
		g = multiplyGroups(in[0].shape, in[1].shape)
	case strings.HasSuffix(short, "convolution_backward"): // gradient, input, weight: both gradients, or one
		if len(in) > 2 {
			if g = convolve(in[1].shape, in[2].shape, in[0].shape, n.flag(7)); g.Batch < 1<<40 && !n.one(10) {
				g.Batch *= 2
			}
		}
	case kind == "Conv2D":
		g = convolve(in[0].shape, in[1].shape, out[0].shape, (short == "convolution" || short == "_convolution" || short == "convolution_overrideable") && n.flag(6))
	case kind == "ConvTranspose":
		g = convolve(in[0].shape, in[1].shape, out[0].shape, true)
	}
	if g.Batch < 1 || g.M < 1 || g.N < 1 || g.K < 1 || float64(g.FLOPs())*float64(max(repeats, 1)) > 1e28 {
		return graph.GEMM{}, 0
	}
	return g, repeats
}

// flag reports whether argument k of the node is true.
func (n *etNode) flag(k int) bool {
	a, err := arguments(n.Inputs, n.InS, n.InT)
	return err == nil && k < len(a.Values) && strings.EqualFold(strings.TrimSpace(string(a.Values[k])), "true")
}

// one reports whether argument k, which says of a convolution's input, weight and bias whether their
// gradients are wanted, leaves the input's or the weight's out.
func (n *etNode) one(k int) bool {
	a, err := arguments(n.Inputs, n.InS, n.InT)
	if err != nil || k >= len(a.Values) {
		return false
	}
	var wanted []bool
	return json.Unmarshal(a.Values[k], &wanted) == nil && len(wanted) == 3 && wanted[0] != wanted[1]
}

// size returns the elements of a shape that a tensor of a trace has.
func size(s []int64) int64 { n, _ := graph.Shape(s).Elements(); return n }

// multiply returns the product of matrices, or of one by a vector; an addend may come
// before them.
func multiply(short string, in []tensor) (g graph.GEMM) {
	if strings.HasPrefix(short, "addmm") || strings.HasPrefix(short, "addmv") || strings.HasPrefix(short, "baddbmm") || strings.HasPrefix(short, "_addmm") {
		in = in[1:]
	}
	if len(in) < 2 {
		return g
	}
	switch a, b := in[0].shape, in[1].shape; {
	case len(a) == 2 && len(b) == 2:
		g = graph.GEMM{Batch: 1, M: a[0], N: b[1], K: a[1]}
	case len(a) == 3 && len(b) == 3:
		g = graph.GEMM{Batch: a[0], M: a[1], N: b[2], K: a[2]}
	case len(a) == 2 && len(b) == 1:
		g = graph.GEMM{Batch: 1, M: a[0], N: 1, K: a[1]}
	}
	return g
}

// multiplyGroups returns the product of groups of rows, as of a mixture's experts: [rows,k] by
// [groups,k,n], [groups,m,k] by [k,columns], or [m,rows] by [rows,n] into [groups,m,n]. Which group has
// how many is not in a shape; all together they are as one product.
func multiplyGroups(a, b []int64) (g graph.GEMM) {
	switch {
	case len(a) == 3 && len(b) == 3:
		g = graph.GEMM{Batch: a[0], M: a[1], N: b[2], K: a[2]}
	case len(a) == 3 && len(b) == 2:
		g = graph.GEMM{Batch: 1, M: a[1], N: b[1], K: a[2]}
	case len(a) == 2 && (len(b) == 2 || len(b) == 3):
		g = graph.GEMM{Batch: 1, M: a[0], N: b[len(b)-1], K: a[1]}
	}
	return g
}

// convolve returns the implicit product of a convolution of x, [batch,in,...], by w,
// [out,in/groups,...], into y, of one to three dimensions. A transposed one has the
// kernel [in,out/groups,...], and each element of x, not of y, meets it.
func convolve(x, w, y []int64, transposed bool) graph.GEMM {
	if len(w) < 3 || len(x) != len(w) || len(y) != len(w) || w[0] < 1 || w[1] < 1 {
		return graph.GEMM{}
	}
	depth := size(w) / w[0] // of each output feature; of a transposed one, what each input feature adds to
	groups := x[1] / w[1]
	if transposed {
		groups = y[1] / w[1]
	}
	if groups < 1 || w[0]%groups != 0 {
		groups = 1
	}
	if transposed {
		return graph.GEMM{Batch: groups, M: size(x) / w[0], N: depth, K: w[0] / groups}
	}
	return graph.GEMM{Batch: groups, M: size(y) / w[0], N: w[0] / groups, K: depth}
}

// causal is the place among the arguments of operators of attention of what says that they are
// causal (PyTorch's native_functions.yaml).
var causal = map[string]int{
	"_scaled_dot_product_flash_attention": 4, "_scaled_dot_product_flash_attention_for_cpu": 4, "_scaled_dot_product_efficient_attention": 6, "_scaled_dot_product_cudnn_attention": 6,
	"_scaled_dot_product_flash_attention_backward": 11, "_scaled_dot_product_flash_attention_for_cpu_backward": 7, "_scaled_dot_product_efficient_attention_backward": 11,
	"_flash_attention_forward": 8, "_flash_attention_backward": 11,
}

// attention returns the products of an attention in one kernel of queries [B,H,S,D] and keys
// [B,Hk,K,D] (graph.Attending). The kernels of flash attention, and the
// memory-efficient ones, have the heads behind the tokens, or all sequences one after
// another, [tokens,H,D], which is priced as one sequence.
func (n *etNode) attention(short string, in []tensor) graph.GEMM {
	backward := strings.Contains(short, "backward")
	if backward { // the output's gradient comes first
		in = in[1:]
	}
	if len(in) < 3 {
		return graph.GEMM{}
	}
	q, k, v := in[0].shape, in[1].shape, in[2].shape
	heads := 1
	if !strings.HasPrefix(short, "_scaled_dot_product") && (strings.Contains(short, "flash") || strings.Contains(short, "efficient")) {
		heads = 2
	}
	var a graph.Attending
	groups := int64(0)
	switch tokens := 3 - heads; {
	case len(q) == 4 && len(k) == 4 && len(v) == 4:
		a, groups = graph.Attending{Heads: q[0], Queries: q[tokens], Seen: k[tokens], KeyDim: q[3], ValueDim: v[3]}, k[heads]
	case len(q) == 3 && len(k) == 3 && len(v) == 3 && heads == 2:
		a, groups = graph.Attending{Heads: 1, Queries: q[0], Seen: k[0], KeyDim: q[2], ValueDim: v[2]}, k[1]
		heads = 1
	default:
		return graph.GEMM{}
	}
	for _, x := range []int64{q[heads], groups, a.Heads, a.Queries, a.Seen, a.KeyDim, a.ValueDim} {
		if x < 1 || x > 1<<30 {
			return graph.GEMM{}
		}
	}
	if at, ok := causal[short]; ok && n.flag(at) && a.Seen >= a.Queries {
		a.Seen = graph.Seen(a.Queries, a.Seen-a.Queries, 0)
	}
	if a.Heads *= groups; q[heads]%groups == 0 {
		a.Group = q[heads] / groups
		a.Queries *= a.Group
	}
	if backward {
		return a.Backward()
	}
	return a.Forward()
}

// recurrent returns the products of the recurrent layers of cuDNN and its like over
// [T,B,in], which follow one another T times: at each step, each matrix of weights by the
// rows of a batch, those of one layer beside those of the next, which is a step behind.
// Over rows of several sequences, whose steps are not known, all of them are one. Backward
// there are two products for each.
func recurrent(short string, in []tensor) (g graph.GEMM, steps int64) {
	x := in[0].shape
	var count, elements int64
	for _, t := range in[1:] {
		if len(t.shape) == 2 && t.shape[0] > 0 {
			if count == 0 {
				g.N = t.shape[0]
			}
			count++
			elements += min(size(t.shape), 1<<40)
		}
	}
	if count == 0 || count > 1<<16 {
		return graph.GEMM{}, 0
	}
	g.K = elements / count / g.N
	switch len(x) {
	case 3:
		steps, g.M = x[0], x[1]
	case 2:
		steps, g.M = 1, x[0]
	}
	if strings.Contains(short, "backward") {
		count *= 2
	}
	if steps < 1 || steps > graph.MaxRepeats {
		return graph.GEMM{}, 0
	}
	g.Batch = count
	return g, steps
}

// recurrentBytes is the device memory that so many steps of recurrent layers move: weights
// in each of them, everything else once.
func recurrentBytes(in, out []tensor, steps int64) units.Bytes {
	moved := 0.
	for k, t := range in {
		moved += float64(t.bytes)
		if k > 0 && len(t.shape) == 2 {
			moved += float64(steps-1) * float64(t.bytes)
		}
	}
	for _, t := range out {
		moved += float64(t.bytes)
	}
	return units.Bytes(min(moved, float64(graph.MaxBytes)))
}

// elementwise returns the arithmetic of an operator that is no product.
func elementwise(kind graph.Kind, in, out []tensor) units.FLOPs {
	facts, _ := graph.FactsOf(kind)
	n := int64(0)
	for _, t := range append(slices.Clone(in), out...) {
		n = max(n, t.bytes/max(t.dtype.Size(), 1))
	}
	return units.FLOPs(facts.FLOPsPerElement * float64(n))
}

// unpriced reports whether the arithmetic of op is not known: that of an operator without
// a kind, or of a product without sizes.
func unpriced(op graph.Op) bool {
	facts, known := graph.FactsOf(op.Kind)
	return op.GEMM.IsZero() && (!known || facts.Class == graph.ClassGEMM || facts.Class == graph.ClassConv)
}

// maxNamed is how many kinds a note names.
const maxNamed = 8

// openNote names the operators whose arithmetic is not known, the most frequent first.
func openNote(open map[graph.Kind]int) string {
	kinds := slices.Sorted(maps.Keys(open))
	slices.SortStableFunc(kinds, func(a, b graph.Kind) int { return open[b] - open[a] })
	var list []string
	total := 0
	for _, k := range kinds {
		total += open[k]
		if len(list) < maxNamed {
			list = append(list, fmt.Sprintf("%d %s", open[k], k))
		}
	}
	if more := len(kinds) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%s more", words.Count(more, "kind", "kinds")))
	}
	return fmt.Sprintf("%s an operation an element at most: %s", words.Count(total, "operator whose arithmetic is not known costs", "operators whose arithmetic is not known cost"), strings.Join(list, ", "))
}
