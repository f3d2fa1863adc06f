package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"placer/internal/words"
	"placer/placer/corpus"
	"placer/placer/methods"
	"placer/plan"
	"placer/units"
)

// corpusFlags are the flags of pretrain corpus.
type corpusFlags struct {
	config            corpus.Config
	out               string
	problems, workers int
	check             bool
}

func (c *console) corpusCommand() *cobra.Command {
	f := corpusFlags{config: corpus.Default()}
	cmd := &cobra.Command{
		Use:   "corpus",
		Short: "Make problems to pretrain on, each with the best plan of a long search",
		Long: "corpus draws problems of many families on many machines and searches each for a while,\n" +
			"for placement, schedule and fusion. The folder's file holds a line for each problem. The\n" +
			"same command continues a run that was stopped or killed, or adds problems; with\n" +
			"--evaluations it ends with the same file.",
		Example: "  placer pretrain corpus --out runs/corpus --problems 3000\n  placer pretrain corpus --out runs/corpus --check",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.out == "" {
				return usagef("name the corpus's folder by --out")
			}
			if f.config.Evaluations > 0 && !cmd.Flags().Changed("seconds") {
				f.config.Seconds = 0
			}
			if f.problems < 1 || f.workers < 1 {
				return usagef("--problems %d and --workers %d, want at least 1", f.problems, f.workers)
			}
			if err := f.config.Validate(); err != nil {
				return usage(err)
			}
			if f.check {
				return c.checkCorpus(cmd.Context(), f.out)
			}
			return c.makeCorpus(cmd.Context(), &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.out, "out", "", "folder of the corpus; an existing one is continued")
	fl.IntVar(&f.problems, "problems", 3000, "problems that the corpus is to have")
	fl.Float64Var(&f.config.Seconds, "seconds", f.config.Seconds, "processor time that the search of a problem takes at least")
	fl.IntVar(&f.config.Evaluations, "evaluations", 0, "evaluations of the search of a problem, in place of --seconds")
	fl.Uint64Var(&f.config.Seed, "seed", f.config.Seed, "seed of every random choice")
	fl.IntVar(&f.workers, "workers", 2, "problems searched at once, one core each")
	fl.BoolVar(&f.check, "check", false, "make nothing; judge every plan of the corpus again")
	return cmd
}

func (c *console) makeCorpus(ctx context.Context, f *corpusFlags) error {
	show := c.newProgress(plan.Budget{})
	defer show.close()
	made := 0
	err := corpus.Make(ctx, f.out, f.problems, f.config, corpus.Host{
		Teach: methods.Teach, CPU: c.cpu, Workers: f.workers,
		Report: func(p corpus.Progress) {
			made++
			left := c.clock() / float64(made) * float64(p.Of-p.Done)
			show.line("%7.1f s  %d of %d, %.1f h left: %s, %s, %s: %s (expert %s, one device %s) by %s after %s, %.1f CPU s", c.clock(), p.Done, p.Of, left/3600,
				p.Families[0], words.Count(p.Ops, "op", "ops"), p.Machine, stepOf(p.Best), stepOf(p.Expert), stepOf(p.OneDevice), p.Method, words.Count(p.Evaluations, "evaluation", "evaluations"), p.CPUSeconds)
		},
	})
	if errors.Is(err, context.Canceled) {
		return interrupted("interrupted; run the same command to continue")
	}
	if err != nil {
		return err
	}
	return c.summariseCorpus(f.out)
}

// stepOf writes a score of steps.
func stepOf(s corpus.Score) string {
	if s.Overflow > 0 {
		return fmt.Sprintf("%s too much", s.Overflow)
	}
	return units.Seconds(s.Seconds).String()
}

// checkCorpus judges every plan of the corpus in folder again.
func (c *console) checkCorpus(ctx context.Context, folder string) error {
	all, err := corpus.Read(folder)
	if err != nil {
		return err
	}
	for i := range all.Problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := all.Problems[i].Check(); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(folder, corpus.FileName), err)
		}
	}
	return c.summariseCorpus(folder)
}

// summariseCorpus prints what the corpus in folder holds.
func (c *console) summariseCorpus(folder string) error {
	all, err := corpus.Read(folder)
	if err != nil {
		return err
	}
	s := all.Summary()
	return c.writeText(func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %s of %s, %d to %d ops, median %d; %s\n"+
			"plans take %.1f%% less than the expert's and %.1f%% less than one device's, in the geometric mean where both fit; %.1f CPU s a label\n",
			filepath.Join(folder, corpus.FileName), words.Count(s.Problems, "problem", "problems"), words.Count(s.Families, "family", "families"), s.LeastOps, s.MostOps, s.MedianOps,
			words.Count(s.Unfit, "plan does not fit", "plans do not fit"), 100*(1-s.ToExpert), 100*(1-s.ToOneDevice), s.CPUSeconds)
		return err
	})
}
