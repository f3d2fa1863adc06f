// Command tune runs the grid search of tuned BRKGA on synthetic training graphs
// and prints what is left after each round, one JSON line a setting. What it has
// found on each graph is in the file of -costs, with which it goes on after a kill.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/internal/fsx"
)

func main() {
	seed := flag.Uint64("seed", 1000, "seed of the training graphs")
	coarse := flag.Bool("coarse", false, "36 of the 648 settings, fewer graphs")
	costs := flag.String("costs", "", "file of the costs by graph; without one a kill loses all")
	flag.Parse()
	if err := run(*seed, *coarse, *costs); err != nil {
		fmt.Fprintln(os.Stderr, "tune:", err)
		os.Exit(1)
	}
}

func run(seed uint64, coarse bool, file string) error {
	grid, config := propose.Grid(), propose.DefaultTuning()
	if coarse {
		grid, config.Graphs, config.Keep = propose.Coarse(), []int{3, 6, 10}, []int{9, 3, 1}
	}
	ctx := context.Background()
	out := json.NewEncoder(os.Stdout)
	graph := func(k int) (*sched.Problem, error) {
		p, _, err := synth.Filtered(ctx, synth.Default(), synth.DefaultFilter(), seed, uint64(k))
		return p, err
	}
	if file != "" {
		lines, err := fsx.OpenLines(file, func(line []byte) error {
			var costs []float64
			err := json.Unmarshal(line, &costs)
			config.Known = append(config.Known, costs)
			return err
		})
		if err != nil {
			return err
		}
		defer lines.Close()
		config.Ended = func(_ int, costs []float64) error {
			line, err := json.Marshal(costs)
			if err != nil {
				return err
			}
			return lines.Add(line)
		}
	}
	_, err := propose.Tune(ctx, grid, config, graph, func(round int, left []propose.Scored) {
		for _, x := range left[:min(len(left), 20)] {
			err := out.Encode(struct {
				Round int `json:"round"`
				propose.Scored
			}{round, x})
			if err != nil {
				fmt.Fprintln(os.Stderr, "tune:", err)
			}
		}
	})
	return err
}
