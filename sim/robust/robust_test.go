package robust_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/sim/robust"
	"placer/workloads"
)

const small = "llama:layers=2,hidden=64,heads=4,kv_heads=4,ffn=128,seq=32,vocab=100"

// priced returns a small graph, three P100s and what its ops take on them.
func priced(t *testing.T) (*graph.Graph, *hw.Machine, *roofline.Model) {
	t.Helper()
	g, err := workloads.Build(small)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", 3, false)
	if err != nil {
		t.Fatal(err)
	}
	cost, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		t.Fatal(err)
	}
	return g, m, cost
}

func evaluator(t *testing.T, c robust.Config) (*robust.Evaluator, *sim.Simulator, int) {
	t.Helper()
	g, m, cost := priced(t)
	e, err := robust.New(robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(g, m, cost, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	return e, s, g.NumOps()
}

// TestQuantile: the value is the quantile by the first three moments of the machines' steps, never below the bound, the simulator's own where nothing deviates, and
// the same from a clone.
func TestQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := robust.Config{Quantile: 0.95, Machines: 40, Error: 0.1, Seed: 3}
	e, s, n := evaluator(t, c)
	none, _, _ := evaluator(t, robust.Config{Quantile: 0.5, Machines: 3, Seed: 3})
	ctx, stop := context.WithCancel(t.Context())
	asIs := float64(s.LowerBound(ctx).Seconds)
	floor, tight := e.Floor(asIs), e.Bound(ctx, false, asIs, 2)
	if one := e.Bound(ctx, false, asIs, 1); one != tight {
		t.Errorf("bound %v by two workers, %v by one", tight, one)
	}
	stop()
	if none := e.Bound(ctx, false, asIs, 2); math.Abs(none/floor-1) > 1e-12 || !(0 < floor && floor < tight) {
		t.Errorf("bounds %v at first, %v when all machines have proven theirs, %v when none has", floor, tight, none)
	}
	for range 20 {
		d := plan.Decision{Device: make([]uint8, n)}
		for i := range d.Device {
			d.Device[i] = uint8(rng.IntN(3))
		}
		got, steps := e.Evaluate(d), e.Steps(d)
		if !slices.IsSorted(steps) || len(steps) != c.Machines {
			t.Fatalf("steps %v", steps)
		}
		mean, square, cube := 0.0, 0.0, 0.0
		for _, x := range steps {
			mean += math.Log(x) / 40
		}
		for _, x := range steps { // about the mean: deviations are small beside it
			square += math.Pow(math.Log(x)-mean, 2) / 40
			cube += math.Pow(math.Log(x)-mean, 3) / 40
		}
		sd := math.Sqrt(square)
		skew := cube / (sd * sd * sd)
		const z = 1.6448536269514722
		if want := math.Exp(mean + sd*(z+(z*z-1)/6*min(max(skew, -1), 1))); math.Abs(got.Value/want-1) > 1e-9 {
			t.Fatalf("value %v, want %v of %v", got.Value, want, steps)
		}
		if got.Value < tight {
			t.Errorf("value %v is below the bound %v", got.Value, tight)
		}
		if again := e.Clone().Evaluate(d); again != got {
			t.Errorf("a clone says %v, not %v", again, got)
		}
		if exact, own := none.Evaluate(d), s.Evaluate(d); math.Abs(exact.Value/own.Value-1) > 1e-12 || exact.Overflow != own.Overflow {
			t.Errorf("without deviation %v, want %v", exact, own)
		}
	}
}

func TestParse(t *testing.T) {
	if c, err := robust.Parse("p95"); err != nil || c.Quantile != 0.95 {
		t.Errorf("p95 is %v, %v", c, err)
	}
	for _, s := range []string{"", "95", "p0", "p49", "p100", "px"} {
		if _, err := robust.Parse(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

// TestMoves: a placement that changes is scored as the evaluator scores it, to the last bit,
// where there is no limit; and what is given up within a limit is above it but for few.
func TestMoves(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	e, _, n := evaluator(t, robust.Config{Quantile: 0.9, Machines: 50, Error: 0.15, Seed: 4})
	exact, race, d := e.Moves(), e.Moves(), plan.Decision{Device: make([]uint8, n), Priority: make([]int32, n)}
	for i, r := range rng.Perm(n) {
		d.Priority[i] = int32(r)
	}
	exact.Reset(d)
	race.Reset(d)
	best := math.Inf(1)
	above, given, wrong := 0, 0, 0
	for range 200 {
		var ops []graph.OpID
		for range 1 + rng.IntN(4) {
			ops = append(ops, graph.OpID(rng.IntN(n)))
		}
		to, before := uint8(rng.IntN(3)), slices.Clone(d.Device)
		for _, i := range ops {
			d.Device[i] = to
		}
		exact.Move(ops, to)
		race.Move(ops, to)
		want := e.Evaluate(d)
		if got, ok := exact.Score(math.Inf(1)); !ok || got != want {
			t.Fatalf("%+v, %v, want %+v", got, ok, want)
		}
		if want.Value > best {
			above++
		}
		switch got, ok := race.Score(best); {
		case ok && got != want:
			t.Fatalf("%+v, want %+v", got, want)
		case !ok:
			given++
			if want.Value <= best {
				wrong++
			}
		}
		if want.Value <= best {
			best = want.Value
			continue
		}
		for _, i := range ops { // taken back
			exact.Move([]graph.OpID{i}, before[i])
			race.Move([]graph.OpID{i}, before[i])
		}
		d.Device = before
	}
	t.Logf("%d of 200 are above the limit, %d were given up, %d of these wrongly", above, given, wrong)
	if given < above/2 || wrong > given/50 {
		t.Errorf("%d of 200 are above the limit, %d were given up, %d of these wrongly", above, given, wrong)
	}
}

// TestStratified: on few machines the quantile is near that on a great many.
func TestStratified(t *testing.T) {
	c := robust.Config{Quantile: 0.95, Machines: 50, Error: 0.1, Seed: 1}
	e, _, n := evaluator(t, c)
	d := plan.Decision{Device: make([]uint8, n)}
	for i := range d.Device {
		d.Device[i] = uint8(3 * i / n)
	}
	many := c
	many.Machines, many.Seed = 800, 9
	g, m, cost := priced(t)
	steps, err := robust.Sample(t.Context(), robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, many, d, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	few, of := e.Evaluate(d).Value, robust.Quantile(steps, 0.95)
	if math.Abs(few/of-1) > 0.04 {
		t.Errorf("p95 on 50 machines %v, on 800 %v", few, of)
	}
}

// TestWorkersOfSample: steps do not depend on how many workers run them, told counts all machines,
// and an end of the context is the error.
func TestWorkersOfSample(t *testing.T) {
	g, m, cost := priced(t)
	c := robust.Config{Quantile: 0.95, Machines: 30, Error: 0.1, Seed: 1}
	d := plan.Decision{Device: make([]uint8, g.NumOps())}
	one, err := robust.Sample(t.Context(), robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, c, d, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	four, err := robust.Sample(t.Context(), robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, c, d, 4, func(n int) {
		if last++; n != last {
			t.Errorf("told %d, want %d", n, last)
		}
	})
	if err != nil || !slices.Equal(one, four) || last != c.Machines {
		t.Errorf("%v, told of %d: one worker %v, four %v", err, last, one, four)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = robust.Sample(ctx, robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, c, d, 4, func(int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after cancelling: %v", err)
	}
}
