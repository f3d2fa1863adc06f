package strategy

import (
	"slices"

	"placer/graph"
)

// Mixtures says what expert parallelism shares out (GShard: Lepikhin et al., arXiv:2006.16668,
// section 3; DeepSpeed-MoE: Rajbhandari et al., arXiv:2201.05596). Each rank of a group of
// replicas has some of the experts, and is sent the rows of all of them that these are chosen
// for. It is found by structure, in the forward pass of one micro-batch, in two forms:
//
//   - products of rows, [R,in] or [E,R,in], with the weights of all experts, [E,in,out], and what
//     works on their results row by row, biases of experts included: a rank does a share of each;
//   - rows that computed indices pick from an activation, once for each expert, and the products
//     with weights, and ops row by row, that nothing else enters: a rank does those of its experts.
//
// Gradients, weights and what updates these follow.
type Mixtures struct {
	m *Model
	// Of says of each op, [N], that it is of experts: it works on rows that were sent, or holds,
	// sums or updates their weights.
	Of []bool
	// Expert is the expert, from 0, that each op, [N], is of alone, of Among ones in its layer; -1
	// where it is of all or of none.
	Expert, Among []int32
	// Experts is what their numbers have in common, the greatest common divisor; 0: none.
	Experts int64
	parts   []bool // [tensors] that a rank has of its experts alone
	tangled bool   // experts share weights
}

// FindMixtures returns what of m are experts.
func FindMixtures(m *Model) *Mixtures {
	n := m.Micro.NumOps()
	x := &Mixtures{m: m, Of: make([]bool, n), Expert: make([]int32, n), Among: make([]int32, n), parts: make([]bool, m.Micro.NumTensors())}
	for i := range x.Expert {
		x.Expert[i] = -1
	}
	x.together()
	x.apart()
	if x.Experts == 0 {
		return x
	}
	x.holders()
	x.backward()
	x.holders() // what gradients alone read
	x.updates()
	if x.tangled {
		return &Mixtures{m: m, Of: make([]bool, n), Expert: x.Expert, Among: x.Among, parts: make([]bool, len(x.parts))}
	}
	return x
}

// together finds products with the weights of all experts of a layer.
func (x *Mixtures) together() {
	g := x.m.Micro
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase != graph.Forward || x.m.once[i] {
			continue
		}
		if w, ok := x.weights(i); ok {
			x.take(i, -1, 0)
			x.Experts = gcd(x.Experts, g.Tensor(w).Shape[0])
		} else if x.byRow(i) {
			x.take(i, -1, 0)
			for _, t := range g.Inputs(i) {
				if p := g.Tensor(t).Producer; x.picks(p) {
					x.take(p, -1, 0)
				}
			}
		}
	}
}

// weights returns the weights of all experts that product i reads.
func (x *Mixtures) weights(i graph.OpID) (graph.TensorID, bool) {
	g := x.m.Micro
	in := factorsOf(g, i)
	if g.Op(i).GEMM.IsZero() || len(in) < 2 || x.m.once[g.Tensor(in[0]).Producer] {
		return 0, false
	}
	rows, w := g.Tensor(in[0]).Shape, g.Tensor(in[1]).Shape
	if !x.m.once[g.Tensor(in[1]).Producer] || len(w) != 3 || w[0] < 2 {
		return 0, false
	}
	return in[1], len(rows) == 2 && w[1] == rows[1] || len(rows) == 3 && rows[0] == w[0] && w[1] == rows[2]
}

// byRow reports whether op i works on each row of experts' results alone.
func (x *Mixtures) byRow(i graph.OpID) bool {
	_, same := x.readsOf(i)
	return same
}

// readsOf returns an op of experts that op i reads from in its passes, and whether it reads
// nothing else there but of the same expert, or of all, and makes a row of each row.
func (x *Mixtures) readsOf(i graph.OpID) (of graph.OpID, same bool) {
	g := x.m.Micro
	if c := g.Op(i).Kind.Class(); c != graph.ClassElementwise && c != graph.ClassMeta {
		return graph.None, false
	}
	of = graph.None
	rows := int64(0)
	for _, t := range g.Inputs(i) {
		p := g.Tensor(t).Producer
		switch {
		case x.m.once[p] || x.picks(p):
		case !x.Of[p] || of != graph.None && x.Expert[p] != x.Expert[of]:
			return of, false
		default:
			of, rows = p, leading(g.Tensor(t).Shape)
		}
	}
	return of, of != graph.None && leading(g.Tensor(first(g, i)).Shape) == rows
}

