package strategies

import (
	"context"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/plan"
)

// TestPlacementIsNotWorse: the placement of the micro-batched graph is at least as good as
// 1F1B and interleaved stages, and places every co-location group on one device.
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
		var starts []*Row
		for _, s := range []strategy.Strategy{piped(strategy.OneFOneB, 2, 4, 1), piped(strategy.Interleaved, 2, 4, 2)} {
			row := x.best(context.Background(), NamePipeline, []strategy.Strategy{s})
			if row.Result == nil {
				if s.Chunks > 1 && strings.Contains(row.Why, "can be cut into") {
					continue
				}
				t.Fatal(row.Why)
			}
			starts = append(starts, &row)
		}
		got, err := x.place(context.Background(), starts, plan.Budget{Evaluations: 40}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range starts {
			if row.Score().Better(got.Score()) {
				t.Errorf("%s: %.6g s, %v %.6g s", name, got.Seconds, row.Strategy, row.Seconds)
			}
		}
		t.Logf("%s: of %d pipelines, 1F1B %.4g ms, the last %.4g ms, placement %.4g ms (%v)", name, len(starts), 1e3*starts[0].Seconds, 1e3*starts[len(starts)-1].Seconds, 1e3*got.Seconds, got.Strategy)
		again, err := x.place(context.Background(), starts, plan.Budget{Evaluations: 40}, 1)
		if err != nil || again.Seconds != got.Seconds {
			t.Errorf("%s: again %v, %v", name, again.Seconds, err)
		}
		if got.Device == nil {
			continue
		}
		g, err := x.models.graph(variant{2, strategy.RecomputeNothing, 0})
		if err != nil {
			t.Fatal(err)
		}
		if err := (&plan.Plan{Decision: plan.Decision{Device: got.Device}}).Check(g, x.judge.Machine); err != nil {
			t.Error(err)
		}
	}
}

// TestPlacementIsNotBehindAPlacement: no row that places the same graph, one device among
// them, is better than the row of the placement. Small models are quickest on one device.
func TestPlacementIsNotBehindAPlacement(t *testing.T) {
	single := 0
	for _, name := range small {
		m, err := hw.Take("a100", 2, false)
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Batch: 4, Budget: plan.Budget{Evaluations: 3}, Seed: 1, Clock: func() float64 { return 0 }}
		x, err := NewComparison(source(), family(name), m, c)
		if err != nil {
			t.Fatal(err)
		}
		rows := x.Rows(t.Context(), nil)
		got := rows[len(rows)-1]
		if got.Name != NamePlacement {
			continue
		}
		for _, r := range rows {
			if r.Result != nil && isPlacement(r.Strategy) && r.Score().Better(got.Score()) {
				t.Errorf("%s: placement %.6g s, %s %.6g s", name, got.Seconds, r.Name, r.Seconds)
			}
		}
		if got.Strategy.Pipeline == 1 {
			single++
		}
	}
	if single == 0 {
		t.Error("on no model one device is best: the test shows nothing")
	}
}

// TestPlacementWithoutPipelines: where a model has fewer layers than the machine has devices, the
// placement begins with stages cut within layers; where it has nothing to cut, its row says so.
func TestPlacementWithoutPipelines(t *testing.T) {
	m, err := hw.Take("a100", 3, false)
	if err != nil {
		t.Fatal(err)
	}
	one := chain(t, 1).Micro
	for name, of := range map[string]Family{"llama": family("llama:layers=2,seq=512,batch=1"), "one product": func(int64) (*graph.Graph, error) { return one, nil }} {
		c := Config{Batch: 8, Budget: plan.Budget{Evaluations: 40}, Seed: 1, Clock: func() float64 { return 0 }}
		x, err := NewComparison(source(), of, m, c)
		if err != nil {
			t.Fatal(err)
		}
		rows := x.Rows(t.Context(), nil)
		single, got := rows[0], rows[len(rows)-1]
		switch {
		case got.Name != NamePlacement:
			t.Errorf("%s: no row of a placement", name)
		case name == "llama" && (got.Result == nil || got.Seconds > 0.7*single.Seconds):
			t.Errorf("%s: placement %+v, %s", name, got.Result, got.Why)
		case name != "llama" && (got.Result != nil || got.Why == ""):
			t.Errorf("%s: placement %+v, %q", name, got.Result, got.Why)
		}
	}
}

// TestTurns: under every schedule each stage has every pass of every chunk once, in turn.
func TestTurns(t *testing.T) {
	for _, s := range []strategy.Strategy{piped(strategy.OneFOneB, 3, 5, 1), piped(strategy.GPipe, 2, 4, 1), piped(strategy.Interleaved, 2, 6, 3), piped(strategy.Free, 4, 8, 1), piped(strategy.Free, 2, 6, 2)} {
		for stage, turns := range s.Turns() {
			if len(turns) != 2*s.MicroBatches*s.Chunks {
				t.Fatalf("%v: %d passes, want %d", s, len(turns), 2*s.MicroBatches*s.Chunks)
			}
			seen := make([]bool, len(turns))
			for _, turn := range turns {
				if seen[turn] {
					t.Errorf("%v: stage %d has two passes at turn %d", s, stage, turn)
				}
				seen[turn] = true
			}
		}
	}
}
