// Command tune runs the grid search of tuned BRKGA on synthetic training graphs
// and prints what is left after each round, one JSON line a setting.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/baselines/regal/tune"
)

func main() {
	seed := flag.Uint64("seed", 1000, "seed of the training graphs")
	coarse := flag.Bool("coarse", false, "36 of the 648 settings, fewer graphs")
	flag.Parse()
	grid, config := tune.Grid(), tune.Default()
	if *coarse {
		grid, config.Graphs, config.Keep = tune.Coarse(), []int{3, 6, 10}, []int{9, 3, 1}
	}
	ctx := context.Background()
	out := json.NewEncoder(os.Stdout)
	graph := func(k int) (*sched.Problem, error) {
		p, _, err := synth.Filtered(ctx, synth.Default(), synth.DefaultFilter(), *seed, uint64(k))
		return p, err
	}
	_, err := tune.Search(ctx, grid, config, graph, func(round int, left []tune.Scored) {
		for _, x := range left[:min(len(left), 20)] {
			if err := out.Encode(struct {
				Round int `json:"round"`
				tune.Scored
			}{round, x}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
