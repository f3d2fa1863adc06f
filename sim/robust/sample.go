package robust

import (
	"context"
	"sync"

	"placer/internal/parallel"
	"placer/plan"
)

// Sample returns the steps of a decision on c.Machines machines that are drawn independently, in
// their order; they do not depend on the number of workers. Each worker, of which there is at
// least one, holds one machine at a time. told, which may be nil, is given how many machines have
// run, by one goroutine at a time. The error is that of ctx where it ends.
func Sample(ctx context.Context, x Model, c Config, d plan.Decision, workers int, told func(machines int)) ([]float64, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	steps := make([]float64, c.Machines)
	machines := make(chan int, c.Machines)
	for k := range steps {
		machines <- k
	}
	close(machines)
	var (
		mu    sync.Mutex // guards the rest, and told
		ended int
		first error
	)
	var wait parallel.Group
	for range min(max(1, workers), c.Machines) {
		wait.Go(func() {
			for k := range machines {
				err := ctx.Err()
				if err == nil {
					steps[k], err = x.stepOn(independent(c, k, dimensions(x.Machine)), d)
				}
				mu.Lock()
				if first == nil {
					first = err
				}
				ended++
				if told != nil && first == nil {
					told(ended)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	if first != nil {
		return nil, first
	}
	return steps, nil
}

// stepOn returns the step of d on the machine that is off by factors.
func (x *Model) stepOn(factor []float64, d plan.Decision) (float64, error) {
	s, err := x.off(factor)
	if err != nil {
		return 0, err
	}
	return s.Evaluate(d).Value, nil
}
