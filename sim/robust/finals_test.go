package robust_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"placer/plan"
	"placer/sim"
	"placer/sim/robust"
)

// TestFinals: of many placements the finals choose one whose sampled quantile on machines that they
// did not have is near the least, they stop with ctx, and they depend on the seed alone, not on the workers.
func TestFinals(t *testing.T) {
	g, m, cost := priced(t)
	rng := rand.New(rand.NewPCG(4, 5))
	var all []plan.Decision
	for range 12 {
		d := plan.Decision{Device: make([]uint8, g.NumOps())}
		for i := range d.Device {
			d.Device[i] = uint8(rng.IntN(1 + len(all)%m.NumDevices()))
		}
		all = append(all, d)
	}
	c := robust.Config{Quantile: 0.95, Machines: 200, Error: 0.1, Seed: 3}
	best, n, err := robust.Finals(context.Background(), robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, c, all, 1)
	if err != nil || n < c.Machines/2 {
		t.Fatalf("%d machines, %v", n, err)
	}
	if again, ran, _ := robust.Finals(context.Background(), robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, c, all, 3); again != best || ran != n {
		t.Errorf("decision %d by %d machines, with three workers %d by %d", best, n, again, ran)
	}
	other := c
	other.Seed = 4
	quantile := func(k int) float64 {
		steps, err := robust.Sample(t.Context(), robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, other, all[k], 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		return robust.Quantile(steps, c.Quantile)
	}
	least := quantile(0)
	for k := range all {
		least = min(least, quantile(k))
	}
	if got := quantile(best); got > 1.01*least {
		t.Errorf("the chosen one takes %.4g s, the best %.4g s", got, least)
	}
	if best, n, err := robust.Finals(t.Context(), robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, c, all[:1], 2); best != 0 || n != 0 || err != nil {
		t.Errorf("of one decision %d by %d machines, %v", best, n, err)
	}
	ended, stop := context.WithCancel(context.Background())
	stop()
	if _, n, err := robust.Finals(ended, robust.Model{Graph: g, Machine: m, Cost: cost, How: sim.Default()}, c, all, 2); n != 0 || err != nil {
		t.Errorf("%d machines after the end, %v", n, err)
	}
}
