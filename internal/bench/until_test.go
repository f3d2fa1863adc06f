package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// A budget in time is over when the clock says so, whatever this computer's does.
func TestUntil(t *testing.T) {
	wait := func(ctx context.Context, want error) {
		t.Helper()
		child, stop := context.WithCancel(ctx)
		defer stop()
		select {
		case <-child.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("the context does not end")
		}
		if !errors.Is(ctx.Err(), want) || !errors.Is(child.Err(), want) {
			t.Errorf("ended by %v, its child by %v, want %v", ctx.Err(), child.Err(), want)
		}
	}
	hours := func() float64 { return 7200 }
	over, stop := until(t.Context(), hours, 7200)
	defer stop()
	wait(over, context.DeadlineExceeded)

	// A clock that stands still is never over; one that then leaps is.
	var now atomic.Int64
	still, stop := until(t.Context(), func() float64 { return float64(now.Load()) / 1e3 }, 0.05)
	defer stop()
	time.Sleep(200 * time.Millisecond)
	if err := still.Err(); err != nil {
		t.Fatalf("a clock that stands still ended it by %v", err)
	}
	now.Store(60)
	wait(still, context.DeadlineExceeded)

	outer, cancel := context.WithCancel(t.Context())
	inner, stop := until(outer, hours, 1e300)
	defer stop()
	if err := inner.Err(); err != nil {
		t.Fatalf("a budget of ages is over: %v", err)
	}
	cancel()
	wait(inner, context.Canceled)
	given, stop := within(t.Context(), hours, 0)
	stop()
	if err := given.Err(); err != nil {
		t.Errorf("no budget is over: %v", err)
	}
}
