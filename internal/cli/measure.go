package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"placer/hw"
	"placer/hw/gpu"
	"placer/internal/report"
	"placer/measure"
	"placer/measure/python"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
)

type measureFlags struct {
	inputFlags
	libraries libraryFlags
	plan      string
	mode      string
	repeats   int
	logical   bool
	partition bool
	trace     string
	json      bool
	runtime   string
	python    pythonFlags
}

func (c *console) measureCommand() *cobra.Command {
	var f measureFlags
	cmd := &cobra.Command{
		Use:   "measure",
		Short: "Run a plan's step on this host's devices and compare with the prediction",
		Long: "measure runs the step of a plan and prints the measured time beside the simulated one,\n" +
			"by device and by class of ops. By default it runs kernels of each op's shapes on this\n" +
			"host's GPUs, in the plan's order and with its transfers; without a GPU it exits with\n" +
			"code 4. With --logical all devices of the machine are on one GPU, and links are slowed\n" +
			"to those of the machine.\n\n" +
			"With --runtime torch or tensorflow it runs the real step that the Python package\n" +
			"placer_torch or placer_tensorflow captured: on CPU cores, one for each device, or with\n" +
			"torch on GPUs (docs/pytorch.md, docs/tensorflow.md). Without the framework it exits\n" +
			"with code 4.",
		Example: "  placer measure --runtime torch --graph gpt/graph.json --machine gpt/machine.json \\\n" +
			"     --times gpt/times.json --plan plan.json\n" +
			"  placer measure --workload rnnlm2 --machine here.json --plan plan.json --mode both \\\n" +
			"     --trace step.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd, f.plan); err != nil {
				return err
			}
			if f.plan == "" {
				return usagef("name a plan by --plan")
			}
			if f.CUDAGraph {
				return usagef("--cuda-graph: --mode graph measures a captured step, and predicts it as one")
			}
			if err := errors.Join(f.checkRuntime(cmd), fileOnly("--trace", f.trace)); err != nil {
				return err
			}
			if r, ok := python.Find(f.runtime); ok {
				return c.measurePython(cmd.Context(), r, &f)
			}
			return c.measure(cmd.Context(), &f)
		},
	}
	f.add(cmd.Flags())
	f.libraries.add(cmd.Flags())
	cmd.Flags().StringVar(&f.plan, "plan", "", "plan `FILE`; - reads stdin")
	cmd.Flags().StringVar(&f.mode, "mode", "eager", "how a step is issued: eager (call by call), graph (captured once) or both")
	cmd.Flags().IntVar(&f.repeats, "repeats", measure.Default().Repeats, "timed steps, of which the median counts; torch and tensorflow: of each of two rounds, of which the least counts")
	cmd.Flags().BoolVar(&f.logical, "logical", false, "put all devices of the machine on the first GPU of this host")
	cmd.Flags().BoolVar(&f.partition, "partition", false, "devices on one GPU get multiprocessors of their own (green contexts)")
	cmd.Flags().StringVar(&f.trace, "trace", "", "write the traced step to this file: Chrome's JSON if its name ends in .json, else Perfetto's protobuf")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	cmd.Flags().StringVar(&f.runtime, "runtime", onKernels, "what runs the step: kernels (of each op's shapes, on GPUs), torch or tensorflow (the captured step)")
	cmd.Flags().StringVar(&f.python.python, "python", defaultPython, "program with the framework and its package, for --runtime torch or tensorflow")
	cmd.Flags().StringVar(&f.python.clock, "clock", "", "clock that decides: virtual (processor time; torch on CPU cores alone, and its default there) or wall")
	cmd.Flags().BoolVar(&f.python.realtime, "realtime", false, "keep other processes off the cores while a step runs, for --runtime torch or tensorflow")
	return cmd
}

