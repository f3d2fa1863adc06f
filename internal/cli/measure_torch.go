package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"placer/internal/report"
	"placer/measure/torch"
)

// What measure runs a step with.
const (
	onKernels = "kernels" // of each op's shapes, on GPUs
	onTorch   = "torch"
)

// defaultPython is the program that runs steps of PyTorch.
const defaultPython = "python3"

// torchFlags are what measure has for --runtime torch alone.
type torchFlags struct {
	python   string
	clock    string
	realtime bool
}

// checkRuntime reports flags that do not go with the runtime.
func (f *measureFlags) checkRuntime(cmd *cobra.Command) error {
	var others []string
	switch f.runtime {
	case onKernels:
		others = []string{"python", "clock", "realtime"}
	case onTorch:
		others = []string{"mode", "logical", "partition", "cuda", "cublas"}
	default:
		return usagef("--runtime %s: want %s or %s", f.runtime, onKernels, onTorch)
	}
	for _, name := range others {
		if cmd.Flags().Changed(name) {
			return usagef("--%s does not go with --runtime %s", name, f.runtime)
		}
	}
	switch {
	case f.runtime == onKernels:
		return nil
	case f.Graph == "" || f.Graph == "-" || f.Train != "":
		return usagef("--runtime torch wants --graph FILE, a graph that placer_torch captured, and its program beside it")
	case f.torch.clock != "virtual" && f.torch.clock != "wall":
		return usagef("--clock %s: want virtual or wall", f.torch.clock)
	case f.repeats < 1:
		return usagef("--repeats %d: want at least 1", f.repeats)
	}
	return nil
}

// measureTorch runs the plan's step by the Python package placer_torch.
func (c *console) measureTorch(ctx context.Context, f *measureFlags) error {
	l, m, err := c.load(&f.inputFlags)
	if err != nil {
		return err
	}
	file, err := c.readPlan(f.plan)
	if err != nil {
		return err
	}
	p, err := file.Plan(l.Graph, m)
	if err != nil {
		return fmt.Errorf("%s: %w", f.plan, err)
	}
	if p.Fusion != nil {
		c.note("without the plan's fusion: CPU workers run op by op")
		p.Fusion = nil
	}
	step, err := simulateSchedule(l, m, p, "")
	if err != nil {
		return err
	}
	runtime, err := torch.Start(ctx, torch.Config{Python: f.torch.python, Graph: f.Graph, Realtime: f.torch.realtime})
	if err != nil {
		return err
	}
	defer runtime.Close()
	if err := runtime.Ready.Has(step.schedule); err != nil {
		return err
	}
	c.note("measuring with torch %s", runtime.Ready.Torch)
	a, err := runtime.Measure(step.schedule, torch.Request{Steps: f.repeats, Clock: f.torch.clock, Trace: true})
	if err != nil {
		return fmt.Errorf("%s: %w", f.plan, err)
	}
	if f.trace != "" {
		if err := writeTrace(f.trace, a.SimTrace(l.Graph, m), l.Graph, m); err != nil {
			return err
		}
	}
	return c.print(f.json, report.MeasureRuntime(l.Graph, m, p, step.result, "torch "+runtime.Ready.Torch, a))
}