// picks reports whether op i gives each row the vector of its expert, as biases are: of a weight
// that has one for each.
func (x *Mixtures) picks(i graph.OpID) bool {
	g := x.m.Micro
	in := g.Inputs(i)
	if x.m.once[i] || g.Op(i).Kind.Class() != graph.ClassGather || len(in) < 2 || x.Experts < 2 {
		return false
	}
	p, shape := g.Tensor(in[0]).Producer, g.Tensor(in[0]).Shape
	return x.m.once[p] && x.trained(p) && len(shape) == 2 && shape[0]%x.Experts == 0
}

// leading returns the size of the first dimension of a shape, 1 of a number's.
func leading(s graph.Shape) int64 {
	if len(s) == 0 {
		return 1
	}
	return s[0]
}

// take makes op i one of an expert among so many, or of all of a layer.
func (x *Mixtures) take(i graph.OpID, expert, among int32) {
	x.Of[i], x.Expert[i], x.Among[i] = true, expert, among
	for t, end := x.m.Micro.Outputs(i); t < end; t++ {
		x.parts[t] = true
	}
}

// apart finds experts that have ops of their own: rows of one activation that computed
// indices pick for each.
func (x *Mixtures) apart() {
	g := x.m.Micro
	found := map[graph.TensorID][][]graph.OpID{}
	var order []graph.TensorID
	for i := range graph.OpID(g.NumOps()) {
		in := g.Inputs(i)
		if o := g.Op(i); o.Phase != graph.Forward || o.Kind.Class() != graph.ClassGather || len(in) < 2 || x.m.once[g.Tensor(in[0]).Producer] || x.m.once[g.Tensor(in[1]).Producer] {
			continue
		}
		if ops := x.behind(first(g, i)); ops != nil {
			if found[in[0]] == nil {
				order = append(order, in[0])
			}
			found[in[0]] = append(found[in[0]], ops)
		}
	}
	for _, t := range order {
		all := found[t]
		if len(all) < 2 || slices.ContainsFunc(all, func(ops []graph.OpID) bool { return len(ops) != len(all[0]) }) {
			continue
		}
		x.Experts = gcd(x.Experts, int64(len(all)))
		for e, ops := range all {
			for _, i := range ops {
				x.take(i, int32(e), int32(len(all)))
			}
		}
	}
}

// mostOfExpert bounds the ops of an expert in the forward pass.
const mostOfExpert = 256

// behind returns the ops of the expert that reads rows, ascending: products with weights, and what
// works on their results row by row, that no other activation enters; nil where there are none.
func (x *Mixtures) behind(rows graph.TensorID) (ops []graph.OpID) {
	g := x.m.Micro
	inside := map[graph.TensorID]bool{rows: true}
	var wait []graph.OpID // readers to be looked at, ascending
	add := func(t graph.TensorID) {
		for _, v := range g.Consumers(t) {
			if at, ok := slices.BinarySearch(wait, v); !ok && g.Op(v).Phase == graph.Forward {
				wait = slices.Insert(wait, at, v)
			}
		}
	}
	add(rows)
	products := 0
	for len(wait) > 0 && len(ops) < mostOfExpert {
		v := wait[0]
		wait = wait[1:]
		o := g.Op(v)
		product := !o.GEMM.IsZero()
		if !product && o.Kind.Class() != graph.ClassElementwise || x.Of[v] {
			continue
		}
		weight, all := false, true
		for _, t := range g.Inputs(v) {
			once := x.m.once[g.Tensor(t).Producer]
			all = all && (once || inside[t])
			weight = weight || once
		}
		if !all || product && !weight {
			continue
		}
		if product {
			products++
		}
		ops = append(ops, v)
		for t, end := g.Outputs(v); t < end; t++ {
			inside[t] = true
			add(t)
		}
	}
	for _, v := range g.Consumers(rows) {
		if g.Op(v).Phase == graph.Forward && (g.Op(v).GEMM.IsZero() || !slices.Contains(ops, v)) {
			return nil
		}
	}
	if products == 0 {
		return nil
	}
	return ops
}

