package cli

import "github.com/spf13/cobra"

// graphFlags name a graph.
type graphFlags struct {
	workload, file, train string
	dims                  map[string]int64
}

func (f *graphFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.workload, "workload", "", "built-in workload, as 'placer workloads' lists them")
	cmd.Flags().StringVar(&f.file, "graph", "", "graph file, ONNX, CostGraphDef or placer's JSON; - reads stdin")
	cmd.Flags().StringToInt64Var(&f.dims, "dim", nil, "values of an ONNX file's named dimensions, as batch=32; 1 where none is given")
	cmd.Flags().StringVar(&f.train, "train", "", "derive the training step of a graph file: sgd, momentum or adam")
}

func (f *graphFlags) check() error {
	switch {
	case f.workload == "" && f.file == "":
		return usagef("name a graph by --workload or --graph")
	case f.workload != "" && f.file != "":
		return usagef("--workload and --graph exclude each other")
	case f.workload != "" && f.train != "":
		return usagef("--train is for graph files: workloads are training steps already")
	case f.workload != "" && len(f.dims) > 0:
		return usagef("--dim is for graph files; workloads take settings as in rnnlm:layers=2,unroll=3")
	}
	for name, n := range f.dims {
		if n < 1 {
			return usagef("--dim %s=%d: want at least 1", name, n)
		}
	}
	return nil
}

// machineFlags name a machine.
type machineFlags struct {
	file, gpu string
	gpus      int
	cpu       bool
}

func (f *machineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "machine", "", "machine file (JSON); - reads stdin")
	cmd.Flags().StringVar(&f.gpu, "gpu", "p100", "built-in machine, as 'placer machines' lists them")
	cmd.Flags().IntVar(&f.gpus, "gpus", 0, "use the first of the machine's GPUs; 0 means all")
	cmd.Flags().BoolVar(&f.cpu, "cpu", false, "let ops run on the host's CPU too")
}

func (f *machineFlags) check(cmd *cobra.Command) error {
	switch {
	case f.file != "" && cmd.Flags().Changed("gpu"):
		return usagef("--machine and --gpu exclude each other")
	case f.gpus < 0 || cmd.Flags().Changed("gpus") && f.gpus == 0:
		return usagef("--gpus %d: want at least 1", f.gpus)
	}
	return nil
}

// Schedulers that every placement of a run is judged under.
const (
	criticalPath = "critical-path"
	fifo         = "fifo"
)
