package verdict

import (
	"context"

	"placer/baselines/search/fusion"
	"placer/plan"
)

// dressed is a method that places alone, whose placement is judged under more orders and
// fusions than the problem's: everything fused, and what the known plan has.
type dressed struct {
	plan.Placer
	known plan.Decision // Device is nil where there is none
}

func (d dressed) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	out, err := d.Placer.Place(ctx, p)
	if err != nil || out.Priority != nil || out.Fusion != nil {
		return out, err
	}
	var under []plan.Decision
	if p.Decides(plan.Fuse) {
		under = append(under, plan.Decision{Priority: p.Priority, Fusion: fusion.All(p.Graph.NumOps())})
	}
	if d.known.Device != nil {
		under = append(under, plan.Decision{Priority: p.Priority, Fusion: d.known.Fusion}, plan.Decision{Priority: d.known.Priority, Fusion: d.known.Fusion})
	}
	for _, u := range under {
		if ctx.Err() != nil {
			break
		}
		u.Device = out.Device
		out.Evaluations++
		if s := p.Evaluator.Evaluate(u); s.Better(out.Score) {
			out.Decision, out.Score = u, s
		}
	}
	return out, nil
}
