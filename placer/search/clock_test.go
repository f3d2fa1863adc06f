package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"placer/plan"
)

// handClock goes on when it is told to, and ends the contexts that wait for it.
type handClock struct {
	mu    sync.Mutex
	now   float64
	waits []*untilContext
}

func (c *handClock) read() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) advance(seconds float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += seconds
	for _, x := range c.waits {
		if c.now >= x.end {
			x.stop()
		}
	}
}

func (c *handClock) until(ctx context.Context, end float64) (context.Context, context.CancelFunc) {
	inner, stop := context.WithCancel(ctx)
	x := &untilContext{Context: inner, clock: c, end: end, stop: stop}
	c.mu.Lock()
	c.waits = append(c.waits, x)
	c.mu.Unlock()
	c.advance(0)
	return x, stop
}

// untilContext ends when its clock shows end.
type untilContext struct {
	context.Context
	clock *handClock
	end   float64
	stop  context.CancelFunc
}

func (x *untilContext) Err() error {
	err := x.Context.Err()
	if err != nil && x.clock.read() >= x.end {
		return context.DeadlineExceeded
	}
	return err
}

// A search's time is the clock's that it is given: methods that heed their context alone end
// when that clock shows the end of the budget, rules at a third of it, and no real time passes.
func TestSearchByHandClock(t *testing.T) {
	c := &handClock{}
	var ends []string
	wait := func(name string, kind plan.Kind, stage Stage, work func()) Method {
		return Method{Name: name, Kind: kind, Stage: stage, Weight: 1, New: func(Start) (plan.Placer, error) {
			return waiting{name: name, kind: kind, work: work, ended: func(err error) {
				ends = append(ends, fmt.Sprintf("%s at %g: %v", name, c.read(), errors.Is(err, context.DeadlineExceeded)))
			}}, nil
		}}
	}
	const budget = 3600
	ms := []Method{
		{Name: "rule", Kind: plan.Baseline, Stage: StageBaseline, New: func(Start) (plan.Placer, error) {
			return together{&counting{name: "rule", kind: plan.Baseline}}, nil
		}},
		wait("endless", plan.Baseline, StageBaseline, func() { c.advance(budget / 3) }),
		wait("search", plan.Search, StageSearch, func() { c.advance(budget) }),
	}
	r, err := Search(t.Context(), testProblem(t), ms, testConfig(plan.Budget{Seconds: budget}, 1), Host{Clock: c.read, Until: c.until, CPU: c.read})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"endless at 1200: true", "search at 4800: true"}; !slices.Equal(ends, want) {
		t.Errorf("%v, want %v", ends, want)
	}
	if len(r.Rows) != 1 || len(r.Skipped) != 2 || r.Seconds != 4800 {
		t.Errorf("%d rows, skipped %v, %g s", len(r.Rows), r.Skipped, r.Seconds)
	}
}

// waiting works, and then waits for the end of its context.
type waiting struct {
	name  string
	kind  plan.Kind
	work  func()
	ended func(error)
}

func (w waiting) Name() string    { return w.name }
func (w waiting) Kind() plan.Kind { return w.kind }

func (w waiting) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	w.work()
	<-ctx.Done()
	w.ended(ctx.Err())
	return nil, ctx.Err()
}
