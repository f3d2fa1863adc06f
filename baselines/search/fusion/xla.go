package fusion

import (
	"placer/graph"
	"placer/graph/fuse"
	"placer/plan"
)

// XLA is what XLA makes of a program that is placed by device: Default, or nothing beside its
// own fusions where the graph was read behind XLA's optimisation.
func XLA(r *fuse.Rules, device []uint8) []uint8 {
	g := r.Graph()
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Kind == "fusion" {
			return None(g.NumOps())
		}
	}
	return Default(r, device)
}

// compiled judges placements as XLA would compile them.
type compiled struct {
	plan.Evaluator
	rules *fuse.Rules
}

// Compiled returns an evaluator that judges decisions without a fusion under XLA's, and others
// as e does. Unlike e it makes that fusion anew for each of them.
func Compiled(e plan.Evaluator, r *fuse.Rules) plan.Evaluator { return &compiled{e, r} }

func (c *compiled) Evaluate(d plan.Decision) plan.Score {
	if d.Fusion == nil {
		d.Fusion = XLA(c.rules, d.Device)
	}
	return c.Evaluator.Evaluate(d)
}

func (c *compiled) Clone() plan.Evaluator { return &compiled{c.Evaluator.Clone(), c.rules} }
