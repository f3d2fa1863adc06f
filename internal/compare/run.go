package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"placer/internal/parallel"
)

// do runs one cell. An error that is no end of ctx ends the comparison; a method
// that has no placement is a trial with Skipped set.
type do func(ctx context.Context, c Cell) (Trial, error)

// Run runs the cells of m that j does not have, workers at once, and adds each to
// j as it ends. ended, if not nil, is told of each and how many of m's cells are
// done; calls do not overlap. When ctx ends, trials that run are dropped: the journal has whole trials only. A
// trial's result must not depend on what runs beside it, so the order in which
// trials end is of no consequence under a budget in evaluations.
func Run(ctx context.Context, m *Matrix, j *Journal, workers int, do do, ended func(t *Trial, done, all int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cells := m.Cells()
	all := len(cells)
	cells = slices.DeleteFunc(cells, j.hasTrial)
	done := all - len(cells)
	todo := make(chan Cell)
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
	results := make(chan Trial)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for c := range todo {
				t, err := guarded(ctx, c, do)
				switch {
				case ctx.Err() != nil:
					return
				case err != nil:
					cancel(fmt.Errorf("%s on %s, seed %d: %w", c.Method, c.Case, c.Seed, err))
					return
				}
				t.Cell = c
				results <- t
			}
		})
	}
	go func() { wait.Wait(); close(results) }()
	var failed error
	for t := range results {
		if failed != nil {
			continue
		}
		if failed = j.add(t); failed != nil {
			cancel(failed)
			continue
		}
		done++
		if ended != nil {
			ended(&t, done, all)
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

// guarded is do with a panic as its error.
func guarded(ctx context.Context, c Cell, do do) (t Trial, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = parallel.Caught(x)
		}
	}()
	return do(ctx, c)
}
