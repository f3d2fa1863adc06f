package portfolio

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"placer/baselines/budget"
	"placer/graph/unit"
	"placer/internal/parallel"
	"placer/internal/words"
	"placer/plan"
)

// run is the state of one Place.
type run struct {
	Placer
	ctx     context.Context
	p       *plan.Problem
	budget  plan.Budget
	started float64 // on the clock
	spent   float64 // evaluations that pulls were charged
	slice   float64 // of the last round, in seconds or evaluations
	once    bool    // there is time for one round
	stats   []armStats
	err     error // of the last pull that had no placement

	best        plan.Decision
	score       plan.Score
	evaluations int
	own         []ownPlan // [walkers]

	mu    sync.Mutex // guards the rest while walkers run
	shown plan.Score
	under []int             // [walkers] evaluations of the pulls under way
	held  [][]plan.Progress // [walkers] bests of the round, under a budget in evaluations
}

func newRun(ctx context.Context, a Placer, p *plan.Problem) *run {
	r := &run{Placer: a, ctx: ctx, p: p, budget: p.Budget, started: budget.Now(p), stats: make([]armStats, len(a.Arms)), under: make([]int, a.Walkers), held: make([][]plan.Progress, a.Walkers), own: make([]ownPlan, a.Walkers)}
	for i := range r.stats {
		r.stats[i].behind = math.Inf(1)
	}
	if p.Clock == nil {
		r.budget.Seconds = 0
	}
	return r
}

// begin judges the start, and sets the slice of the first round: an evaluation for each
// device of each of the largest units.
func (r *run) begin() {
	first := float64(max(1, r.p.Units.Levels[unit.Chain].NumUnits()) * r.p.Machine.NumDevices())
	start := r.Start
	if start.Device == nil {
		start.Device = make([]uint8, r.p.Graph.NumOps())
		if r.p.Device != nil {
			start.Device = r.p.Device
		}
	}
	before := budget.Now(r.p)
	r.offer(start)
	r.slice = first
	if r.budget.Seconds > 0 && r.budget.Evaluations == 0 {
		r.slice = max(first*(budget.Now(r.p)-before), 1e-4)
	}
}

// offer judges d and keeps it if it is the best so far. It returns what that brought. The
// evaluation counts in the outcome, and no pull is charged for it: what an arm comes to is
// judged by one evaluator, whatever judged it in the arm.
func (r *run) offer(d plan.Decision) float64 {
	d = r.p.Complete(d)
	s := r.p.Evaluator.Evaluate(d)
	r.evaluations++
	if r.best.Device == nil {
		r.best, r.score = d.Clone(), s
		r.show(plan.Progress{Best: s, Decision: d})
		return 0
	}
	x := gain(r.score, s)
	if x > 0 {
		r.best, r.score = d.Clone(), s
	}
	return x
}

// left returns what is left for each walker, in the unit of the slices.
func (r *run) left() float64 {
	x := math.Inf(1)
	if n := r.budget.Evaluations; n > 0 {
		x = (float64(n) - r.spent) / float64(r.Walkers)
	}
	if s := r.budget.Seconds; s > 0 && r.budget.Evaluations == 0 {
		x = (s - (r.p.Clock() - r.started)) / float64(r.turns())
	}
	return x
}

// turns is how many pulls of a round run one after another.
func (r *run) turns() int { return (r.Walkers + r.Workers - 1) / r.Workers }

func (r *run) done() bool {
	if r.ctx.Err() != nil || budget.Spent(r.p, r.started, r.spent) >= 1 {
		return true
	}
	return r.budget.Evaluations > 0 && r.left() < 1
}

// growth is the part of what the rounds so far took that the next one takes.
const growth = 0.5

// round pulls one arm for each walker.
func (r *run) round(k int) {
	if k > 0 {
		used := r.spent / float64(r.Walkers)
		if r.budget.Evaluations == 0 {
			used = (r.p.Clock() - r.started) / float64(r.turns())
		}
		r.slice = max(r.slice, used*growth)
	}
	slice, left := r.slice, r.left()
	if r.budget.Evaluations == 0 && left < 1.5*slice {
		slice = left // the last round
	}
	r.once = k == 0 && r.budget.Evaluations == 0 && slice == left
	arms := r.choose(k)
	walks := make([][]*pull, r.Walkers)
	next := make(chan int, r.Walkers)
	for w := range walks {
		walks[w] = []*pull{r.newPull(k, w, arms[w], slice, left)}
		next <- w
	}
	close(next)
	var wait parallel.Group
	for range r.Workers {
		wait.Go(func() {
			for w := range next {
				walks[w] = r.walk(k, walks[w][0], arms)
			}
		})
	}
	wait.Wait()
	r.release()
	for i := range r.stats {
		r.stats[i].credit /= 2
	}
	for w, pulls := range walks {
		r.under[w] = 0
		r.spent += pulls[0].charge
		r.account(k, w, pulls)
	}
}

