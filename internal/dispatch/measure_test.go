package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"placer/internal/dispatch"
	"placer/plan"
)

// bench is a worker's evaluator that measures: placement k takes k seconds, 7 is
// broken, 9 takes until the worker ends.
type bench struct {
	sum
	began chan struct{} // gets one word when 9 begins
}

func (b bench) Clone() plan.Evaluator { return b }

func (b bench) Measure(ctx context.Context, d plan.Decision) (plan.Score, error) {
	switch k := d.Device[0]; k {
	case 7:
		return plan.Score{}, errors.New("the GPU has fallen off the bus")
	case 8:
		return plan.Score{Value: 8, Overflow: 5}, nil
	case 9:
		if b.began != nil {
			b.began <- struct{}{}
			<-ctx.Done()
			return plan.Score{}, ctx.Err()
		}
		fallthrough
	default:
		return plan.Score{Value: float64(k) + float64(len(d.Priority))/10}, nil
	}
}

const here = dispatch.Kind("hardware-here")

// measureFor starts a worker that measures and returns what stops it.
func measureFor(t *testing.T, a dispatch.Address, name string, b bench) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	return started(ctx, cancel, t, a, dispatch.WorkerConfig{Name: name, Kinds: kinds(here), Slots: 1, Identity: "a GPU",
		Evaluator: func(dispatch.Problem) (plan.Evaluator, error) { return b, nil }})
}

func awaitMeasuring(t *testing.T, x *dispatch.Controller, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := x.Await(ctx, here, n); err != nil {
		t.Fatalf("%d workers: %v", n, err)
	}
}

func at(k uint8) plan.Decision { return plan.Decision{Device: []uint8{k, 0}, Priority: []int32{1, 0}} }

// TestMeasure: answers, failures with their reason, and a measurement that another
// worker makes when the first one leaves in its middle.
func TestMeasure(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	x := controller(t, a, nil)
	r, err := x.Remote(dispatch.Problem{Kind: here, Graph: []byte("graph"), Machine: []byte("machine")}, newSum(2))
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{}, 1)
	leave := measureFor(t, a, "first", bench{newSum(2), began})
	awaitMeasuring(t, x, 1)
	if w := x.Workers(here); w[0].Identity != "a GPU" {
		t.Errorf("worker %+v", w[0])
	}
	ctx := context.Background()
	for k, want := range map[uint8]plan.Score{3: {Value: 3.2}, 8: {Value: 8, Overflow: 5}} {
		if s, err := r.Measure(ctx, at(k)); err != nil || s != want {
			t.Errorf("placement %d: %+v, %v, want %+v", k, s, err, want)
		}
	}
	if _, err := r.Measure(ctx, at(7)); err == nil || err.Error() != "worker first: the GPU has fallen off the bus" || r.Failure() != err.Error() {
		t.Errorf("a broken placement: %v, failure %q", err, r.Failure())
	}
	got := make(chan error, 1)
	go func() {
		s, err := r.Measure(ctx, at(9))
		if err == nil && s != (plan.Score{Value: 9.2}) {
			err = errors.New("wrong score")
		}
		got <- err
	}()
	<-began
	measureFor(t, a, "second", bench{newSum(2), nil})
	awaitMeasuring(t, x, 2)
	leave()
	if err := <-got; err != nil {
		t.Errorf("after the first worker left: %v", err)
	}
	if s := x.Stats(); s.Remote != 3 || s.Local != 0 || s.Unheard != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestMeasureGivesUp: without a worker, after so long without an answer, and when
// the caller does.
func TestMeasureGivesUp(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	for name, c := range map[string]struct {
		change func(*dispatch.ControllerConfig)
		worker bool
		within time.Duration
		want   string
	}{
		"no worker":   {change: func(c *dispatch.ControllerConfig) { c.Absence = time.Millisecond }, within: time.Minute, want: "no worker of kind hardware-here for 1ms"},
		"no answer":   {change: func(c *dispatch.ControllerConfig) { c.Longest = time.Millisecond }, worker: true, within: time.Minute, want: "no answer in 1ms"},
		"interrupted": {within: 100 * time.Millisecond, want: "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			x := controller(t, a, c.change)
			r, err := x.Remote(dispatch.Problem{Kind: here, Graph: []byte("graph"), Machine: []byte("machine")}, newSum(2))
			if err != nil {
				t.Fatal(err)
			}
			if c.worker {
				defer measureFor(t, a, "slow", bench{newSum(2), make(chan struct{}, 1)})()
				awaitMeasuring(t, x, 1)
			}
			ctx, cancel := context.WithTimeout(context.Background(), c.within)
			defer cancel()
			if _, err := r.Measure(ctx, at(9)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
