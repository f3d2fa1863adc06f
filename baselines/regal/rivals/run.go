package rivals

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"placer/baselines/regal/sched"
	"placer/internal/faults"
	"placer/internal/parallel"
)

// Config says what is compared.
type Config struct {
	Methods     []Method
	Objective   sched.Objective
	Evaluations int
	Seed        uint64
	Graphs      int
	// Graph gives problem k. It is called from many goroutines.
	Graph   func(ctx context.Context, k int) (*sched.Problem, error)
	Workers int
	// Clock gives the processor seconds of the calling thread.
	Clock func() float64
	// Known are results of an earlier run, by the number of the graph, which are not
	// computed again.
	Known map[int]Graph
	// Done, if not nil, is told of every graph that has ended, from one goroutine at
	// a time; its error ends the comparison.
	Done func(k int, g Graph) error
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var all faults.List
	all.If(len(c.Methods) == 0 || c.Graphs < 1 || c.Workers < 1 || c.Evaluations < 1, "rivals: %d methods, %d graphs, %d workers, %d evaluations", len(c.Methods), c.Graphs, c.Workers, c.Evaluations)
	all.If(c.Graph == nil || c.Clock == nil, "rivals: graphs or clock missing")
	return errors.Join(all...)
}

// Graph is what the methods came to on one graph.
type Graph struct {
	Name  string  `json:"name"`
	Ops   int     `json:"ops"`
	Bound float64 `json:"bound"` // of the objective, proven
	Runs  []Run   `json:"runs"`  // by method
}

// Run is one method on one graph.
type Run struct {
	Cost        float64 `json:"cost"` // of the objective; sched.Infeasible and more above the memory limit
	Time        float64 `json:"time"`
	Peak        int64   `json:"peak"`
	Evaluations int     `json:"evaluations"`
	Seconds     float64 `json:"seconds"` // processor time
	Skipped     bool    `json:"skipped"` // the method does not apply
}

// Feasible reports whether the schedule keeps the memory limit.
func (r Run) Feasible() bool { return !r.Skipped && r.Cost < sched.Infeasible }

// Compare runs all methods on all graphs, in parallel over graphs, and returns the
// results by graph. What a method finds depends on the seed, the graph's number
// and the method's name alone. It panics if c is not valid.
func Compare(ctx context.Context, c Config) ([]Graph, error) {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	all := make([]Graph, c.Graphs)
	next := make(chan int)
	var wait parallel.Group
	var mu sync.Mutex
	for range min(c.Workers, c.Graphs) {
		wait.Go(func() {
			runtime.LockOSThread() // the clock is the thread's
			defer runtime.UnlockOSThread()
			for k := range next {
				g, err := c.one(ctx, k)
				if err != nil {
					stop(err)
					return
				}
				all[k] = g
				if c.Done != nil {
					mu.Lock()
					err := c.Done(k, g)
					mu.Unlock()
					if err != nil {
						stop(err)
						return
					}
				}
			}
		})
	}
	for k := range c.Graphs {
		if g, known := c.Known[k]; known {
			all[k] = g
			continue
		}
		select {
		case next <- k:
		case <-ctx.Done():
		}
	}
	close(next)
	wait.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return all, nil
}

func (c *Config) one(ctx context.Context, k int) (Graph, error) {
	p, err := c.Graph(ctx, k)
	if err != nil {
		return Graph{}, err
	}
	g := Graph{Name: p.Name(), Ops: p.N(), Bound: p.LowerBound()}
	if c.Objective == sched.PeakMemory {
		g.Bound = float64(p.MemoryBound())
	}
	evaluator := sched.NewEvaluator(p, sched.PeakMemory) // tracks both
	for _, m := range c.Methods {
		start := c.Clock()
		found, err := m.solve(ctx, p, c.Objective, c.Evaluations, rand.New(rand.NewPCG(c.Seed^hash(m.Name), uint64(k))))
		seconds := c.Clock() - start
		switch {
		case ctx.Err() != nil:
			return g, context.Cause(ctx)
		case errors.Is(err, errNotApplicable):
			g.Runs = append(g.Runs, Run{Skipped: true})
			continue
		case err != nil:
			return g, fmt.Errorf("%s on %s: %w", m.Name, p.Name(), err)
		}
		s, err := evaluator.Schedule(found.device, found.sequence)
		if err != nil {
			return g, fmt.Errorf("%s: %w", m.Name, err)
		}
		g.Runs = append(g.Runs, Run{Cost: c.Objective.Cost(p.Machine(), s), Time: s.Time, Peak: s.Peak, Evaluations: found.evaluations, Seconds: seconds})
	}
	return g, nil
}

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
