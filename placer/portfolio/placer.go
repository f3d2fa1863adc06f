package portfolio

import (
	"context"
	"fmt"

	"placer/baselines/budget"
	"placer/plan"
)

// Name is the name of the method.
const Name = "portfolio"

// Placer shares a budget between arms.
//
// It works in rounds. In each, every walker pulls one arm for the same slice of the
// budget; between rounds they exchange the best plan. A round takes half of what the
// rounds before it took together, so that slices grow with the budget, and late pulls,
// which find less, have more time for it. The first walker, and every second one, works on
// the best plan: it pulls the arm of the largest credit among those that do not rest, where
// an arm that brought nothing rests for a round, then for two, three and so on. The others
// explore: in one round they begin anew, by the arm from nothing that has waited longest
// or, every second time, by that whose last plan came nearest to the best; in the next they
// go on from what that came to, by the arm of the largest credit.
//
// What happens in a round depends on the rounds before it alone and not on the budget.
// Under a budget in evaluations its last round is cut off in the middle. So a larger
// budget repeats a smaller one's evaluations and goes on, and never ends behind it. Under
// a budget in seconds the last round is as long as the time that is left.
type Placer struct {
	// Arms are in the order in which they are first tried.
	Arms []Arm
	// Start is the best plan that is known; its Device may be nil. The outcome is at least
	// as good.
	Start plan.Decision
	// Walkers is how many arms are pulled in a round; 0 means 2, and as many as Workers
	// where no budget in evaluations bounds the search. The outcome depends on it.
	Walkers int
	// Workers is how many of them run at once. Under a budget in evaluations the outcome
	// does not depend on it.
	Workers int
}

var _ plan.Placer = Placer{}

// Name returns "portfolio".
func (Placer) Name() string { return Name }

// Kind returns plan.Search.
func (Placer) Kind() plan.Kind { return plan.Search }

// Place searches until the budget is spent or ctx ends. Its arms decide partial gradients
// apart from their variables, whatever the tasks
// (docs/adr/0054-partial-gradients-under-all-tasks.md).
func (a Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	divided := *p
	divided.Units = p.Units.WithPartialGradients(p.Graph, p.Evaluator.OpSeconds(0))
	p = &divided
	if a.Walkers < 1 {
		a.Walkers = 2
		if p.Budget.Evaluations == 0 {
			a.Walkers = max(a.Walkers, a.Workers)
		}
	}
	a.Workers = max(1, min(a.Workers, a.Walkers))
	r := newRun(ctx, a, p)
	r.begin()
	for round := 0; !r.done(); round++ {
		r.round(round)
	}
	if r.best.Device == nil {
		if r.err != nil {
			return nil, r.err
		}
		return nil, fmt.Errorf("%s: stopped before its first placement: %w", Name, context.Cause(ctx))
	}
	return &plan.Outcome{Decision: r.best, Score: r.score, Evaluations: r.evaluations, Notes: r.notes()}, nil
}
