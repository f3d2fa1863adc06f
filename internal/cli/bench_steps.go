package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"placer/baselines/fusion"
	"placer/baselines/human"
	"placer/baselines/random"
	"placer/gpu"
	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/hw"
	"placer/hw/bench"
	"placer/hw/nvml"
	"placer/internal/fsx"
	"placer/measure"
	"placer/measured"
	"placer/placer"
	"placer/plan"
	"placer/report"
	"placer/roofline"
	"placer/sim"
	"placer/units"
	"placer/workloads"
)

// stepsFlags say which steps are compared with their predictions.
type stepsFlags struct {
	machine   machineFlags
	libraries libraryFlags
	workloads []string
	rank      []string
	devices   []int
	plans     int
	link      string
	latency   string
	partition bool
	repeats   int
	budget    time.Duration
	out       string
	json      bool
}

func (c *console) benchStepsCommand() *cobra.Command {
	var f stepsFlags
	cmd := &cobra.Command{
		Use:   "steps",
		Short: "Compare measured with predicted steps, on one GPU that stands for several",
		Long: "steps places workloads on 1, 2, 4 devices that all stand on the machine's first GPU, by\n" +
			"the human rule with and without fusion and at random, runs the steps, and prints mean\n" +
			"error and Kendall's tau of the predictions. It measures until it is done or the budget\n" +
			"ends. Without a GPU it exits with code 4.",
		Example: "  placer bench steps --machine here.json --partition -o steps.json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.machine.check(cmd); err != nil {
				return err
			}
			return c.benchSteps(cmd.Context(), &f)
		},
	}
	f.machine.add(cmd)
	f.libraries.add(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.workloads, "workloads", []string{"rnnlm2,trfxl2,wavenet2,gnmt2,inception"}, "workloads placed by rule, separated by commas")
	fl.StringArrayVar(&f.rank, "rank", []string{"rnnlm2"}, "workloads, separated by commas, of which random plans are ranked, on every number of devices above 1")
	fl.IntSliceVar(&f.devices, "devices", []int{1, 2, 4}, "numbers of devices")
	fl.IntVar(&f.plans, "plans", 30, "random plans of each kind")
	fl.StringVar(&f.link, "link", "25 GB/s", "bandwidth between two devices")
	fl.StringVar(&f.latency, "latency", "20 us", "latency between two devices")
	fl.BoolVar(&f.partition, "partition", false, "devices get multiprocessors of their own (green contexts)")
	fl.IntVar(&f.repeats, "repeats", 5, "timed steps, of which the median counts")
	fl.DurationVar(&f.budget, "budget", 10*time.Minute, "time after which no further plan is measured")
	fl.StringVarP(&f.out, "out", "o", "", "write all that was measured there (JSON), also after each workload")
	fl.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// study is a comparison under way.
type study struct {
	c         *console
	f         *stepsFlags
	gpus      *localGPUs
	device    *hw.Device
	bandwidth units.BytesPerSecond
	latency   units.Seconds
	sms       map[int]int // of each of so many parts
	shares    map[int]*bench.Share
	graphs    map[string]*graph.Graph
	state     func(uuid string) (nvml.State, error)
	until     float64 // by the host's clock
	doc       *report.Steps
}