// backward lets gradients follow what they are gradients of, and sums of such.
func (x *Mixtures) backward() {
	g := x.m.Micro
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Phase != graph.Backward || x.m.once[i] {
			continue
		}
		if f := o.Forward; f != graph.None && x.Of[f] { // of an op, or of a weight
			x.take(i, x.Expert[f], x.Among[f])
		} else if of, same := x.readsOf(i); same && o.Kind.Class() == graph.ClassElementwise {
			x.take(i, x.Expert[of], x.Among[of])
		}
	}
}

// holders takes the weights of experts, and what is in one group with them: moments, master
// weights, updates.
func (x *Mixtures) holders() {
	g := x.m.Micro
	groups := map[int32]graph.OpID{}
	for i := range graph.OpID(g.NumOps()) {
		if !x.Of[i] || x.m.once[i] {
			continue
		}
		for _, t := range g.Inputs(i) {
			if x.m.once[g.Tensor(t).Producer] {
				x.hold(t, i, groups)
			}
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		if of, ok := groups[g.Op(i).Group]; ok && x.m.once[i] && g.Op(i).Group > 0 {
			x.takeOnce(i, of)
		}
	}
}

// hold takes what makes tensor t, a weight or a bias that op i reads.
func (x *Mixtures) hold(t graph.TensorID, i graph.OpID, groups map[int32]graph.OpID) {
	g := x.m.Micro
	p := g.Tensor(t).Producer
	shape := g.Tensor(t).Shape
	if x.Expert[i] < 0 {
		if len(shape) < 2 || shape[0]%x.Experts != 0 {
			return
		}
	} else if !x.trained(p) {
		return
	}
	if x.Of[p] { // already
		x.tangled = x.tangled || x.Expert[p] != x.Expert[i]
		return
	}
	x.takeOnce(p, i)
	if k := g.Op(p).Group; k > 0 {
		groups[k] = p
	}
	for _, u := range g.Inputs(p) {
		if g.Tensor(u).Bytes == g.Tensor(t).Bytes || g.Tensor(u).Shape.Equal(shape) {
			x.hold(u, i, groups)
		}
	}
}

// takeOnce takes op i, which is there once, as op of is taken.
func (x *Mixtures) takeOnce(i, of graph.OpID) {
	x.tangled = x.tangled || x.Of[i] && x.Expert[i] != x.Expert[of]
	x.take(i, x.Expert[of], x.Among[of])
}

// trained reports whether op i is a trained variable or made of one.
func (x *Mixtures) trained(i graph.OpID) bool {
	g := x.m.Micro
	for {
		in := g.Inputs(i)
		if g.Op(i).Params > 0 || len(in) == 0 || !x.m.once[g.Tensor(in[0]).Producer] {
			return g.Op(i).Params > 0
		}
		i = g.Tensor(in[0]).Producer
	}
}

// updates lets what clips and scales gradients follow these. Norms of all gradients are added
// up on every rank, of those that it has.
func (x *Mixtures) updates() {
	g := x.m.Micro
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase != graph.Update || x.Of[i] {
			continue
		}
		of, mixed := graph.TensorID(-1), false
		for _, t := range g.Inputs(i) {
			if !x.parts[t] {
				continue
			}
			if of >= 0 && x.Expert[g.Tensor(t).Producer] != x.Expert[g.Tensor(of).Producer] {
				mixed = true
			}
			of = t
		}
		if of < 0 || mixed {
			continue
		}
		p := g.Tensor(of).Producer
		x.take(i, x.Expert[p], x.Among[p])
		for t, end := g.Outputs(i); t < end; t++ {
			x.parts[t] = x.Expert[p] >= 0 || g.Tensor(t).Bytes == g.Tensor(of).Bytes
		}
	}
}

// Crosses reports whether rows of tensor t are sent, to experts or back, for op i to read.
func (x *Mixtures) Crosses(t graph.TensorID, i graph.OpID) bool {
	p := x.m.Micro.Tensor(t).Producer
	return !x.m.once[p] && !x.m.once[i] && x.Of[p] != x.Of[i]
}

// Has reports whether rank k of n that share experts out has a part of op i.
func (x *Mixtures) Has(i graph.OpID, k, n int) bool {
	return !x.Of[i] || x.Expert[i] < 0 || int(x.Expert[i])*n/int(x.Among[i]) == k
}

// share returns in how many parts n ranks share what op i does.
func (x *Mixtures) share(i graph.OpID, n int) int64 {
	if x.Of[i] && x.Expert[i] < 0 {
		return int64(n)
	}
	return 1
}
