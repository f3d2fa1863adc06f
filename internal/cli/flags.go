package cli

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"placer/plan"
	"placer/workloads"
)

// graphFlags name a graph.
type graphFlags struct {
	Workload string `json:"workload,omitempty"`
	Graph    string `json:"graph,omitempty"` // path
	Train    string `json:"train,omitempty"`
	// MasterWeights keeps f32 copies of trained weights of 16 bits.
	MasterWeights bool             `json:"master_weights,omitempty"`
	Dims          map[string]int64 `json:"dims,omitempty"`
	Times         string           `json:"times,omitempty"` // path
	// several says that the graph is one of several batches: its training step has the ops
	// that any batch has, where one sample alone would broadcast less.
	several bool
}

func (f *graphFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.Workload, "workload", "", "built-in graph by `NAME`, as 'placer workloads' lists them")
	fl.StringVar(&f.Graph, "graph", "", "graph `FILE`: ONNX, GraphDef, HLO, GGUF, ... (docs/doors.md); - reads stdin")
	addDims(fl, &f.Dims)
	fl.StringVar(&f.Times, "times", "", "`FILE` of measured op times, from 'import --times-output' or a profile")
	fl.StringVar(&f.Train, "train", "", "derive a graph file's training step: `OPTIMIZER` sgd, momentum or adam")
	fl.BoolVar(&f.MasterWeights, "master-weights", false, "with --train: optimizer state in f32, and an f32 copy of each 16-bit weight")
}

// addWorkers adds the flag that says how much runs at once, as many as there are CPUs where
// it is not given.
func addWorkers(fl *pflag.FlagSet, to *int, usage string) {
	fl.IntVar(to, "workers", runtime.GOMAXPROCS(0), usage)
	fl.Lookup("workers").DefValue = "one per CPU" // help is the same on every machine
}

// mostAtOnce bounds how many steps are simulated at once where nobody says: each may be of a
// million ops, of half a gigabyte.
const mostAtOnce = 8

// addFewWorkers is addWorkers where what runs at once are simulations.
func addFewWorkers(fl *pflag.FlagSet, to *int, usage string) {
	fl.IntVar(to, "workers", min(runtime.GOMAXPROCS(0), mostAtOnce), usage)
	fl.Lookup("workers").DefValue = fmt.Sprintf("one per CPU, at most %d", mostAtOnce)
}

func (f *graphFlags) check() error {
	switch {
	case f.Workload == "" && f.Graph == "":
		return usagef("name a graph by --workload or --graph; 'placer workloads' lists those that are built in")
	case f.Workload != "" && f.Graph != "":
		return usagef("--workload and --graph exclude each other")
	case f.Times != "" && f.Train != "":
		return usagef("--times is for the graph as it is, not for what --train derives from it")
	case f.Workload != "" && f.Train != "":
		return usagef("--train is for graph files: workloads are training steps already")
	case f.Workload != "" && f.MasterWeights:
		return usagef("--master-weights is for graph files; workloads take a setting as in llama:%s", masterSetting)
	case f.MasterWeights && f.Train == "":
		return usagef("--master-weights is for the training step that --train derives")
	case f.Workload != "" && len(f.Dims) > 0:
		return usagef("--dim is for graph files; workloads take settings as in rnnlm:layers=2,unroll=3")
	}
	for name, n := range f.Dims {
		if n < 0 {
			return usagef("--dim %s=%d: want at least 0", name, n)
		}
		if n == 0 && slices.Contains(batchDims, name) {
			return usagef("--dim %s=0: want at least 1", name)
		}
	}
	return nil
}

// samples returns how many samples a step of the graph that f names and l holds has, 0 where
// nothing says.
func (f *graphFlags) samples(l loaded) (int64, error) {
	if f.Workload != "" {
		return workloads.Batch(f.Workload)
	}
	for _, name := range batchDims {
		if n := f.Dims[name]; n > 0 {
			return n, nil
		}
	}
	return l.file.Sizes[batchDim(l.file)], nil
}

// line returns f as it stands on a command line.
func (f *graphFlags) line() string {
	var words []string
	add := func(name, value string) {
		if value != "" {
			words = append(words, "--"+name+" "+value)
		}
	}
	add("workload", f.Workload)
	add("graph", f.Graph)
	for _, n := range slices.Sorted(maps.Keys(f.Dims)) {
		add("dim", fmt.Sprintf("%s=%d", n, f.Dims[n]))
	}
	add("train", f.Train)
	if f.MasterWeights {
		words = append(words, "--master-weights")
	}
	add("times", f.Times)
	return strings.Join(words, " ")
}

// masterSetting is the setting of a workload that --master-weights is of a graph file.
const masterSetting = "master_weights=true"

// masterWeights returns what asks for master weights where the graph of f is built or
// derived, "" where it comes as it is.
func (f *graphFlags) masterWeights() string {
	switch {
	case f.Workload != "":
		return masterSetting
	case f.Train != "":
		return "--master-weights"
	}
	return ""
}

// defaultGPU is the machine that is taken where none is named.
const defaultGPU = "p100"

// machineFlags name a machine.
type machineFlags struct {
	Machine string `json:"machine,omitempty"` // path
	GPU     string `json:"gpu,omitempty"`
	GPUs    int    `json:"gpus,omitempty"`
	CPU     bool   `json:"cpu,omitempty"`
	// CUDAGraph says that a step is one captured graph that is replayed.
	CUDAGraph bool `json:"cuda_graph,omitempty"`
}