// account enters what walker w has done in round k.
func (r *run) account(k, w int, pulls []*pull) {
	own := &r.own[w]
	var found *pull // the best of those that have a placement
	won := 0.0
	for _, x := range pulls {
		s := &r.stats[x.arm]
		if x.outcome == nil {
			r.err = x.err
			s.pulled(k, 0)
			continue
		}
		r.evaluations += x.outcome.Evaluations
		s.evaluations += x.outcome.Evaluations
		gained := r.offer(x.outcome.Decision)
		s.pulled(k, gained)
		won += gained
		if found == nil || x.outcome.Score.Better(found.outcome.Score) {
			found = x
		}
	}
	switch {
	case !explores(w) || found == nil:
	case own.Device == nil && len(r.Arms) > r.fresh(): // it goes on from this in the next round
		own.Decision, own.arm = r.p.Complete(found.outcome.Decision).Clone(), found.arm
	default: // it has gone on, and begins anew in the next round
		if own.Device != nil {
			r.stats[own.arm].behind = gain(found.outcome.Score, r.score)
		}
		if own.Device != nil && won > 0 {
			r.stats[own.arm].addCredit(k, won)
		}
		*own = ownPlan{}
	}
}

// leastRest is the share of a slice below which its rest is not worth another pull.
const leastRest = 0.1

// walk makes the pulls of a walker in round k, of which first is one: where an arm ends
// before its slice does, because it declines or has nothing more to try, the walker goes on
// with another. arms are those that the walkers began with.
func (r *run) walk(k int, first *pull, arms []int) []*pull {
	pulls := []*pull{first}
	taken := make([]bool, len(r.Arms))
	for _, i := range arms {
		taken[i] = true
	}
	for {
		x := pulls[len(pulls)-1]
		begun := budget.Now(r.p)
		x.run(r)
		rest := x.budget
		if rest.Seconds > 0 {
			if rest.Seconds -= budget.Now(r.p) - begun; rest.Seconds < leastRest*r.slice {
				return pulls
			}
		} else if x.outcome != nil {
			return pulls // what it has evaluated beside the problem is not known
		}
		i := r.preferred(k, x.walker, taken)
		if i < 0 || r.ctx.Err() != nil {
			return pulls
		}
		taken[i] = true
		pulls = append(pulls, r.again(k, x, i, rest))
	}
}

// report passes on what the pull of walker w says. Under a budget in evaluations plans wait for the
// end of the round: which of them are bests would else depend on which walker is ahead.
func (r *run) report(w int, x plan.Progress) {
	if r.p.Report == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under[w] = x.Evaluations
	if x.Device != nil && r.budget.Evaluations > 0 {
		y := x
		y.Decision = x.Decision.Clone()
		r.held[w] = append(r.held[w], y)
		x.Decision = plan.Decision{}
	}
	r.show(x)
}

// release shows the bests of a round, by walkers.
func (r *run) release() {
	for w, all := range r.held {
		for _, x := range all {
			r.show(x)
		}
		r.held[w] = nil
	}
}

// show reports x, whose plan, if it has one, counts where it is the best so far.
func (r *run) show(x plan.Progress) {
	if r.p.Report == nil {
		return
	}
	y := plan.Progress{Method: Name, Evaluations: r.evaluations, Best: r.shown}
	for _, n := range r.under {
		y.Evaluations += n
	}
	if x.Device != nil && ((r.shown == plan.Score{}) || x.Best.Better(r.shown)) {
		r.shown, y.Best, y.Decision = x.Best, x.Best, x.Decision
	}
	r.p.Report(y)
}

// notes says how the budget was spent and which arms shortened the best plan.
func (r *run) notes() []string {
	var some, none []string
	for i, l := range r.stats {
		spent := fmt.Sprintf("(%s, %s)", words.Count(l.pulls, "run", "runs"), words.Count(l.evaluations, "evaluation", "evaluations"))
		switch share := fmt.Sprintf("%.2f%%", 100*(1-math.Exp(-l.brought))); {
		case l.pulls == 0:
		case share == "0.00%":
			none = append(none, r.Arms[i].Name+" "+spent)
		default:
			some = append(some, r.Arms[i].Name+" by "+share+" "+spent)
		}
	}
	switch {
	case some == nil && none == nil:
		return nil
	case some == nil:
		return []string{"did not shorten the best plan: " + strings.Join(none, ", ")}
	case none == nil:
		return []string{"shortened the best plan: " + strings.Join(some, ", ")}
	}
	return []string{"shortened the best plan: " + strings.Join(some, ", ") + "; did not: " + strings.Join(none, ", ")}
}
