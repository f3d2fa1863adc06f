package strategies

import (
	"context"

	"placer/graph/strategy"
	"placer/internal/parallel"
)

// answers are the families of ways under way, on goroutines of their own.
type answers struct {
	group parallel.Group
	of    []answer
	left  <-chan struct{} // closed when no more is waited for
	leave context.CancelFunc
}

// answer is what the families of a way come to.
type answer struct {
	name     string
	families []chan Row // of each, in their order; each holds a row
}

// task is one family of a way.
type task struct {
	all []strategy.Strategy
	to  chan<- Row
}

// begin simulates ways, in their order, on as many goroutines as the configuration says, and
// begins no more when ctx ends.
func (x *Comparison) begin(ctx context.Context, ways []way) *answers {
	ctx, leave := context.WithCancel(ctx)
	a := &answers{of: make([]answer, len(ways)), left: ctx.Done(), leave: leave}
	var tasks []task
	for k, w := range ways {
		a.of[k].name = w.name
		for _, all := range families(w.all) {
			to := make(chan Row, 1)
			tasks = append(tasks, task{all, to})
			a.of[k].families = append(a.of[k].families, to)
		}
	}
	next := make(chan task, len(tasks))
	for _, t := range tasks {
		next <- t
	}
	close(next)
	for range max(1, x.c.Workers) {
		own := x.clone()
		a.group.Go(func() {
			whole := false
			defer func() {
				if !whole { // a panic, which the goroutine that waits is to have
					leave()
				}
			}()
			for t := range next {
				if ctx.Err() == nil {
					t.to <- own.family(ctx, t.all)
				}
			}
			whole = true
		})
	}
	return a
}

// clone returns a comparison for another goroutine, over the same models.
func (x *Comparison) clone() *Comparison {
	c := *x
	c.judge, c.judges = x.judge.clone(), nil
	return &c
}

// wait returns the row of way k, false where ctx ended before the first of its families was
// there. What is under way when ctx ends is left to end by itself.
func (a *answers) wait(ctx context.Context, x *Comparison, k int) (row Row, ok bool) {
	of := &a.of[k]
	row.Name = of.name
	for n, family := range of.families {
		r, there := a.receive(family)
		switch {
		case there:
			row.absorb(r)
		case ctx.Err() == nil: // a goroutine has panicked
			a.group.Wait()
		case n == 0:
			return row, false
		}
	}
	if len(of.families) == 0 && ctx.Err() != nil {
		return row, false
	}
	begun, own := row, x.clone()
	if r, whole := unless(ctx, func() Row {
		own.finish(ctx, &begun)
		return begun
	}); whole {
		return r, true
	}
	x.finish(ctx, &row) // says what it has
	return row, true
}

// unless returns what f does, false where ctx ends before: f is left to end by itself. f's panic is
// the caller's.
func unless[T any](ctx context.Context, f func() T) (v T, ok bool) {
	var group parallel.Group
	done := make(chan T, 1)
	group.Go(func() {
		defer close(done)
		done <- f()
	})
	select {
	case v, ok = <-done:
		if !ok {
			group.Wait()
		}
	case <-ctx.Done():
	}
	return v, ok
}

// receive returns the row of a family, false where nobody waits for it any more.
func (a *answers) receive(family <-chan Row) (r Row, ok bool) {
	select {
	case r = <-family:
		return r, true
	case <-a.left:
	}
	select {
	case r = <-family: // it came at the same time
		return r, true
	default:
		return r, false
	}
}
