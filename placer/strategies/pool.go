package strategies

import (
	"context"
	"sync"

	"placer/graph/strategy"
	"placer/internal/parallel"
)

// answers are the families of ways under way, on goroutines of their own.
type answers struct {
	group parallel.Group
	of    []answer
}

// answer is what the families of a way come to.
type answer struct {
	name     string
	families sync.WaitGroup // not done
	rows     []Row          // of the families that were begun
	begun    bool           // the first of them was
}

// task is one family of a way.
type task struct {
	way, family int
	all         []strategy.Strategy
}

// begin simulates ways, in their order, on as many goroutines as the configuration says, and
// begins no more when ctx ends.
func (x *Comparison) begin(ctx context.Context, ways []way) *answers {
	a := &answers{of: make([]answer, len(ways))}
	var tasks []task
	for k, w := range ways {
		a.of[k].name = w.name
		for f, all := range families(w.all) {
			tasks = append(tasks, task{k, f, all})
			a.of[k].families.Add(1)
			a.of[k].rows = append(a.of[k].rows, Row{})
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
			for t := range next {
				own.do(ctx, t, &a.of[t.way])
			}
		})
	}
	return a
}

// do simulates a family, unless ctx has ended.
func (x *Comparison) do(ctx context.Context, t task, to *answer) {
	defer to.families.Done()
	if ctx.Err() != nil {
		return
	}
	to.rows[t.family] = x.family(ctx, t.all)
	if t.family == 0 {
		to.begun = true
	}
}

// clone returns a comparison for another goroutine, over the same models.
func (x *Comparison) clone() *Comparison {
	c := *x
	c.judge = x.judge.clone()
	return &c
}

// wait returns the row of way k, false where ctx ended before it was begun.
func (a *answers) wait(ctx context.Context, x *Comparison, k int) (row Row, ok bool) {
	of := &a.of[k]
	of.families.Wait()
	if ctx.Err() != nil && !of.begun {
		return row, false
	}
	row.Name = of.name
	for _, f := range of.rows {
		row.absorb(f)
	}
	x.finish(ctx, &row)
	return row, true
}
