package cli

import (
	"context"

	"placer/internal/parallel"
)

// await returns what build returns, which hears no context and takes seconds on graphs of a
// million ops. When the command is to stop before, it leaves build behind, whose result nobody
// takes, and returns context.Canceled.
func await[T any](c *console, build func() (T, error)) (T, error) {
	type result struct {
		of     T
		err    error
		defect *parallel.Panic
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if x := recover(); x != nil {
				r.defect = parallel.Caught(x)
			}
			done <- r
		}()
		r.of, r.err = build()
	}()
	select {
	case r := <-done:
		if r.defect != nil {
			panic(r.defect)
		}
		return r.of, r.err
	case <-c.stopped:
		var none T
		return none, context.Canceled
	}
}
