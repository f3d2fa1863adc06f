package search

import (
	"context"
	"errors"
	"time"

	"placer/internal/faults"
	"placer/plan"
)

// Measurer measures a decision whose predicted score is given. It may be called at
// once from several goroutines. An error says why there is no measurement.
type Measurer interface {
	Measure(d plan.Decision, predicted plan.Score) (plan.Score, error)
}

// Stage orders the methods of a search.
type Stage int

// Stages, in the order they run.
const (
	StageBaseline Stage = iota // a moment each; they give the floor and the first feasible plan
	StageSearch                // side by side, each from nothing, sharing the budget
	StageShare                 // the same methods as arms of one, from the best plan of the stages before
	StageFinish                // starts from the best plan of the stages before
)

// Start is what a method may start from.
type Start struct {
	// Decision is where to start: the best so far from StageShare on, the method's own
	// best when a search in seconds is resumed; otherwise its Device is nil. Priority
	// and Fusion are nil where they are the problem's.
	plan.Decision
	// Earlier is what the method had come to when the search in seconds that is
	// resumed was killed, Checkpoint the path of what it had saved by then; nil and
	// empty otherwise.
	Earlier    *plan.Outcome
	Checkpoint string
}

// Method is one entry of a search.
type Method struct {
	Name  string // of the Placer that New returns
	Kind  plan.Kind
	Stage Stage
	// Weight is the method's share of the budget relative to the other methods
	// that have one; baselines have none.
	Weight float64
	// Slow marks baselines that take long on large graphs: in a budget in seconds they come
	// after the others and have less of it.
	Slow bool
	// Note is added to what the method says of its result.
	Note string
	New  func(Start) (plan.Placer, error)
}

// Saver is a method that can save what it has learned. Save is called when the
// method has ended, and from within Problem.Report while it runs.
type Saver interface {
	Save(path string) error
}

// Config bounds a search.
type Config struct {
	// Budget is shared by all methods. Seconds count from the zero of the host's
	// clock and include the baselines; Evaluations do not include them.
	Budget  plan.Budget
	Seed    uint64
	Workers int // methods that run at once, at least 1
	// Fewer makes a search within a budget in evaluations search on every smaller number
	// of GPUs too, within the same budget, where the proven bound leaves room for a better
	// plan: no number of devices then ends behind a smaller one.
	Fewer bool
	Human string // the method that reductions are relative to
}

// Default is two minutes on two cores.
func Default() Config {
	return Config{Budget: plan.Budget{Seconds: 120}, Workers: 2, Human: "human"}
}

// Validate reports every fault.
func (c Config) Validate() error {
	var errs faults.List
	errs.If(c.Budget.Seconds < 0 || c.Budget.Evaluations < 0 || c.Budget == (plan.Budget{}), "budget: %g seconds and %d evaluations, want one above 0 and none below", c.Budget.Seconds, c.Budget.Evaluations)
	errs.If(c.Workers < 1 || c.Workers > 1024, "workers: %d, want 1 to 1024", c.Workers)
	return errors.Join(errs...)
}

// Host is what a search needs from the world.
type Host struct {
	Clock func() float64 // seconds since the start of the run
	CPU   func() float64 // seconds of processor time the program has used
	// Until, if not nil, returns ctx as it ends, by context.DeadlineExceeded, when Clock shows
	// end at the latest. It belongs to Clock; where it is nil Clock runs as this computer's
	// does.
	Until func(ctx context.Context, end float64) (context.Context, context.CancelFunc)
	// Rollouts, if not nil, returns what evaluates the samples of one more policy, in place of the problem's
	// evaluator: the same scores from elsewhere, or measured ones. Their best is
	// judged by the problem's, or Measurer, all the same.
	Rollouts func() plan.Rollouts
	// Measurer, if not nil, has the last word on what methods came to; the score of the
	// problem's evaluator stands beside its own as Row.Predicted.
	Measurer Measurer
	// Observe, if not nil, is told of every event.
	Observe Observer
	// Memory, if not nil, is what an earlier run of this search left behind.
	Memory *Memory
}

// until is ctx until Clock shows end.
func (h *Host) until(ctx context.Context, end float64) (context.Context, context.CancelFunc) {
	if h.Until != nil {
		return h.Until(ctx, end)
	}
	return context.WithTimeout(ctx, time.Duration((end-h.Clock())*float64(time.Second)))
}
