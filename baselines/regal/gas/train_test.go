package gas

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"placer/baselines/regal/regaltest"
	"placer/baselines/regal/sched"
)

// TestWeightsMoveUnderTheLock: whoever holds the policy's lock, as a proposal does, sees
// weights that do not move, while the policy trains.
func TestWeightsMoveUnderTheLock(t *testing.T) {
	p, err := New(Default(), regaltest.Backend(t), rand.New(rand.NewPCG(81, 0)))
	if err != nil {
		t.Fatal(err)
	}
	tr := DefaultTraining()
	tr.Steps, tr.Samples, tr.Evaluations = 8, 2, 20
	done := make(chan error, 1)
	go func() {
		done <- p.Train(t.Context(), tr, func(int) (*sched.Problem, error) { return regaltest.Small(1), nil }, rand.New(rand.NewPCG(84, 0)), func(Step) {})
	}()
	weights := p.params.Lookup("lstm.h").Value
	for {
		p.mu.Lock()
		before := slices.Clone(weights)
		time.Sleep(2 * time.Millisecond)
		moved := !slices.Equal(before, weights)
		p.mu.Unlock()
		if moved {
			t.Fatal("weights moved while the lock was held")
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// TestCompiledAreBounded: however many lengths of graphs come, the networks kept for them
// stay few.
func TestCompiledAreBounded(t *testing.T) {
	p, err := New(Config{Devices: 1, Width: 1}, regaltest.Backend(t), rand.New(rand.NewPCG(81, 0)))
	if err != nil {
		t.Fatal(err)
	}
	for rows := range mostCompiled + 2 {
		if _, err := p.compile(rows+1, false); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.graphs); n > mostCompiled {
		t.Errorf("%d compiled networks are kept, want %d at most", n, mostCompiled)
	}
}
