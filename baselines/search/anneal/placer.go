package anneal

import (
	"context"
	"fmt"
	"runtime"

	"placer/baselines/budget"
	"placer/graph/unit"
	"placer/plan"
)

// Placer anneals coarse to fine on the units of a problem.
type Placer struct {
	// Starts are placements to start from, [N] each, beside the method's own. The
	// outcome is at least as good as each of them.
	Starts [][]uint8
	// From are decisions on all tasks to start from, nil parts the problem's; see
	// Starts.
	From []plan.Decision
	// Together leaves out the annealing of placements alone.
	Together bool
	// Cool leaves out so many of the hottest stages, for a start that is good already.
	// Beside the given starts there are then none.
	Cool int
	// Recreate adds a move that makes many decisions anew by list scheduling. Without a
	// start such a run begins with what list scheduling makes of nothing.
	Recreate bool
	// Fine gives more time to single ops than to cells, if there are evaluations for them. Where a
	// plan has ops apart from their cells, stages on cells leave them so, and no walk starts over
	// elsewhere: it is for a start that is good already.
	Fine bool
	// Coarsened, if not nil, is told of the problem on the coarsened graph before any judges by
	// it: where the problem's own evaluator counts more than the step and its memory, it has that
	// one count the same.
	Coarsened func(c *unit.Coarsened, p *plan.Problem)
	// Allowance, if not nil, bounds what placements cost beside their step.
	Allowance *Allowance
	// Shared, if not nil, is what runs on the same problem's units have in common.
	Shared *Shared
	// replicas is the number of annealing runs, which exchange what they find; 0
	// means 2. The outcome of a budget in evaluations depends on it.
	replicas int
	// Workers is the number of goroutines; 0 means one per CPU, and more than
	// replicas are not used. The outcome of a budget in evaluations does not depend
	// on it.
	Workers int

	// Guide, if not nil, chooses among moves on the problem itself, of placement alone
	// without fusion, where the problem knows when ops run. It reads NumMoveFeatures.
	Guide Guide
	// Learn, if not nil, is told of every such move. It may be called from Workers
	// goroutines.
	Learn func(Judged)
	// JointGuide and JointLearn are the same for the moves of the walk that decides on all
	// tasks together; they read NumJointFeatures.
	JointGuide Guide
	JointLearn func(Judged)

	stages []stage // nil means defaultStages
}

var _ plan.Placer = Placer{}

// Name returns "anneal", or "guided" where a guide chooses the moves.
func (a Placer) Name() string {
	if a.Guide != nil || a.JointGuide != nil {
		return "guided"
	}
	return "anneal"
}

// Kind returns plan.Search.
func (Placer) Kind() plan.Kind { return plan.Search }

// Place searches until the budget is spent or ctx ends. A step of the coarsened graph
// is charged to a budget in evaluations by its share of the ops; the outcome
// counts evaluations of the problem alone and notes the others.
//
// Where the problem's tasks are others than placement, or more, its placements
// are annealed for half of the budget and then all tasks together.
func (a Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	p = budget.OrDefault(p)
	if p.Decides(plan.Schedule) || p.Decides(plan.Fuse) || p.Fusion != nil {
		return a.placeJointly(ctx, p)
	}
	return a.placeAlone(ctx, p)
}

// placeAlone anneals placements under p's priority and fusion.
func (a Placer) placeAlone(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if a.replicas <= 0 {
		a.replicas = 2
	}
	if a.Workers <= 0 {
		a.Workers = runtime.GOMAXPROCS(0)
	}
	a.Workers = min(a.Workers, a.replicas)
	if a.stages == nil {
		a.stages = defaultStages
	}
	a.stages = a.stages[min(max(0, a.Cool), len(a.stages)-1):]
	if a.Shared == nil {
		a.Shared = new(Shared)
	}
	r := newRun(ctx, a, p)
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("anneal: %w", err)
	}
	if a.Fine {
		r.stages = withFineStages(r.stages, r.turns())
	}
	for k := range r.stages {
		if r.done() {
			break
		}
		if err := r.stage(k); err != nil {
			return nil, fmt.Errorf("anneal: %w", err)
		}
	}
	o := &plan.Outcome{Decision: plan.Decision{Device: r.best}, Score: r.score, Evaluations: r.full}
	if r.coarsened > 0 {
		o.Notes = append(o.Notes, coarsenedNote(r.coarsened, r.nodes))
	}
	return o, nil
}

// coarsenedNote says what was evaluated beside the problem.
func coarsenedNote(steps, nodes int) string {
	return fmt.Sprintf("in addition, %d evaluations of a coarsened graph of %d nodes", steps, nodes)
}
