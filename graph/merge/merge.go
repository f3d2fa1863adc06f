package merge

import (
	"slices"
	"strings"

	"placer/graph"
	"placer/units"
)

// Which says which products are merged.
type Which uint8

// What is merged.
const (
	Nothing   Which = iota
	Attention       // queries, keys and values
	All             // and gate and up
)

// Products returns g with products merged, each with its biases, and g itself where there are
// none, or where the step trains: a file of a training step has the products that it ran. Ops
// that read a part of a product read the columns of the merged one where they lie.
func Products(g *graph.Graph, which Which) (*graph.Graph, error) {
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase != graph.Forward {
			return g, nil
		}
	}
	m := &merger{g: g, of: make([]*group, g.NumOps()), weight: make([]bool, g.NumOps())}
	if which == Nothing || !m.find(which) {
		return g, nil
	}
	return m.rewrite()
}

// part is a product of a group.
type part struct {
	product graph.OpID
	weight  []graph.OpID // the variable, then views of it
	add     graph.OpID   // that adds its bias, None without
	bias    []graph.OpID
	out     graph.TensorID
}

// group is what becomes one product.
type group struct {
	parts []part
	x     graph.TensorID
}

type merger struct {
	g      *graph.Graph
	of     []*group // [N] of products, and of what adds their biases
	weight []bool   // [N] that the merged weights take the place of
}

// find finds groups.
func (m *merger) find(which Which) (some bool) {
	g := m.g
	by := map[graph.TensorID][]part{}
	var order []graph.TensorID
	for i := range graph.OpID(g.NumOps()) {
		if p, x, ok := m.part(i); ok {
			if by[x] == nil {
				order = append(order, x)
			}
			by[x] = append(by[x], p)
		}
	}
	for _, x := range order {
		var gated []part
		var within []string // modules that attend
		attention := map[string][]part{}
		for _, p := range by[x] {
			if !m.attends(p.out) {
				gated = append(gated, p)
				continue
			}
			module := parent(g.Op(p.product))
			if attention[module] == nil {
				within = append(within, module)
			}
			attention[module] = append(attention[module], p)
		}
		for _, module := range within {
			some = m.join(x, attention[module]) || some
		}
		if which == All && len(gated) > 1 {
			for k, p := range gated {
				for _, q := range gated[k+1:] {
					if m.of[p.product] == nil && m.of[q.product] == nil && m.meet(p.out, q.out) {
						some = m.join(x, []part{p, q}) || some
					}
				}
			}
		}
	}
	return some
}

// parent returns the module that the linear layer of product o is part of.
func parent(o *graph.Op) string {
	if strings.HasPrefix(o.Name, strings.ReplaceAll(o.Module, ".", "/")+"/merged/") { // of several layers
		return o.Module
	}
	return o.Module[:max(0, strings.LastIndexByte(o.Module, '.'))]
}

// part returns product i with its bias, where it is one of an activation x, [R,K], and a weight,
// [K,N], that nothing else reads.
func (m *merger) part(i graph.OpID) (p part, x graph.TensorID, ok bool) {
	g := m.g
	o, in := g.Op(i), g.Inputs(i)
	if o.GEMM.IsZero() || o.GEMM.Batch != 1 || o.Kind == graph.Attention || len(in) != 2 || len(g.Control(i)) > 0 {
		return p, 0, false
	}
	p = part{product: i, add: graph.None, out: output(g, i)}
	if p.weight = m.held(in[1], i); p.weight == nil || m.held(in[0], i) != nil {
		return p, 0, false
	}
	if w := g.Tensor(in[1]).Shape; len(w) != 2 || w[0] != o.GEMM.K || w[1] != o.GEMM.N {
		return p, 0, false
	}
	if c := g.Consumers(p.out); len(c) == 1 && g.Op(c[0]).Kind == "BiasAdd" && len(g.Inputs(c[0])) == 2 {
		if b := m.held(g.Inputs(c[0])[1], c[0]); b != nil {
			p.add, p.bias, p.out = c[0], b, output(g, c[0])
		}
	}
	return p, in[0], true
}

