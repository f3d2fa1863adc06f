package strategies

import (
	"context"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
	"placer/plan"
)

// TestPlacementIsNotWorse: the placement of the micro-batched graph is at least as good as
// 1F1B over its optimal stages, and places every co-location group on one device.
func TestPlacementIsNotWorse(t *testing.T) {
	for _, name := range small {
		m, err := hw.Take("a100", 4, false)
		if err != nil {
			t.Fatal(err)
		}
		x, err := NewComparison(source(), family(name), m, Config{Batch: 8, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		s := piped(strategy.OneFOneB, 2, 4, 1)
		row := x.best(context.Background(), NamePipeline, []strategy.Strategy{s})
		if row.Result == nil {
			t.Fatal(row.Why)
		}
		got, err := x.place(context.Background(), &row, plan.Budget{Evaluations: 40}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if row.Score().Better(got.Score()) {
			t.Errorf("%s: %.6g s, 1F1B %.6g s", name, got.Seconds, row.Seconds)
		}
		t.Logf("%s: 1F1B %.4g ms, placement %.4g ms (%v)", name, 1e3*row.Seconds, 1e3*got.Seconds, got.Strategy.Schedule)
		again, err := x.place(context.Background(), &row, plan.Budget{Evaluations: 40}, 1)
		if err != nil || again.Seconds != got.Seconds {
			t.Errorf("%s: again %v, %v", name, again.Seconds, err)
		}
		if got.Device == nil {
			continue
		}
		g, err := x.models.graph(variant{2, false})
		if err != nil {
			t.Fatal(err)
		}
		if err := (&plan.Plan{Decision: plan.Decision{Device: got.Device}}).Check(g, x.judge.Machine); err != nil {
			t.Error(err)
		}
	}
}
