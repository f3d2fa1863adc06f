package rivals

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func climbStream(k uint64) *rand.Rand { return rand.New(rand.NewPCG(41, k)) }

// Every variant gives a valid order at the cost it says, for both objectives, and
// better than its start.
func TestVariants(t *testing.T) {
	p := synth.Default().Generate(climbStream(1))
	for _, o := range []sched.Objective{sched.RunTime, sched.PeakMemory} {
		for bits := range 8 {
			c := localSearch{starts: 1 + bits, sideways: bits&1 != 0, neighbours: bits&2 != 0, eager: bits&4 != 0}
			e := sched.NewEvaluator(p, o)
			got := c.solve(context.Background(), e, 800, climbStream(2))
			if got.Evaluations != 800 {
				t.Errorf("%+v: %d evaluations, want 800", c, got.Evaluations)
			}
			place := e.Place
			if c.eager {
				place = e.PlaceEager
			}
			if s := o.Cost(p.Machine(), place(got.Device, got.Order)); s != got.Cost {
				t.Errorf("%+v: cost %g, judged again %g", c, got.Cost, s)
			}
			if _, err := e.Schedule(slices.Clone(got.Device), slices.Clone(e.Sequence())); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			if first := c.solve(context.Background(), e, 1, climbStream(2)); got.Cost >= first.Cost {
				t.Errorf("%+v: %g after 800 evaluations, %g after 1", c, got.Cost, first.Cost)
			}
			again := c.solve(context.Background(), e, 800, climbStream(2))
			if !slices.Equal(got.Device, again.Device) || !slices.Equal(got.Order, again.Order) {
				t.Errorf("%+v: the same stream gives another result", c)
			}
		}
	}
}

func TestStopsWithContext(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	e := sched.NewEvaluator(synth.Default().Generate(climbStream(1)), sched.RunTime)
	if got := (localSearch{starts: 1}).solve(ctx, e, 1e9, climbStream(1)); got.Evaluations > 64 {
		t.Errorf("%d evaluations after the end", got.Evaluations)
	}
}

func Example_localSearch() {
	p := synth.Default().Generate(rand.New(rand.NewPCG(1, 0)))
	e := sched.NewEvaluator(p, sched.RunTime)
	got := (localSearch{starts: 1}).solve(context.Background(), e, 2000, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(got.Evaluations, got.Cost < p.Work())
	// Output: 2000 true
}
