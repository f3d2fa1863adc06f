package bench

import (
	"context"
	"sync"
	"time"
)

// expiring is a context that ends when a clock shows a time.
type expiring struct {
	context.Context // that it is made from
	done            chan struct{}
	mu              sync.Mutex
	err             error
}

func (x *expiring) Done() <-chan struct{} { return x.done }

func (x *expiring) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

func (x *expiring) end(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
		close(x.done)
	}
}

// until is ctx as it ends, by context.DeadlineExceeded, when clock shows end. A timer of
// this computer's only says when to look at the clock again.
func until(ctx context.Context, clock func() float64, end float64) (context.Context, context.CancelFunc) {
	x := &expiring{Context: ctx, done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { x.end(ctx.Err()) })
	go func() {
		for {
			left := end - clock()
			if left <= 0 {
				x.end(context.DeadlineExceeded)
				return
			}
			wait := time.NewTimer(time.Duration(min(left, longestWait) * float64(time.Second)))
			select {
			case <-x.done:
				wait.Stop()
				return
			case <-wait.C:
			}
		}
	}()
	return x, func() {
		stop()
		x.end(context.Canceled)
	}
}

// longestWait is the most seconds between two looks at a clock, so that budgets beyond what a
// time.Duration holds are budgets too.
const longestWait = 3600
