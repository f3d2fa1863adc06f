package strategies

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"placer/graph"
	"placer/hw"
	"placer/internal/parallel"
)

// hasty returns a comparison of a family that calls within at every graph but the first so many.
func hasty(t *testing.T, workers, before int, within func()) *Comparison {
	t.Helper()
	m, err := hw.Take("a100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	var built atomic.Int32
	f := func(batch int64) (*graph.Graph, error) {
		if int(built.Add(1)) > before {
			within()
		}
		return family(small[0])(batch)
	}
	x, err := NewComparison(source(), f, m, Config{Batch: 16, Workers: workers, Clock: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// eachLeaving runs f with one worker and with three, and with a graph that does not come while ways are
// listed, which takes that of the batch and that of twice the batch, and behind these two, when a way
// is simulated.
func eachLeaving(t *testing.T, f func(t *testing.T, workers, before int)) {
	for _, workers := range []int{1, 3} {
		for before := range 4 {
			t.Run(fmt.Sprintf("%d workers, %d graphs", workers, before), func(t *testing.T) { f(t, workers, before) })
		}
	}
}

// TestRowsDoNotWaitForWhatIsUnderWay: when the context ends, rows are there at once, though a graph
// that they are waiting for is not.
func TestRowsDoNotWaitForWhatIsUnderWay(t *testing.T) {
	eachLeaving(t, func(t *testing.T, workers, before int) {
		ctx, cancel := context.WithCancel(context.Background())
		release := make(chan struct{})
		late := time.AfterFunc(time.Minute, func() {
			t.Error("rows wait for a graph")
			close(release)
		})
		x := hasty(t, workers, before, func() {
			cancel()
			<-release
		})
		x.Rows(ctx, nil)
		if ctx.Err() == nil {
			t.Error("no graph was asked for")
		}
		if late.Stop() {
			close(release)
		}
	})
}

// TestPanicOfAWayIsTheCallers: a panic in a goroutine that builds or simulates is handed to who asked
// for rows, who may recover it; nobody waits for ways that are not begun.
func TestPanicOfAWayIsTheCallers(t *testing.T) {
	eachLeaving(t, func(t *testing.T, workers, before int) {
		caught := make(chan any, 1)
		x := hasty(t, workers, before, func() { panic("within") })
		go func() {
			defer func() { caught <- recover() }()
			x.Rows(context.Background(), nil)
		}()
		select {
		case got := <-caught:
			if p, ok := got.(*parallel.Panic); !ok || p.Error() != "within" {
				t.Errorf("%v, want the panic", got)
			}
		case <-time.After(time.Minute):
			t.Error("a panic leaves rows waiting")
		}
	})
}