func (c *console) measure(ctx context.Context, f *measureFlags) error {
	modes, ok := map[string][]measure.Mode{"eager": {measure.Eager}, "graph": {measure.Captured}, "both": {measure.Eager, measure.Captured}}[f.mode]
	if !ok {
		return usagef("--mode %q: want eager, graph or both", f.mode)
	}
	d, b, err := c.hardware.open(f.libraries.CUDA, f.libraries.CUBLAS)
	if err != nil {
		return err
	}
	m, err := c.loadMachine(&f.machineFlags)
	if err != nil {
		return err
	}
	l, err := c.loadGraph(&f.graphFlags)
	if err != nil {
		return err
	}
	if l.Times != nil || l.Seconds != nil {
		return usagef("--runtime %s: graph %s brings op times of its own and not the shapes that could be measured", onKernels, l.Name())
	}
	c.tell(l)
	file, err := c.readPlan(f.plan)
	if err != nil {
		return err
	}
	p, err := file.Plan(l.Graph, m)
	if err != nil {
		return fmt.Errorf("%s: %w", inputName(f.plan), err)
	}
	simulated, err := judgeModes(l, m, p, modes)
	if err != nil {
		return err // infeasible, or not a plan
	}
	count, err := d.Count()
	if err != nil {
		return err
	}
	problem := &measure.Problem{Graph: l.Graph, Machine: m, Plan: p}
	if problem.GPU, err = measure.Spread(m, count, f.logical); err != nil {
		return usage(err)
	}
	runs, err := c.measureModes(ctx, f, problem, simulated, modes, d, b)
	if err != nil {
		return err
	}
	if f.trace != "" {
		if err := writeTrace(f.trace, runs[0].Trace, l.Graph, m); err != nil {
			return err
		}
	}
	on, err := standingFor(d, problem.GPU)
	if err != nil {
		return err
	}
	return c.print(f.json, report.Measure(l.Graph, m, p, simulated[modes[0]].result, on, runs))
}

// judgeModes simulates the step of p on m as each of modes issues it.
func judgeModes(l loaded, m *hw.Machine, p *plan.Plan, modes []measure.Mode) (map[measure.Mode]*judgedStep, error) {
	simulated := map[measure.Mode]*judgedStep{}
	for _, mode := range modes {
		on := m
		if mode == measure.Captured {
			on = m.Captured()
		}
		x, err := judgeStep(l, on, p)
		if err != nil {
			return nil, err
		}
		simulated[mode] = x
	}
	return simulated, nil
}

// measureModes measures the step of p in each of modes, the first with a trace.
func (c *console) measureModes(ctx context.Context, f *measureFlags, p *measure.Problem, simulated map[measure.Mode]*judgedStep, modes []measure.Mode, d gpu.Driver, b gpu.BLAS) (runs []*measure.Result, err error) {
	cfg := measure.Default()
	cfg.Repeats, cfg.Partition, cfg.Clock = f.repeats, f.partition, c.clock
	if monitor, err := c.hardware.watch(); err == nil {
		defer monitor.Close()
		cfg.State = monitor.Read
	}
	for k, mode := range modes {
		cfg.Mode, cfg.Trace = mode, k == 0 // the trace is of an eager step in any mode
		c.note("measuring, %v", mode)
		p.Predicted = simulated[mode].result
		r, err := measure.Run(ctx, cfg, p, simulated[mode].costs, d, b)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// standingFor says in words which GPU each device stands for.
func standingFor(d gpu.Driver, ordinals []int) ([]string, error) {
	on := make([]string, len(ordinals))
	for i, ordinal := range ordinals {
		on[i] = "host"
		if ordinal != measure.Host {
			name, err := d.Name(ordinal)
			if err != nil {
				return nil, err
			}
			on[i] = fmt.Sprintf("GPU %d, %s", ordinal, name)
		}
	}
	return on, nil
}

// judgedStep is a simulated step and the op times behind it.
type judgedStep struct {
	costs  sim.CostModel
	result *sim.Result
}

// judgeStep simulates the step of p on m as it is run.
func judgeStep(l loaded, m *hw.Machine, p *plan.Plan) (*judgedStep, error) {
	costs, err := roofline.New(l.Graph, m, roofline.Measured())
	if err != nil {
		return nil, err
	}
	s, err := sim.New(l.Graph, m, costs, sim.Default())
	if err != nil {
		return nil, err
	}
	r, err := s.Run(p, sim.Options{Trace: true})
	return &judgedStep{costs, r}, err
}

// readPlan reads the plan file at path, or stdin for "-".
func (c *console) readPlan(path string) (*plan.File, error) {
	if path == "-" {
		return plan.Read(c.in, stdin)
	}
	f, err := plan.ReadFile(path)
	return f, noPlan(path, err)
}
