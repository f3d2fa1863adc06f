package cli

import (
	"time"

	"github.com/spf13/cobra"

	"placer/internal/bench"
)

func (c *console) benchTable3Command() *cobra.Command {
	return c.goBenchCommand(bench.GOTable3(), "GO's table 3: fusion by TensorFlow's default, annealing and the policy",
		"go-table3 fixes the human placement and the critical-path scheduler and compares\n"+
			"step times without fusion, with that of TensorFlow's default (with XLA), with what\n"+
			"simulated annealing finds in 20 times the policy's budget, and with what the\n"+
			"policy learns.")
}

func (c *console) benchFigure6Command() *cobra.Command {
	return c.goBenchCommand(bench.GOFigure6(), "GO's figure 6: placement, scheduling and fusion alone, in pairs and jointly",
		"go-figure6 compares TensorFlow's default, the human expert's placement, and the\n"+
			"policy on each task alone, on each two, on the three one by one with a third of the\n"+
			"budget each (place|schedule|fuse) and on the three together. What is not decided is\n"+
			"the human placement, TensorFlow's FIFO scheduler and its default fusion (with XLA).")
}

// goBenchCommand is the command of an experiment of GO.
func (c *console) goBenchCommand(b bench.GO, short, long string) *cobra.Command {
	var f bench.GORun
	var seconds time.Duration
	var workers int
	var out string
	var form formFlags
	cmd := &cobra.Command{
		Use:   b.Name,
		Short: short,
		Long: long + "\n\nEach trial is kept in the folder of --out as it ends; the same command\n" +
			"continues where it was stopped; with other workloads, machines or seeds it adds to it.",
		Example: "  placer bench " + b.Name + " --evaluations 4000 --seeds 6 --out runs/" + b.Name + "\n" +
			"  placer bench " + b.Name + " --workload trfxl2 --evaluations 500 --markdown",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Seconds = seconds.Seconds()
			m, err := b.Select(f)
			if err != nil {
				return err
			}
			dir := out
			if dir == "" {
				if dir, err = freeFolder(b.Name); err != nil {
					return err
				}
			}
			j, whole, err := bench.OpenJournal(dir, m)
			if err != nil {
				return err
			}
			defer j.Close()
			doc, stopped := bench.Run(cmd.Context(), m, whole, j, workers, b.Trials(m, bench.SameInputs(j, c.loadCase), c.clock), b.Tables, c.bench())
			return c.printTables(&form, doc, j.Dir(), stopped, "the same command with --out")
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.Workloads, "workload", nil, "some of the workloads, separated by commas; all without it")
	fl.StringSliceVar(&f.GPUs, "gpu", nil, "some of the machine models; all without it")
	fl.IntVar(&f.Evaluations, "evaluations", 4000, "evaluations of each trial of the policy; 0 with --seconds for none")
	fl.DurationVar(&seconds, "seconds", 0, "time of each trial of the policy")
	fl.IntVar(&f.Seeds, "seeds", 1, "seeds of each")
	fl.Uint64Var(&f.Seed, "seed", 1, "the first seed")
	addWorkers(fl, &workers, "trials that run at once")
	fl.StringVar(&out, "out", "", "folder of the trials and the results (default runs/"+b.Name+", numbered if taken)")
	form.add(cmd)
	return cmd
}