// held returns the variable that t is, and views of it, where op i alone reads them; else nil.
func (m *merger) held(t graph.TensorID, i graph.OpID) (ops []graph.OpID) {
	g := m.g
	for reader := i; ; {
		p := g.Tensor(t).Producer
		if c := g.Consumers(t); len(c) != 1 || c[0] != reader || len(g.Control(p)) > 0 {
			return nil
		}
		ops = append(ops, p)
		switch in := g.Inputs(p); {
		case g.Op(p).Params > 0 && len(in) == 0:
			slices.Reverse(ops)
			return ops
		case len(in) != 1 || g.Op(p).Kind.Class() != graph.ClassMeta:
			return nil
		default:
			reader, t = p, in[0]
		}
	}
}

func output(g *graph.Graph, i graph.OpID) graph.TensorID {
	t, _ := g.Outputs(i)
	return t
}

// mostBetween bounds the ops that are looked at behind a product.
const mostBetween = 64

// attends reports whether tensor t becomes queries, keys or values: the next products that read what
// it becomes are of activations alone.
func (m *merger) attends(t graph.TensorID) bool {
	g := m.g
	seen := map[graph.OpID]bool{}
	queue := []graph.TensorID{t}
	found := false
	for len(queue) > 0 && len(seen) < mostBetween {
		t, queue = queue[0], queue[1:]
		for _, v := range g.Consumers(t) {
			if seen[v] {
				continue
			}
			seen[v] = true
			if o := g.Op(v); !o.GEMM.IsZero() {
				if o.Kind != graph.Attention && o.GEMM.Batch == 1 {
					return false
				}
				found = true
				continue
			}
			for u, end := g.Outputs(v); u < end; u++ {
				queue = append(queue, u)
			}
		}
	}
	return found
}

// meet reports whether one op reads tensors a and b, or what single ops make of each element of
// them.
func (m *merger) meet(a, b graph.TensorID) bool {
	return slices.ContainsFunc(m.readers(a), func(v graph.OpID) bool { return slices.Contains(m.readers(b), v) })
}

// readers are the ops that read t, and those behind the ones with one input.
func (m *merger) readers(t graph.TensorID) (all []graph.OpID) {
	g := m.g
	for _, v := range g.Consumers(t) {
		if all = append(all, v); len(g.Inputs(v)) == 1 && g.Op(v).Kind.Class() == graph.ClassElementwise {
			all = append(all, g.Consumers(output(g, v))...)
		}
	}
	return all
}

// join makes parts that read x a group, where there are several and all are alike: of one type, with
// a bias or without.
func (m *merger) join(x graph.TensorID, parts []part) bool {
	if len(parts) < 2 {
		return false
	}
	g := m.g
	first := parts[0]
	w := func(p part) *graph.Tensor { return g.Tensor(output(g, p.weight[len(p.weight)-1])) }
	for _, p := range parts[1:] {
		if w(p).DType != w(first).DType || len(p.weight) != len(first.weight) || len(p.bias) != len(first.bias) || g.Op(p.product).Kind != g.Op(first.product).Kind || g.Op(p.product).DType != g.Op(first.product).DType {
			return false
		}
	}
	joined := &group{parts: parts, x: x}
	for _, p := range parts {
		m.of[p.product] = joined
		if p.add != graph.None {
			m.of[p.add] = joined
		}
		for _, i := range slices.Concat(p.weight, p.bias) {
			m.weight[i] = true
		}
	}
	return true
}

// rewrite builds the graph.
func (m *merger) rewrite() (*graph.Graph, error) {
	g := m.g
	b := graph.NewBuilder(g.Name())
	b.Grow(g.NumOps(), g.NumTensors())
	op, tensor := make([]graph.OpID, g.NumOps()), make([]graph.TensorID, g.NumTensors())
	for i := range graph.OpID(g.NumOps()) {
		if joined := m.of[i]; joined != nil {
			if i == joined.parts[0].product {
				id, outs := m.merged(b, joined, tensor)
				for k, p := range joined.parts {
					op[p.product], tensor[p.out] = id, outs[k]
					if p.add != graph.None {
						op[p.add] = id
					}
				}
			}
			continue
		}
		if m.weight[i] { // that of the group is there where its product is
			continue
		}
		in := make([]graph.TensorID, len(g.Inputs(i)))
		for k, t := range g.Inputs(i) {
			in[k] = tensor[t]
		}
		var outs []graph.Tensor
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			outs = append(outs, *g.Tensor(t))
		}
		o := *g.Op(i)
		op[i] = b.Op(o, in, outs...)
		for t := first; t < end; t++ {
			tensor[t] = b.Output(op[i], int(t-first))
		}
		for _, c := range g.Control(i) {
			b.Control(op[c], op[i])
		}
	}
	return b.Build()
}

