package cli

import (
	"github.com/spf13/cobra"

	"placer/plan"
	"placer/sim"
)

// graphFlags name a graph.
type graphFlags struct {
	workload, file, train string
	dims                  map[string]int64
	times                 string // file
}

func (f *graphFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.workload, "workload", "", "built-in workload, as 'placer workloads' lists them")
	cmd.Flags().StringVar(&f.file, "graph", "", "graph file: ONNX, CostGraphDef, placer's JSON, dnn-partitioning, Piper, PipeDream or DOPPLER; - reads stdin")
	cmd.Flags().StringToInt64Var(&f.dims, "dim", nil, "values of an ONNX file's named dimensions, as batch=32; 1 where none is given")
	cmd.Flags().StringVar(&f.times, "times", "", "file of measured op times, as 'placer import --times-output' writes it; without --gpu or --machine it names the machine too")
	cmd.Flags().StringVar(&f.train, "train", "", "derive the training step of a graph file: sgd, momentum or adam")
}

func (f *graphFlags) check() error {
	switch {
	case f.workload == "" && f.file == "":
		return usagef("name a graph by --workload or --graph")
	case f.workload != "" && f.file != "":
		return usagef("--workload and --graph exclude each other")
	case f.times != "" && f.train != "":
		return usagef("--times is for the graph as it is, not for what --train derives from it")
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
	named     bool // by --machine or --gpu: do not take the machine of a graph file
}

func (f *machineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "machine", "", "machine file (JSON); - reads stdin")
	cmd.Flags().StringVar(&f.gpu, "gpu", "p100", "built-in machine, as 'placer machines' lists them")
	cmd.Flags().IntVar(&f.gpus, "gpus", 0, "number of GPUs to use, the first of the machine; all without it")
	cmd.Flags().BoolVar(&f.cpu, "cpu", false, "let ops run on the host's CPU too")
}

func (f *machineFlags) check(cmd *cobra.Command) error {
	f.named = f.file != "" || cmd.Flags().Changed("gpu")
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

// judging says how placements are judged.
type judging struct {
	scheduler  string
	objective  plan.Objective
	contention string // empty: as the graph's file says, or fifo
	tasks      plan.Tasks
	fusion     string // of simulate
}

// add adds the flags beside --scheduler, whose default differs.
func (j *judging) add(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(&j.objective), "objective", string(plan.Step), "what to judge by: step (time), throughput (largest load of a device in a pipeline) or memory (peak of the fullest device)")
	cmd.Flags().StringVar(&j.contention, "contention", "", "how transfers share links: fifo, fair-share or none (default fifo, or what the graph's file implies)")
}

func (j *judging) check() error {
	if _, err := plan.ParseObjective(string(j.objective)); err != nil {
		return usageError{err}
	}
	if j.contention != "" {
		if _, err := sim.ParseContention(j.contention); err != nil {
			return usageError{err}
		}
	}
	return nil
}
