package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"placer/measure/session"
	"placer/plan"
)

// stopwatch stands in for a session on GPUs.
type stopwatch struct{}

func (stopwatch) Parallel() int { return 1 }
func (stopwatch) Measure(_ context.Context, d plan.Decision) (plan.Score, error) {
	fmt.Printf("measuring %v\n", d.Device)
	return plan.Score{Value: 0.2}, nil
}

// A placement is measured once, whoever asks, and after a restart too.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for run := range 2 {
		cache, err := session.OpenCache(filepath.Join(dir, "measurements.jsonl"))
		if err != nil {
			panic(err)
		}
		measurements := session.NewMeasurements(context.Background(), stopwatch{}, cache, session.Key{Graph: "a graph", Machine: "a machine"}, func(err error) { panic(err) })
		for range 2 {
			s, err := measurements.Measure(plan.Decision{Device: []uint8{0, 1}}, plan.Score{Value: 0.1})
			if err != nil {
				panic(err)
			}
			fmt.Printf("run %d: %v s\n", run, s.Value)
		}
		cache.Close()
	}
	// Output:
	// measuring [0 1]
	// run 0: 0.2 s
	// run 0: 0.2 s
	// run 1: 0.2 s
	// run 1: 0.2 s
}