func (c *console) benchSteps(ctx context.Context, f *stepsFlags) error {
	bandwidth, err1 := units.ParseBytesPerSecond(f.link)
	latency, err2 := units.ParseSeconds(f.latency)
	if err := errors.Join(err1, err2); err != nil {
		return usageError{err}
	}
	for _, k := range f.devices {
		if k < 1 || k > hw.MaxDevices {
			return usagef("--devices %d: want 1 to %d", k, hw.MaxDevices)
		}
	}
	if f.plans < 0 || f.repeats < 1 || f.budget <= 0 {
		return usagef("--plans %d --repeats %d --budget %v: want at least 0, at least 1, more than 0", f.plans, f.repeats, f.budget)
	}
	gpus, err := c.openGPUs(f.libraries)
	if err != nil {
		return err
	}
	defer gpus.warm.Close()
	m, err := c.loadMachine(&f.machine)
	if err != nil {
		return err
	}
	if m.Devices[0].Kind != hw.GPU {
		return usagef("the first device of machine %s is no GPU", m.Name)
	}
	host, err := measured.Host(gpus.driver, gpus.blas, []int{0}, gpus.version)
	if err != nil {
		return err
	}
	s := &study{c: c, f: f, gpus: gpus, device: &m.Devices[0], bandwidth: bandwidth, latency: latency, sms: map[int]int{}, shares: map[int]*bench.Share{}, graphs: map[string]*graph.Graph{}, until: c.clock() + f.budget.Seconds(),
		doc: &report.Steps{Format: report.StepsFormat, Machine: m.Name, Calibrated: report.SummariseMachine(m).Devices[0].Calibrated, Host: host,
			Link: fmt.Sprintf("%v and %v", bandwidth, latency), Partition: f.partition, Repeats: f.repeats, Trials: []report.Trial{}}}
	if monitor, err := c.hardware.watch(); err == nil {
		defer monitor.Close()
		s.state = monitor.Read
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	return c.print(f.json, s.doc)
}

// humanPlan names the plan by the human rule.
const humanPlan = "human"

// errOver says that the budget has ended.
var errOver = errors.New("the budget has ended")

func (s *study) run(ctx context.Context) error {
	for _, k := range s.f.devices {
		if k == 1 {
			continue
		}
		shared := false
		if s.device.Calibration != nil {
			err := s.share(ctx, k)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if shared = err == nil; !shared {
				s.doc.Notes = append(s.doc.Notes, fmt.Sprintf("One of %d devices is predicted from the whole: %v", k, err))
			}
		}
		if !shared && s.f.partition {
			n, err := measure.PartSMs(s.gpus.driver, 0, k)
			if err != nil {
				return err
			}
			s.sms[k] = n
		}
	}
	err := s.all(ctx)
	if errors.Is(err, errOver) {
		s.doc.Notes = append(s.doc.Notes, fmt.Sprintf("The budget of %v ended before all plans were measured.", s.f.budget))
		err = nil
	}
	if w := s.write(); err == nil {
		err = w
	}
	return err
}

// share measures what one of k devices finds, where the machine's constants are
// measured ones too.
func (s *study) share(ctx context.Context, k int) error {
	cfg := bench.Default()
	cfg.Repeats, cfg.State = 5, s.state
	cfg.Types = nil
	for _, name := range append(splitWorkloads(s.f.workloads), splitWorkloads(s.f.rank)...) {
		g, err := s.graph(name)
		if err != nil {
			return err
		}
		for _, t := range productTypes(g) {
			if !slices.Contains(cfg.Types, t) {
				cfg.Types = append(cfg.Types, t)
			}
		}
	}
	s.c.note("measuring one of %d devices", k)
	x, err := bench.RunShare(ctx, cfg, s.gpus.driver, s.gpus.blas, 0, k, s.f.partition)
	if err != nil {
		return err
	}
	s.shares[k] = x
	s.doc.Shares = append(s.doc.Shares, x)
	if s.f.partition {
		s.sms[k] = x.SMs
		for _, t := range cfg.Types {
			most := float64(s.device.Peak[t.String()]) * float64(x.SMs) / float64(s.device.SMs)
			if best := x.Best(t.String()); most > 0 && best > 1.05*most {
				s.doc.Notes = append(s.doc.Notes, fmt.Sprintf("Products of %v reach %v on one of %d devices, whose %d multiprocessors can do %v: the GPU is not divided.",
					t, units.FLOPsPerSecond(best), k, x.SMs, units.FLOPsPerSecond(most)))
			}
		}
	}
	return nil
}

// productTypes returns the element types of g's products as cuBLAS runs them.
func productTypes(g *graph.Graph) (types []gpu.DType) {
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		if o.GEMM.IsZero() {
			continue
		}
		if t, ok := measure.TypeOf(o.DType, roofline.Measured().TF32); ok && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// graph builds a workload once.
func (s *study) graph(name string) (g *graph.Graph, err error) {
	if g = s.graphs[name]; g == nil {
		if g, err = workloads.Build(name); err != nil {
			return nil, usageError{err}
		}
		s.graphs[name] = g
	}
	return g, nil
}

// all measures what the aims are about first, should the budget end early: plans by
// rule as graphs, random plans of the first workload; then plans by rule call by
// call, and the other random plans.
func (s *study) all(ctx context.Context) error {
	if err := s.allByRule(ctx, measure.Captured); err != nil {
		return err
	}
	rank := splitWorkloads(s.f.rank)
	first := min(1, len(rank))
	if err := s.allAtRandom(ctx, rank[:first]); err != nil {
		return err
	}
	if err := s.allByRule(ctx, measure.Eager); err != nil {
		return err
	}
	return s.allAtRandom(ctx, rank[first:])
}

func (s *study) allByRule(ctx context.Context, mode measure.Mode) error {
	for _, name := range splitWorkloads(s.f.workloads) {
		for _, k := range s.f.devices {
			if err := s.byRule(ctx, name, k, mode); err != nil {
				return err
			}
			if err := s.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *study) allAtRandom(ctx context.Context, rank []string) error {
	for _, name := range rank {
		for _, k := range s.f.devices {
			if k == 1 || s.f.plans == 0 {
				continue
			}
			if err := s.atRandom(ctx, name, k); err != nil {
				return err
			}
			if err := s.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepBench is a workload on so many devices.
type stepBench struct {
	task    *placer.Task
	issued  [2]issued // by mode
	loaded  loaded
	devices int
	name    string
}

// issued is what a way of issuing makes of the machine: a kernel costs a launch or
// a graph's node.
type issued struct {
	machine   *hw.Machine
	simulator *sim.Simulator
}

func (s *study) bench(name string, k int) (*stepBench, error) {
	g, err := s.graph(name)
	if err != nil {
		return nil, err
	}
	m, err := measure.Logical(s.device, k, s.sms[k], s.bandwidth, s.latency)
	if err != nil {
		return nil, err
	}
	if x := s.shares[k]; x != nil {
		for i := range m.Devices {
			m.Devices[i] = x.On(m.Devices[i])
		}
	}
	settings := roofline.Measured()
	how := judging{scheduler: criticalPath, tasks: plan.AllTasks}
	b := &stepBench{loaded: loaded{Graph: g, settings: &settings}, devices: k, name: name}
	eager := issued{machine: m}
	if b.task, eager.simulator, err = task(b.loaded, m, how); err != nil {
		return nil, err
	}
	captured := issued{machine: m.Captured()}
	if captured.simulator, _, err = simulator(b.loaded, captured.machine, how); err != nil {
		return nil, err
	}
	b.issued[measure.Eager], b.issued[measure.Captured] = eager, captured
	return b, nil
}

// place returns what p decides.
func (b *stepBench) place(ctx context.Context, p plan.Placer, seed uint64) (plan.Decision, error) {
	t := b.task
	out, err := p.Place(ctx, &plan.Problem{Graph: t.Graph, Machine: t.Machine, Units: t.Units, Priority: t.Priority, Evaluator: b.issued[measure.Eager].simulator.Clone(), Budget: plan.Budget{Evaluations: 1}, Seed: seed})
	if err != nil {
		return plan.Decision{}, err
	}
	return plan.Decision{Device: out.Device, Priority: t.Priority}, nil
}

func (s *study) byRule(ctx context.Context, name string, k int, mode measure.Mode) error {
	b, err := s.bench(name, k)
	if errors.Is(err, errInfeasible) {
		s.doc.Trials = append(s.doc.Trials, report.Trial{Workload: name, Devices: k, SMs: s.sms[k], Plan: humanPlan, Mode: mode.String(), Failed: err.Error()})
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s on %d devices: %w", name, k, err)
	}
	d, err := b.place(ctx, human.Placer{}, 1)
	if err != nil {
		return err
	}
	fused := d
	fused.Fusion = fusion.Default(fuse.NewRules(b.task.Graph), d.Device)
	for _, x := range []struct {
		name string
		d    plan.Decision
	}{{humanPlan, d}, {humanPlan + ", fused", fused}} {
		if err := s.trial(ctx, b, x.name, x.d, mode); err != nil {
			return err
		}
	}
	return nil
}

func (s *study) atRandom(ctx context.Context, name string, k int) error {
	b, err := s.bench(name, k)
	if errors.Is(err, errInfeasible) {
		return nil // the plans by rule tell
	}
	if err != nil {
		return fmt.Errorf("%s on %d devices: %w", name, k, err)
	}
	for seed := range s.f.plans {
		d, err := b.place(ctx, random.Placer{Level: unit.Chain, Samples: 1}, uint64(seed+1))
		if err != nil {
			return err
		}
		if err := s.trial(ctx, b, report.RandomPlan, d, measure.Captured); err != nil {
			return err
		}
	}
	return nil
}

// trial measures d. That it cannot be measured is a result too.
func (s *study) trial(ctx context.Context, b *stepBench, name string, d plan.Decision, mode measure.Mode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.c.clock() >= s.until {
		return errOver
	}
	s.c.note("%s on %d devices, %s, %v", b.name, b.devices, name, mode)
	on := &b.issued[mode]
	rig, err := s.gpus.rigOf(b.loaded, measured.RigConfig{Graph: b.task.Graph, Machine: on.machine, Simulator: on.simulator, Clock: s.c.clock, State: s.state,
		Trace:    mode == measure.Eager && name == humanPlan,
		Settings: measured.Settings{Mode: mode.String(), Repeats: s.f.repeats, Logical: true, Partition: s.f.partition && b.devices > 1}})
	if err != nil {
		return err
	}
	predicted := on.simulator.EvaluateFused(d.Device, d.Priority, d.Fusion)
	t := report.Trial{Workload: b.name, Devices: b.devices, SMs: s.sms[b.devices], Plan: name, Mode: mode.String(), Predicted: predicted.Seconds, Kernels: kernelsOf(b.task.Graph, d)}
	from := s.c.clock()
	got, step, err := rig.Step(ctx, d)
	t.Took = s.c.clock() - from
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		t.Failed = err.Error()
	case !got.Feasible():
		t.Failed = fmt.Sprintf("%v too large", got.Overflow)
	default:
		t.Measured = got.Seconds
		t.Add(step)
	}
	s.doc.Trials = append(s.doc.Trials, t)
	return nil
}

// kernelsOf returns how many kernels d makes of its ops.
func kernelsOf(g *graph.Graph, d plan.Decision) int {
	if d.Fusion == nil {
		return len(d.Device)
	}
	head := slices.Clone(fuse.NewFuser(fuse.NewRules(g)).Fuse(d.Device, d.Fusion))
	slices.Sort(head)
	return len(slices.Compact(head))
}

// write puts what there is into the file.
func (s *study) write() error {
	summarise(s.doc)
	if s.f.out == "" {
		return nil
	}
	return fsx.WriteFile(s.f.out, func(w io.Writer) error { return report.WriteJSON(w, s.doc) })
}
