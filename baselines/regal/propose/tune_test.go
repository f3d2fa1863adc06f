package propose_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func TestGrid(t *testing.T) {
	grid := propose.Grid()
	if len(grid) != 648 {
		t.Errorf("%d settings, the paper has 648", len(grid))
	}
	seen := map[propose.Setting]bool{}
	for _, s := range grid {
		if err := s.Config.Validate(); err != nil || seen[s] {
			t.Errorf("%+v: %v, seen %v", s, err, seen[s])
		}
		seen[s] = true
	}
	coarse := propose.Coarse()
	for _, s := range coarse {
		if !seen[s] {
			t.Errorf("%+v is not of the grid", s)
		}
	}
	if len(coarse) != 36 {
		t.Errorf("%d coarse settings, want 36", len(coarse))
	}
}

// A setting that cannot search loses to those that can.
func TestSearch(t *testing.T) {
	bad := brkga.Config{Populations: 1, Chromosomes: 100, Elites: 1, Mutants: 98, EliteBias: 0.5}
	grid := []propose.Setting{{Config: bad, Shape: brkga.Shape{Alpha: 20, Beta: 20}}, {Config: brkga.Default(), Shape: brkga.Shape{Alpha: 1, Beta: 1}}, {Config: bad, Shape: brkga.Shape{Alpha: 1, Beta: 1}}}
	c := propose.Tuning{Graphs: []int{2, 2}, Keep: []int{2, 1}, Evaluations: 800}
	rounds := 0
	graph := func(k int) (*sched.Problem, error) {
		return synth.Default().Generate(rand.New(rand.NewPCG(1, uint64(k)))), nil
	}
	var known [][]float64
	c.Ended = func(k int, costs []float64) error {
		if k != len(known) {
			t.Errorf("graph %d after %d", k, len(known))
		}
		known = append(known, costs)
		return nil
	}
	left, err := propose.Tune(context.Background(), grid, c, graph, func(int, []propose.Scored) { rounds++ })
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].Setting != grid[1] || left[0].Graphs != 4 || left[0].Cost >= 1 || rounds != 2 {
		t.Errorf("left %+v after %d rounds", left, rounds)
	}
	// Gone on with after three of four graphs.
	c.Known, c.Ended = known[:3], func(k int, costs []float64) error {
		if k != 3 || !slices.Equal(costs, known[3]) {
			t.Errorf("graph %d: %v, want %v", k, costs, known[3])
		}
		return nil
	}
	again, err := propose.Tune(context.Background(), grid, c, graph, func(int, []propose.Scored) {})
	if err != nil || !slices.Equal(again, left) {
		t.Errorf("%+v, %v; without the stop %+v", again, err, left)
	}
	c.Known, c.Ended = nil, nil
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := propose.Tune(ctx, grid, c, graph, func(int, []propose.Scored) {}); err == nil {
		t.Error("an ended context gives a result")
	}
}

func ExampleTuned() {
	fmt.Println(len(propose.Grid()), propose.Tuned().Config.Validate())
	// Output: 648 <nil>
}