// merged adds the product of a group, with weights and bias, and returns the op that gives it all,
// and the columns of each part.
func (m *merger) merged(b *graph.Builder, joined *group, tensor []graph.TensorID) (graph.OpID, []graph.TensorID) {
	g := m.g
	parts := joined.parts
	module := common(g, parts)
	pick := func(of func(part) graph.OpID) (ops []graph.OpID) {
		for _, p := range parts {
			ops = append(ops, of(p))
		}
		return ops
	}
	chain := func(of func(part) []graph.OpID) (t graph.TensorID) {
		for k := range of(parts[0]) {
			var in []graph.TensorID
			if k > 0 {
				in = []graph.TensorID{t}
			}
			t = m.sum(b, module, pick(func(p part) graph.OpID { return of(p)[k] }), in)
		}
		return t
	}
	weight := chain(func(p part) []graph.OpID { return p.weight })
	y := m.sum(b, module, pick(func(p part) graph.OpID { return p.product }), []graph.TensorID{tensor[joined.x], weight})
	id := b.TensorAt(y).Producer
	b.At(id).Bytes -= units.Bytes(len(parts)-1) * g.Tensor(joined.x).Bytes // which is read once
	if parts[0].add != graph.None {
		y = m.sum(b, module, pick(func(p part) graph.OpID { return p.add }), []graph.TensorID{y, chain(func(p part) []graph.OpID { return p.bias })})
		id = b.TensorAt(y).Producer
	}
	outs := make([]graph.TensorID, len(parts))
	for k, p := range parts {
		o := *g.Op(g.Tensor(p.out).Producer)
		view := graph.Op{Name: o.Name + "/columns", Kind: graph.Columns, Phase: o.Phase, DType: o.DType, Layer: o.Layer, Module: o.Module, Forward: graph.None}
		outs[k] = b.Output(b.Op(view, []graph.TensorID{y}, *g.Tensor(p.out)), 0)
	}
	return id, outs
}

// sum adds the op that does what ops do, side by side along the last dimension of their results.
func (m *merger) sum(b *graph.Builder, module string, ops []graph.OpID, in []graph.TensorID) graph.TensorID {
	g := m.g
	o, t := *g.Op(ops[0]), *g.Tensor(output(g, ops[0]))
	t.Shape = slices.Clone(t.Shape)
	for _, i := range ops[1:] {
		x, u := g.Op(i), g.Tensor(output(g, i))
		o.FLOPs, o.Bytes, o.Resident, o.Params, o.Workspace = o.FLOPs+x.FLOPs, o.Bytes+x.Bytes, o.Resident+x.Resident, o.Params+x.Params, o.Workspace+x.Workspace
		o.GEMM.N += x.GEMM.N
		t.Bytes += u.Bytes
		t.Shape[len(t.Shape)-1] += u.Shape[len(u.Shape)-1]
	}
	if module != "" && o.Module != "" {
		o.Name = strings.Replace(o.Name, strings.ReplaceAll(o.Module, ".", "/"), strings.ReplaceAll(module, ".", "/")+"/merged", 1)
		o.Module = module
	} else {
		o.Name += "/merged"
	}
	o.Forward = graph.None
	return b.Output(b.Op(o, in, t), 0)
}

// common returns the module that those of all parts are of, "" where there is none.
func common(g *graph.Graph, parts []part) string {
	at := strings.Split(g.Op(parts[0].product).Module, ".")
	for _, p := range parts[1:] {
		other := strings.Split(g.Op(p.product).Module, ".")
		k := 0
		for k < len(at) && k < len(other) && at[k] == other[k] {
			k++
		}
		at = at[:k]
	}
	return strings.Join(at, ".")
}
