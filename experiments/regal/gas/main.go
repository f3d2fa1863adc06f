// Command gas trains REGAL's baseline GAS on synthetic training graphs and writes
// its weights.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"

	"placer/baselines/regal/gas"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/internal/fsx"
	"placer/nn"
	"placer/nn/safetensors"
)

func main() {
	t := gas.DefaultTraining()
	flag.IntVar(&t.Steps, "steps", 1000, "gradient steps, one graph each")
	graphs := flag.Int("graphs", 100, "training graphs")
	seed := flag.Uint64("seed", 2000, "seed of graphs and training")
	out := flag.String("o", "", "file of the weights")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "gas: %q: want flags alone\n", flag.Args())
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := train(ctx, t, *graphs, *seed, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gas:", err)
		os.Exit(1)
	}
}

// train trains on so many graphs of a seed and writes the weights to out.
func train(ctx context.Context, t gas.Training, graphs int, seed uint64, out string) error {
	if out == "" {
		return errors.New("-o: want a file for the weights")
	}
	if graphs < 1 || t.Steps < 1 {
		return fmt.Errorf("-graphs %d, -steps %d: want at least 1", graphs, t.Steps)
	}
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return err
	}
	p, err := gas.New(gas.Default(), backend, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		return err
	}
	known := make([]*sched.Problem, graphs)
	graph := func(k int) (*sched.Problem, error) {
		var err error
		k %= graphs
		if known[k] == nil {
			known[k], _, err = synth.Filtered(ctx, synth.Default(), synth.DefaultFilter(), seed, uint64(k))
		}
		return known[k], err
	}
	sum, steps := 0.0, 0
	err = p.Train(ctx, t, graph, rand.New(rand.NewPCG(seed, 2)), func(s gas.Step) {
		sum += s.Reward
		if steps++; steps%50 == 0 {
			fmt.Printf("step %d: mean reward %.4f\n", s.Step+1, sum/50)
			sum = 0
		}
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	file := nn.Checkpoint(p.Params(), nil, map[string]string{"policy": "gas", "steps": strconv.Itoa(steps), "seed": strconv.FormatUint(seed, 10)})
	return fsx.WriteFile(out, func(w io.Writer) error { return safetensors.Write(w, file) })
}
