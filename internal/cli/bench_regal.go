package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/internal/bench/regal"
	"placer/internal/fsx"
	"placer/units"
)

func (c *console) benchRegalCommand() *cobra.Command {
	f, t := regal.Default(), regal.DefaultTraining()
	f.Load = c.timedGraph
	var asJSON bool
	var csvFile string
	cmd := &cobra.Command{
		Use:   "regal",
		Short: "REGAL's table 1: every method at 5,000 evaluations, synthetic or imported graphs",
		Long: "Compares the methods of REGAL's table 1 under its synchronous performance model\n" +
			"(data tensors that cross devices block both, control dependencies only order).\n" +
			"--task synthetic draws graphs as the paper does, filter included; --task time and\n" +
			"--task memory take the graphs of --graph and --workload, with copies whose times\n" +
			"and sizes are each multiplied by U(0.5,1.5).",
		Example: "  placer bench regal --graphs 100\n  placer bench regal --task memory --graph model.onnx --copies 9",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkStdout("--csv", csvFile, asJSON); err != nil {
				return err
			}
			if t.Folder != "" {
				return regal.Train(cmd.Context(), f, t, c.bench())
			}
			doc, err := regal.Compare(cmd.Context(), f, c.bench())
			switch {
			case err != nil:
				return err
			case csvFile == "-":
				return doc.WriteCSV(c.out)
			}
			err = c.print(asJSON, doc)
			if csvFile != "" {
				err = errors.Join(err, fsx.WriteFile(csvFile, doc.WriteCSV))
			}
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVar((*string)(&f.Task), "task", string(f.Task), "column of the table: synthetic, time or memory")
	fl.IntVar(&f.Graphs, "graphs", f.Graphs, "synthetic graphs")
	fl.StringSliceVar(&f.Files, "graph", nil, "graph files for time and memory (repeatable)")
	fl.StringSliceVar(&f.Workloads, "workload", nil, "built-in workloads for time and memory (repeatable)")
	fl.IntVar(&f.Copies, "copies", f.Copies, "augmented copies of each of them")
	fl.IntVar(&f.Devices, "devices", f.Devices, "equal devices")
	fl.StringVar(&f.Memory, "memory", "", "memory of each device, as 16GiB, or none; without it 16GiB for time, none for the others")
	fl.StringVar(&f.GPU, "gpu", f.GPU, "built-in machine whose first GPU gives the op times of graphs without their own")
	fl.Uint64Var(&f.Seed, "seed", f.Seed, "every random choice follows from it")
	fl.IntVar(&f.Evaluations, "evaluations", f.Evaluations, "evaluations of every search")
	addWorkers(fl, &f.Workers, "graphs at once")
	fl.BoolVar(&f.Long, "long", false, "add BRKGA with ten times the evaluations")
	fl.BoolVar(&f.NoCPSAT, "no-cpsat", false, "leave CP-SAT out where it is installed")
	fl.Float64Var(&f.CPSATWork, "cpsat-work", f.CPSATWork, "CP-SAT's limit in its deterministic time, roughly seconds")
	fl.StringVar(&f.GAS, "gas", "", "weights of GAS, which adds its row; experiments/regal/gas trains them")
	fl.StringSliceVar(&f.REGAL, "regal", nil, "weights of REGAL's policy, one row each, or none; without it those that come with the program, for the synthetic task")
	fl.StringVar(&t.Folder, "train-regal", "", "train REGAL's policy on the task's graphs into this folder, or go on with what is there, instead of comparing")
	fl.StringVar(&t.Agent, "regal-agent", t.Agent, "network to train: synthetic, time or memory, as in the paper, or deep")
	fl.BoolVar(&t.Likeliest, "regal-likeliest", false, "let the trained policy propose its likeliest actions instead of drawing them")
	fl.IntVar(&t.Steps, "train-steps", t.Steps, "steps of the training, those of imitation and of a training gone on with included")
	fl.IntVar(&t.Graphs, "train-graphs", t.Graphs, "synthetic training graphs")
	fl.IntVar(&t.Every, "train-save", t.Every, "steps between checkpoints")
	fl.IntVar(&t.MaxOps, "train-max-ops", t.MaxOps, "ops of the largest synthetic training graph; small ones teach sooner")
	fl.IntVar(&t.Keep, "train-keep", t.Keep, "visits of a training graph in a row that share a reading of its features")
	fl.IntVar(&t.Imitate, "train-imitate", 0, "first steps, which imitate a rule of ours; 0 for REINFORCE alone, as in the paper")
	fl.IntVar(&t.Batch, "train-batch", t.Batch, "graphs of a step")
	fl.IntVar(&t.Samples, "train-samples", t.Samples, "samples of each graph")
	fl.IntVar(&t.Evaluations, "train-evaluations", t.Evaluations, "evaluations of a search that rewards a sample")
	fl.Float64Var(&t.LearningRate, "train-rate", t.LearningRate, "learning rate of REINFORCE")
	fl.StringVar(&f.Out, "out", "", "folder that keeps each graph's results as it ends, and the tables; the same command continues where it was stopped")
	fl.BoolVar(&asJSON, "json", false, "print one JSON document")
	fl.StringVar(&csvFile, "csv", "", "write the rows as CSV to this file; - prints them instead of the table")
	return cmd
}

// timedGraph loads a graph and its op times on the first GPU of a built-in machine.
func (c *console) timedGraph(workload, file, gpu string) (*graph.Graph, []units.Seconds, error) {
	l, err := c.loadGraph(&graphFlags{Workload: workload, Graph: file})
	if err != nil {
		return nil, nil, err
	}
	c.tell(l)
	seconds, err := c.opSeconds(l, gpu)
	return l.Graph, seconds, err
}

// opSeconds returns l's op times on the first GPU of a built-in machine, or the
// file's.
func (c *console) opSeconds(l loaded, gpu string) ([]units.Seconds, error) {
	m, err := c.loadMachine(&machineFlags{GPU: gpu})
	if err != nil {
		return nil, err
	}
	cost, err := l.Costs(m)
	if err != nil {
		return nil, err
	}
	seconds := make([]units.Seconds, l.Graph.NumOps())
	for i := range seconds {
		seconds[i] = cost.OpSeconds(graph.OpID(i), 0)
	}
	return seconds, nil
}
