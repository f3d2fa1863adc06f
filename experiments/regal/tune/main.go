// Command tune runs the grid search of tuned BRKGA on synthetic training graphs
// and prints what is left after each round, one JSON line a setting. What it has
// found on each graph is in the file of -costs, with which it goes on after a kill;
// the file's first line says what it is about.
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
	var s settings
	flag.Uint64Var(&s.Seed, "seed", 1000, "seed of the training graphs")
	flag.BoolVar(&s.Coarse, "coarse", false, "36 of the 648 settings, fewer graphs")
	costs := flag.String("costs", "", "file of the costs by graph; without one a kill loses all")
	flag.Parse()
	if err := run(s, *costs, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "tune:", err)
		os.Exit(1)
	}
}

// settings are what costs depend on.
type settings struct {
	Seed   uint64 `json:"seed"`
	Coarse bool   `json:"coarse"`
}

// run searches. left is what stands behind the flags.
func run(s settings, file string, left []string) error {
	if len(left) > 0 {
		return fmt.Errorf("%q: want flags alone", left)
	}
	grid, config := propose.Grid(), propose.DefaultTuning()
	if s.Coarse {
		grid, config.Graphs, config.Keep = propose.Coarse(), []int{3, 6, 10}, []int{9, 3, 1}
	}
	ctx := context.Background()
	out := json.NewEncoder(os.Stdout)
	graph := func(k int) (*sched.Problem, error) {
		p, _, err := synth.Filtered(ctx, synth.Default(), synth.DefaultFilter(), s.Seed, uint64(k))
		return p, err
	}
	if file != "" {
		lines, known, err := openCosts(file, s)
		if err != nil {
			return err
		}
		defer lines.Close()
		config.Known, config.Ended = known, func(_ int, costs []float64) error { return add(lines, costs) }
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

// openCosts opens or makes a file of costs, and returns those that it has. Costs of other
// settings are an error.
func openCosts(file string, want settings) (lines *fsx.Lines, known [][]float64, err error) {
	begun := false
	lines, err = fsx.OpenLines(file, func(line []byte) error {
		if !begun {
			begun = true
			var have settings
			if err := json.Unmarshal(line, &have); err != nil {
				return fmt.Errorf("it does not begin with the settings of a search: %w", err)
			}
			if have != want {
				return fmt.Errorf("it holds costs of -seed %d -coarse=%t: name another file", have.Seed, have.Coarse)
			}
			return nil
		}
		var costs []float64
		err := json.Unmarshal(line, &costs)
		known = append(known, costs)
		return err
	})
	if err != nil || begun {
		return lines, known, err
	}
	if err := add(lines, want); err != nil {
		lines.Close()
		return nil, nil, err
	}
	return lines, nil, nil
}

// add adds x as a line.
func add(lines *fsx.Lines, x any) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return lines.Add(line)
}
