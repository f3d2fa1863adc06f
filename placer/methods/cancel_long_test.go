//go:build long && unix

package methods_test

import (
	"context"
	"flag"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"placer/placer/methods"
	"placer/placer/problem"
	"placer/plan"
)

var (
	cancelGraph = flag.String("cancel.graph", "moe:layers=16,hidden=1024,heads=16,ffn=3584,seq=1024,experts=18,batch=7,micro_batches=7,attention=products", "workload of about 100,000 ops")
	cancelAfter = flag.Duration("cancel.after", 2*time.Second, "when each method is cancelled")
)

// mostAfter is how much processor time a method may take after it has been cancelled: a
// second, and twice that again for a machine whose caches others use at the time.
const mostAfter = 3 * time.Second

// Every method ends soon after its cancellation, and after the end of its budget, on a graph
// of 100,000 ops: on quiet cores within a second (docs/reliability.md). It is processor time
// that counts: a busy machine gives less of it in a second.
func TestEveryMethodStops(t *testing.T) {
	p, err := problem.Workload(*cancelGraph, "p100", 8, problem.Options{Tasks: plan.Place})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d ops", p.Graph.NumOps())
	began := time.Now()
	for _, method := range methods.Methods() {
		t.Run(method.Name, func(t *testing.T) {
			placer, err := method.New(methods.Default())
			if err != nil {
				t.Fatal(err)
			}
			q := p.Problem
			q.Evaluator, q.Seed = p.Evaluator.Clone(), 1
			q.Clock = func() float64 { return time.Since(began).Seconds() }
			q.Budget = plan.Budget{Seconds: (*cancelAfter).Seconds()}
			ctx, stop := context.WithTimeout(t.Context(), *cancelAfter)
			defer stop()
			var at atomic.Int64
			defer context.AfterFunc(ctx, func() { at.Store(int64(processorTime(t))) })()
			_, err = placer.Place(ctx, &q)
			if ctx.Err() == nil {
				t.Logf("ended by itself: %v", err)
				return
			}
			for at.Load() == 0 { // the clock of the other goroutine is about to be read
			}
			after := processorTime(t) - time.Duration(at.Load())
			t.Logf("%v after it was cancelled: %v", after, err)
			if after > mostAfter {
				t.Errorf("took %v of processor time after it was cancelled, at most %v wanted", after, mostAfter)
			}
		})
	}
}

// processorTime returns what the process has used.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Error(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
