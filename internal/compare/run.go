package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"placer/internal/parallel"
)

// Host is what a comparison uses of its surroundings.
type Host struct {
	Workers int // trials that run at once
	// Trial runs one cell. An error that is no end of ctx ends the comparison; a method
	// that has no placement is a trial with Skipped set.
	Trial func(ctx context.Context, c Cell) (Trial, error)
	// Ended, if not nil, is told of each trial as it ends, and how many of the
	// comparison's are done; calls do not overlap.
	Ended func(t *Trial, done, all int)
}

// Run runs the cells of m that j does not have and adds each to j as it ends. When ctx
// ends, trials that run are dropped: the journal has whole trials only. A trial's result
// must not depend on what runs beside it, so the order in which trials end is of no
// consequence under a budget in evaluations.
func Run(ctx context.Context, m *Matrix, j *Journal, h Host) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cells := m.Cells()
	all := len(cells)
	cells = slices.DeleteFunc(cells, j.hasTrial)
	done := all - len(cells)
	var failed error
	for t := range h.trials(ctx, cancel, cells) {
		if failed != nil {
			continue
		}
		if failed = j.add(t); failed != nil {
			cancel(failed)
			continue
		}
		done++
		if h.Ended != nil {
			h.Ended(&t, done, all)
		}
	}
	if failed != nil {
		return failed
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

// trials runs cells and returns what they come to, as they end. The first error cancels
// ctx with its cause.
func (h Host) trials(ctx context.Context, cancel context.CancelCauseFunc, cells []Cell) <-chan Trial {
	todo, results := make(chan Cell), make(chan Trial)
	go func() {
		defer close(todo)
		for _, c := range cells {
			select {
			case todo <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	var wait sync.WaitGroup
	for range h.Workers {
		wait.Go(func() {
			for c := range todo {
				t, err := h.guarded(ctx, c)
				switch {
				case ctx.Err() != nil:
					return
				case err != nil:
					cancel(fmt.Errorf("%s on %s, seed %d: %w", c.Method, c.Case, c.Seed, err))
					return
				}
				results <- t
			}
		})
	}
	go func() { wait.Wait(); close(results) }()
	return results
}

// guarded runs one cell, with a panic as its error.
func (h Host) guarded(ctx context.Context, c Cell) (t Trial, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = parallel.Caught(x)
		}
	}()
	t, err = h.Trial(ctx, c)
	t.Cell = c
	return t, err
}
