package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"placer/internal/report"
	"placer/measure/python"
)

// onKernels is the runtime that runs kernels of each op's shapes, on GPUs.
const onKernels = "kernels"

// defaultPython is the program that runs steps of a framework of Python.
const defaultPython = "python3"

// pythonFlags are what measure has for frameworks of Python alone.
type pythonFlags struct {
	python   string
	clock    string
	realtime bool
}

// runtimeNames lists what measure runs steps with.
func runtimeNames() string {
	names := []string{onKernels}
	for _, r := range python.Runtimes() {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}

// checkRuntime reports flags that do not go with the runtime.
func (f *measureFlags) checkRuntime(cmd *cobra.Command) error {
	r, onPython := python.Find(f.runtime)
	others := []string{"mode", "logical", "partition", "libcuda", "cublas"}
	if !onPython {
		if f.runtime != onKernels {
			return usagef("--runtime %s: want one of %s", f.runtime, runtimeNames())
		}
		others = []string{"python", "clock", "realtime", "times"}
	}
	if err := useless(cmd, "--runtime "+f.runtime, others...); err != nil {
		return err
	}
	if !onPython {
		return f.checkNamed("--runtime " + f.runtime)
	}
	switch {
	case f.Graph == "" || f.Graph == "-" || f.Train != "":
		return usagef("--runtime %s wants --graph FILE, a graph that %s captured, and its %s beside it", r.Name, r.Package, r.Program)
	case f.python.clock != "" && !slices.Contains(r.Clocks, f.python.clock):
		return usagef("--clock %s: --runtime %s has %s", f.python.clock, r.Name, strings.Join(r.Clocks, " or "))
	case f.repeats < 1:
		return usagef("--repeats %d: want at least 1", f.repeats)
	}
	return nil
}

// measurePython runs the plan's step by the Python package of r.
func (c *console) measurePython(ctx context.Context, r python.Runtime, f *measureFlags) error {
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
		return fmt.Errorf("%s: %w", inputName(f.plan), err)
	}
	if p.Fusion != nil {
		c.note("without the plan's fusion: %s's steps are measured op by op", r.Title)
		p.Fusion = nil
	}
	step, err := simulateSchedule(l, m, p, "")
	if err != nil {
		return err
	}
	runtime, err := python.Start(ctx, python.Config{Runtime: r, Python: f.python.python, Graph: f.Graph, Realtime: f.python.realtime})
	if err != nil {
		return err
	}
	defer runtime.Close()
	if err := runtime.Ready.Has(step.schedule); err != nil {
		return err
	}
	with := r.Name + " " + runtime.Ready.Version
	c.note("measuring with %s", with)
	a, err := runtime.Measure(step.schedule, python.Request{Steps: f.repeats, Clock: cmp.Or(f.python.clock, r.Clock(m)), Trace: true})
	if err != nil {
		return fmt.Errorf("%s: %w", inputName(f.plan), err)
	}
	if f.trace != "" {
		if err := writeTrace(f.trace, a.SimTrace(l.Graph, m), l.Graph, m); err != nil {
			return err
		}
	}
	return c.print(f.json, report.MeasureRuntime(l.Graph, m, p, step.result, with, a))
}
