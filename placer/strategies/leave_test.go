package strategies

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"placer/graph"
	"placer/hw"
	"placer/internal/parallel"
)

// hasty returns a comparison of a family that calls within at every graph but the first two, which
// NewComparison's caller and the first way ask for.
func hasty(t *testing.T, workers int, within func()) *Comparison {
	t.Helper()
	m, err := hw.Take("a100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	var built atomic.Int32
	f := func(batch int64) (*graph.Graph, error) {
		if built.Add(1) > 1 {
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

// TestRowsDoNotWaitForWhatIsUnderWay: when the context ends, rows are there at once, though a
// simulation has not ended.
func TestRowsDoNotWaitForWhatIsUnderWay(t *testing.T) {
	for _, workers := range []int{1, 3} {
		ctx, cancel := context.WithCancel(context.Background())
		release := make(chan struct{})
		late := time.AfterFunc(time.Minute, func() {
			t.Errorf("%d workers: rows wait for a simulation that was under way", workers)
			close(release)
		})
		x := hasty(t, workers, func() {
			cancel()
			<-release
		})
		x.Rows(ctx, nil)
		if late.Stop() {
			close(release)
		}
	}
}

// TestPanicOfAWayIsTheCallers: a panic in a goroutine that simulates is handed to who asked for
// rows, who may recover it; nobody waits for ways that are not begun.
func TestPanicOfAWayIsTheCallers(t *testing.T) {
	for _, workers := range []int{1, 3} {
		caught := make(chan any, 1)
		x := hasty(t, workers, func() { panic("within") })
		go func() {
			defer func() { caught <- recover() }()
			x.Rows(context.Background(), nil)
		}()
		select {
		case got := <-caught:
			if p, ok := got.(*parallel.Panic); !ok || p.Error() != "within" {
				t.Errorf("%d workers: %v, want the panic", workers, got)
			}
		case <-time.After(time.Minute):
			t.Errorf("%d workers: a panic leaves rows waiting", workers)
		}
	}
}
