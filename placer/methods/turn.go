package methods

import (
	"context"

	"placer/plan"
)

// turn is a method that decides on some tasks of a plan and leaves the others as they are
// in it.
type turn struct {
	plan.Placer
	tasks plan.Tasks
	from  plan.Decision
}

// Place is as plan.Placer says.
func (t turn) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	q := *p
	q.Tasks, q.Decision = t.tasks, t.from.Or(p.Decision)
	if p.Report != nil {
		q.Report = func(x plan.Progress) {
			if x.Device != nil {
				x.Decision = x.Decision.Or(q.Decision)
			}
			p.Report(x)
		}
	}
	out, err := t.Placer.Place(ctx, &q)
	if out != nil {
		out.Decision = out.Decision.Or(q.Decision)
	}
	return out, err
}
