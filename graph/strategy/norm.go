package strategy

import (
	"slices"

	"placer/graph"
)

// Gradients that are clipped by the norm of all of them need one number that all ranks agree on: ranks
// with a share of the gradients, with a part of a product's or with a stage's have the norm of what
// they hold, all-reduce that number once a step, and clip by the result (Megatron-LM,
// megatron/core/optimizer/clip_grads.py, get_grad_norm_fp32; DeepSpeed, get_global_norm; torchtitan,
// clip_grad_norm_). Replicas that have all gradients compute it each.

// norm is the norm of all gradients in a step's graph.
type norm struct {
	of    map[graph.OpID]bool // reductions of one gradient each
	chain map[graph.OpID]bool // what is computed of these alone, and the numbers that only it reads
	whole graph.OpID          // of the chain: the first number that all of these are in
}

// findNorm returns the norm by which m clips its gradients, nil where it does not.
func findNorm(m *Model) *norm {
	g := m.Micro
	x := &norm{of: map[graph.OpID]bool{}, chain: map[graph.OpID]bool{}, whole: graph.None}
	number := func(i graph.OpID) bool {
		t, end := g.Outputs(i)
		return end == t+1 && g.Tensor(t).Bytes <= 8
	}
	for _, t := range m.gradients() {
		for _, v := range g.Consumers(t) {
			if g.Op(v).Phase == graph.Update && g.Op(v).Kind.Class() == graph.ClassReduction && number(v) {
				x.of[v] = true
			}
		}
	}
	if len(x.of) < 2 {
		return nil
	}
	reach := map[graph.OpID]map[graph.OpID]bool{}
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); x.of[i] || o.Phase != graph.Update || o.Kind.Class() == graph.ClassUpdate || holds(o) {
			continue
		}
		reached, alone := map[graph.OpID]bool{}, true
		for _, t := range g.Inputs(i) {
			switch p := g.Tensor(t).Producer; {
			case x.of[p]:
				reached[p] = true
			case x.chain[p]:
				for q := range reach[p] {
					reached[q] = true
				}
			default:
				alone = alone && holds(g.Op(p))
			}
		}
		if !alone || len(reached) == 0 {
			continue
		}
		x.chain[i], reach[i] = true, reached
		if x.whole == graph.None && len(reached) == len(x.of) && number(i) {
			x.whole = i
		}
	}
	if x.whole == graph.None {
		return nil
	}
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); !holds(o) || o.Params > 0 {
			continue
		}
		t, end := g.Outputs(i)
		if c := g.Consumers(t); end == t+1 && len(c) > 0 && !slices.ContainsFunc(c, func(v graph.OpID) bool { return !x.chain[v] }) {
			x.chain[i] = true
		}
	}
	return x
}

// clip gives each stage the norm of its own gradients and what follows of it, and reports whether
// several have gradients.
func (x *untied) clip(p int) bool {
	n := findNorm(x.given)
	if n == nil {
		return false
	}
	at := map[int]place{}
	for i := range n.of {
		here := place{chunk: x.originalChunk[i], block: x.originalBlock[i]}
		if was, ok := at[x.stageOf(i)]; !ok || here.block < was.block {
			at[x.stageOf(i)] = here
		}
	}
	if len(at) < p {
		return false
	}
	x.norm = n
	for i := range n.chain {
		x.copies[i] = map[int]place{}
		for stage, here := range at {
			if stage != x.stageOf(i) {
				x.copies[i][stage] = here
			}
		}
	}
	return true
}

// reduceNorm all-reduces the norm of all gradients among the ranks that have some of them.
func (e *emitter) reduceNorm() {
	c := Collective{Kind: AllReduce, Axis: NormAxis, Ranks: e.s.Pipeline * e.s.Tensor}
	groups := e.data
	if e.s.Data > 1 && (e.s.Sharding >= ShardOptimizer || e.mixtures != nil) {
		c.Ranks, groups = e.s.Ranks(), 1
	}
	if c.Ranks == 1 {
		return
	}
	c.Bytes = e.g.Tensor(first(e.g, e.norms[0])).Bytes
	for group := range groups {
		var of []*replica
		var members []member
		var at []graph.OpID
		for _, n := range e.norms {
			for _, r := range e.replicas {
				if groups == 1 || r.d == group {
					of, at = append(of, r), append(at, n)
					m := member{rank: e.rank(r, n), wait: []graph.OpID{r.once[n]}}
					for _, other := range e.norms {
						if other != n {
							m.others = append(m.others, r.once[other])
						}
					}
					members = append(members, m)
				}
			}
		}
		for k, id := range e.collective(c, "norm", members) {
			of[k].agreed[at[k]] = id
		}
	}
}
