package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"placer/placer/verdict"
)

// verdictFlags are the flags of verdict.
type verdictFlags struct {
	graphFlags
	machines, gpus []string // files, built-in names
	most           int
	cpu            bool
	counts         []int
	batch          int64
	prices         []string
	budget         time.Duration
	evaluations    int
	seed           uint64
	workers        int
	out            string
	json           bool
}

func (c *console) verdictCommand() *cobra.Command {
	var f verdictFlags
	cmd := &cobra.Command{
		Use:   "verdict",
		Short: "Say how many devices pay, and of which machine",
		Long: "verdict finds the best plan for every number of devices of one or more machines,\n" +
			"fewest devices first, within one budget. It names the fastest number and the fewest\n" +
			"devices whose step is within 5% of the fastest, says which differences are within the\n" +
			"model's error (a tie), and what does not fit, with the bytes that are missing.",
		Example: "  placer verdict --workload llama --gpu a100,h100 --counts 1,2,4,8\n" +
			"  placer verdict --graph model.onnx --train adam --batch 32 --machine box.json --price 2.10",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.verdict(cmd.Context(), &f)
		},
	}
	fl := cmd.Flags()
	f.graphFlags.add(fl)
	fl.StringSliceVar(&f.machines, "machine", nil, "machine `FILE`s, as 'placer machines init' writes them")
	fl.StringSliceVar(&f.gpus, "gpu", nil, "built-in machines, as 'placer machines' lists them (default "+defaultGPU+")")
	fl.IntVar(&f.most, "gpus", 0, "at most the first `N` GPUs of each machine (default all)")
	fl.BoolVar(&f.cpu, "cpu", false, "let ops run on the host's CPU too, which counts as the last device")
	fl.IntSliceVar(&f.counts, "counts", nil, "numbers of devices to answer for, ascending; every one from 1 to 64 without it")
	fl.Int64Var(&f.batch, "batch", 0, "samples a step of a graph file; workloads know theirs, and --dim batch=N says it too")
	fl.StringSliceVar(&f.prices, "price", nil, "price of a device for an hour: 2.10, or a100=1.80,h100=2.90 by machine or by device model")
	fl.DurationVar(&f.budget, "budget", 30*time.Second, "`TIME` for all counts together, loading included")
	fl.IntVar(&f.evaluations, "evaluations", 0, "evaluations for each count instead of --budget, for the same answer on every host")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	fl.IntVar(&f.workers, "workers", 2, "methods that run at once")
	fl.StringVar(&f.out, "out", "", "folder for the plan and the machine of every count, and the verdict as JSON")
	fl.BoolVar(&f.json, "json", false, "print one JSON document")
	exclusive(cmd, "budget", "evaluations")
	return cmd
}

func (f *verdictFlags) check(cmd *cobra.Command) error {
	if err := f.graphFlags.check(); err != nil {
		return err
	}
	if err := oneStdin(append(slices.Clone(f.machines), f.Graph)...); err != nil {
		return err
	}
	switch {
	case f.most < 0 || cmd.Flags().Changed("gpus") && f.most == 0:
		return usagef("--gpus %d: want at least 1", f.most)
	case f.batch < 0 || cmd.Flags().Changed("batch") && f.batch == 0:
		return usagef("--batch %d: want at least 1", f.batch)
	case f.Workload != "" && f.batch != 0:
		return usagef("--batch is for graph files; workloads take settings as in llama:batch=4")
	case cmd.Flags().Changed("evaluations") && f.evaluations < 1:
		return usagef("--evaluations %d: want at least 1", f.evaluations)
	case f.budget <= 0:
		return usagef("--budget %v: want more than 0", f.budget)
	case f.workers < 1:
		return usagef("--workers %d: want at least 1", f.workers)
	}
	for k, n := range f.counts {
		if n < 1 || k > 0 && n <= f.counts[k-1] {
			return usagef("--counts %s: want ascending numbers from 1", strings.Trim(strings.ReplaceAll(fmt.Sprint(f.counts), " ", ","), "[]"))
		}
	}
	return nil
}

// samples returns how many samples a step has, 0 where nothing says.
func (f *verdictFlags) samples(l loaded) (float64, error) {
	if f.batch > 0 {
		return float64(f.batch), nil
	}
	n, err := f.graphFlags.samples(l)
	return float64(n), err
}

// resize gives --batch to the number of samples that the file l leaves open, and reports
// whether it did: --dim has not set it.
func (f *verdictFlags) resize(l loaded) bool {
	name := batchDim(l.file)
	if _, given := f.Dims[name]; name == "" || given || f.batch == 0 || f.Graph == "-" {
		return false
	}
	f.Dims = maps.Clone(f.Dims)
	if f.Dims == nil {
		f.Dims = map[string]int64{}
	}
	f.Dims[name] = f.batch
	return true
}

// price returns the prices by name, "" for every device.
func (f *verdictFlags) price() (map[string]float64, error) {
	by := map[string]float64{}
	for _, p := range f.prices {
		name, value, named := strings.Cut(p, "=")
		if !named {
			name, value = "", p
		}
		x, err := strconv.ParseFloat(value, 64)
		if _, twice := by[name]; err != nil || !(x >= 0) || twice {
			return nil, usagef("--price %s: want a price of an hour, 2.10, or of a machine or model, a100=1.80, each once", p)
		}
		by[name] = x
	}
	return by, nil
}

// judged returns the machines to judge.
func (c *console) judged(f *verdictFlags, l loaded) ([]verdict.Machine, error) {
	var all []machineFlags
	for _, path := range f.machines {
		all = append(all, machineFlags{Machine: path, GPUs: f.most, CPU: f.cpu})
	}
	for _, name := range f.gpus {
		all = append(all, machineFlags{GPU: name, GPUs: f.most, CPU: f.cpu})
	}
	if len(all) == 0 {
		all = []machineFlags{{GPUs: f.most, CPU: f.cpu}}
		if l.Times == nil {
			c.assumed("no machine is named: %s is taken", defaultGPU)
		}
	}
	prices, err := f.price()
	if err != nil {
		return nil, err
	}
	var ms []verdict.Machine
	for _, x := range all {
		m, err := c.machineFor(&x, l)
		if err != nil {
			return nil, err
		}
		if m, err = verdict.InOrder(l.Source, m); err != nil {
			return nil, err
		}
		price, err := verdict.Prices(m, prices)
		if err != nil {
			return nil, usage(err)
		}
		if slices.ContainsFunc(ms, func(y verdict.Machine) bool { return y.Name == m.Name }) {
			return nil, usagef("machine %s is named twice; of two files with this name, change \"name\" in one", m.Name)
		}
		ms = append(ms, verdict.Machine{Machine: m, Price: price, Error: verdict.ErrorOf(l.Source, m)})
	}
	return ms, nil
}