func (f *machineFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.Machine, "machine", "", "machine `FILE`, as 'placer machines init' writes it; - reads stdin")
	fl.StringVar(&f.GPU, "gpu", "", "built-in machine by `NAME`, as 'placer machines' lists them (default "+defaultGPU+")")
	fl.IntVar(&f.GPUs, "gpus", 0, "use the first `N` GPUs of the machine (default all)")
	fl.BoolVar(&f.CPU, "cpu", false, "let ops run on the host's CPU too")
	fl.BoolVar(&f.CUDAGraph, "cuda-graph", false, "the step is replayed as a CUDA graph: a kernel costs graph_launch, not launch")
}

// addMeasured adds the flags that name a machine of which one GPU is measured.
func (f *machineFlags) addMeasured(fl *pflag.FlagSet) {
	fl.StringVar(&f.Machine, "machine", "", "machine `FILE`, as 'placer bench hw' writes it; - reads stdin")
	fl.StringVar(&f.GPU, "gpu", "", "built-in machine by `NAME`, as 'placer machines' lists them")
}

// named reports whether a machine is named: that of a graph's file is not taken.
func (f *machineFlags) named() bool { return f.Machine != "" || f.GPU != "" }

// checkNamed reports that nobody says which machine this host's GPUs, which what measures
// on, stand for: predictions for a default one would be of other hardware.
func (f *machineFlags) checkNamed(what string) error {
	if !f.named() {
		return usagef("%s: name the machine that this host's GPUs stand for by --machine or --gpu", what)
	}
	return nil
}

func (f *machineFlags) check(cmd *cobra.Command) error {
	switch {
	case f.Machine != "" && f.GPU != "":
		return usagef("--machine and --gpu exclude each other")
	case f.GPUs < 0 || cmd.Flags().Changed("gpus") && f.GPUs == 0:
		return usagef("--gpus %d: want at least 1", f.GPUs)
	}
	return nil
}

// inputFlags name a graph and a machine.
type inputFlags struct {
	graphFlags
	machineFlags
}

func (f *inputFlags) add(fl *pflag.FlagSet) {
	f.graphFlags.add(fl)
	f.machineFlags.add(fl)
}

// check reports the first fault. At most one input, of others too, is stdin.
func (f *inputFlags) check(cmd *cobra.Command, others ...string) error {
	if err := f.graphFlags.check(); err != nil {
		return err
	}
	if err := f.machineFlags.check(cmd); err != nil {
		return err
	}
	return oneStdin(append(slices.Clone(others), f.Graph, f.Machine)...)
}

// oneStdin reports that more than one of the inputs at paths is stdin.
func oneStdin(paths ...string) error {
	stdins := 0
	for _, path := range paths {
		if path == "-" {
			stdins++
		}
	}
	if stdins > 1 {
		return usagef("only one input can come from stdin")
	}
	return nil
}

// addJudging adds the flags that say how placements are judged, beside --scheduler,
// whose default differs.
func addJudging(fl *pflag.FlagSet, objective *plan.Objective, contention *string) {
	fl.StringVar((*string)(objective), "objective", string(plan.Step), "step, throughput (largest load) or memory (fullest)")
	addContention(fl, contention)
}

// addContention adds the flag that says how transfers share links.
func addContention(fl *pflag.FlagSet, contention *string) {
	fl.StringVar(contention, "contention", "", "how transfers share links: fifo, fair-share, none (default the file's)")
}

// libraryFlags name the libraries of a GPU where they are not found by
// themselves.
type libraryFlags struct {
	CUDA   string `json:"libcuda,omitempty"`
	CUBLAS string `json:"cublas,omitempty"`
}

func (f *libraryFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.CUDA, "libcuda", "", "driver library, where it is not found by itself")
	fl.StringVar(&f.CUBLAS, "cublas", "", "cuBLAS library, where it is not found by itself")
}

// beside marks flags that may stand beside --resume; what a run depends on is its
// own, and no other flag may.
func beside(fl *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := fl.SetAnnotation(name, besideResume, []string{"true"}); err != nil {
			panic(err)
		}
	}
}

const besideResume = "placer_beside_resume"

// notBesideResume reports the flags of the command line that a run itself answers.
func notBesideResume(cmd *cobra.Command, from string) error {
	var wrong []string
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Annotations[besideResume] == nil {
			wrong = append(wrong, "--"+f.Name)
		}
	})
	if len(wrong) > 0 {
		return usagef("--resume takes %s from %s", strings.Join(wrong, ", "), from)
	}
	return nil
}

// useless reports the first of the flags named that was given, though it does nothing beside
// what.
func useless(cmd *cobra.Command, what string, names ...string) error {
	for _, n := range names {
		if cmd.Flags().Changed(n) {
			return usagef("--%s does not go with %s", n, what)
		}
	}
	return nil
}

// uselessBut reports the first flag that was given beside the one called what and is none
// of those named.
func uselessBut(cmd *cobra.Command, what string, names ...string) error {
	var err error
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Name != what && !slices.Contains(names, f.Name) {
			err = useless(cmd, "--"+what, f.Name)
		}
	})
	return err
}

// alias makes other another name of the flag called name.
func alias(fl *pflag.FlagSet, other, name string) {
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, given string) pflag.NormalizedName {
		if given == other {
			given = name
		}
		return pflag.NormalizedName(given)
	})
}

// exclusive makes it a usage error to name more than one of the flags.
func exclusive(cmd *cobra.Command, names ...string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var named []string
		for _, n := range names {
			if cmd.Flags().Changed(n) {
				named = append(named, "--"+n)
			}
		}
		if len(named) > 1 {
			return usagef("%s exclude each other", strings.Join(named, " and "))
		}
		return run(cmd, args)
	}
}
