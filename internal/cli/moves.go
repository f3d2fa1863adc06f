package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"placer/internal/fsx"
	"placer/internal/words"
	"placer/placer/policy/proposer"
	"placer/plan"
)

// movesFile is the file of a folder of pretrain moves.
const movesFile = "moves.safetensors"

func (c *console) movesCommand() *cobra.Command {
	k := proposer.Default(plan.Place)
	out, cache, tasks := "", "", k.Tasks.String()
	cmd := &cobra.Command{
		Use:   "moves",
		Short: "Train the networks that choose the moves of guided annealing",
		Long: "moves draws problems of many families on many machines, anneals each by chance alone,\n" +
			"and trains a network on the moves that the simulator has judged: which of them\n" +
			"shortens the step, and by how much. Moves are of placement alone, or, with --tasks\n" +
			"place,schedule,fuse, of all tasks. The same command continues a run that was\n" +
			"stopped or killed, and ends with the same network.",
		Example: "  placer pretrain moves --out runs/moves\n  placer pretrain moves --hold-out gnmt --cache runs/judged --out runs/moves-without-gnmt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usagef("name the folder by --out")
			}
			var err error
			if k.Tasks, err = plan.ParseTasks(tasks); err != nil {
				return usage(err)
			}
			if !cmd.Flags().Changed("evaluations") {
				k.Evaluations = proposer.Default(k.Tasks).Evaluations
			}
			if err := k.Validate(); err != nil {
				return usage(err)
			}
			if cache == "" {
				cache = filepath.Join(out, "judged")
			}
			return c.trainMoves(cmd.Context(), k, out, cache)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&out, "out", "", "folder of the network; an existing one is continued")
	fl.StringVar(&cache, "cache", "", "folder that keeps judged moves, for several networks (default: judged in --out)")
	fl.StringVar(&tasks, "tasks", tasks, "what the moves decide on: place, or "+plan.AllTasks.String())
	fl.IntVar(&k.Problems, "problems", k.Problems, "problems that are annealed")
	fl.IntVar(&k.Evaluations, "evaluations", k.Evaluations, "evaluations of the annealing of each; of all tasks 4000")
	fl.StringSliceVar(&k.HeldOut, "hold-out", nil, "families that are held out, with those related to them")
	fl.IntVar(&k.Hidden, "hidden", k.Hidden, "width of the network's layers")
	fl.IntVar(&k.Epochs, "epochs", k.Epochs, "passes over all moves")
	fl.Float64Var(&k.Rate, "rate", k.Rate, "learning rate")
	fl.Uint64Var(&k.Seed, "seed", k.Seed, "seed of every random choice")
	return cmd
}

func (c *console) trainMoves(ctx context.Context, k proposer.Config, out, cache string) error {
	for _, folder := range []string{out, cache} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	show := c.newProgress(plan.Budget{})
	defer show.close()
	n, err := proposer.Train(ctx, k, proposer.Host{
		Collect: func(ctx context.Context, index int) (*proposer.Sample, error) { return collected(ctx, k, cache, index) },
		Report: func(p proposer.Progress) {
			if p.Epoch == 0 {
				show.line("%7.1f s  %d of %d problems, %s", c.clock(), p.Problem, k.Problems, words.Count(p.Moves, "move", "moves"))
			} else {
				show.line("%7.1f s  pass %d of %d over %s, loss %.4f", c.clock(), p.Epoch, k.Epochs, words.Count(p.Moves, "move", "moves"), p.Loss)
			}
		},
	})
	if errors.Is(err, context.Canceled) {
		return interrupted("interrupted; run the same command to continue")
	}
	if err != nil {
		return err
	}
	path := filepath.Join(out, movesFile)
	if err := fsx.WriteFile(path, n.Write); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%s: learned from %s on %s of %s\n", path, words.Count(n.Card.Moves, "move", "moves"), words.Count(n.Card.Graphs, "graph", "graphs"), strings.Join(n.Card.Trained, ", "))
	return err
}

// collected returns the moves of a problem, from the cache where they are there.
func collected(ctx context.Context, k proposer.Config, cache string, index int) (*proposer.Sample, error) {
	of, file := fmt.Sprintf("problem %d of seed %d, %d evaluations", index, k.Seed, k.Evaluations), fmt.Sprintf("%05d.safetensors", index)
	if k.Tasks != plan.Place {
		of, file = of+" of "+k.Tasks.String(), "all-"+file
	}
	path := filepath.Join(cache, file)
	s, err := readIfThere(path, func(data []byte, name string) (*proposer.Sample, error) {
		return proposer.ReadSample(data, k.Tasks, of, name)
	})
	if s != nil || err != nil {
		return s, err
	}
	if s, err = proposer.Collect(ctx, k.Tasks, k.Seed, index, k.Evaluations); err != nil {
		return nil, err
	}
	return s, fsx.WriteFile(path, func(w io.Writer) error { return s.Write(w, of) })
}
