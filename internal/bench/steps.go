package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"placer/baselines/rules"
	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/hw"
	"placer/hw/bench"
	"placer/hw/gpu"
	"placer/hw/nvml"
	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/internal/report"
	"placer/measure"
	"placer/measure/session"
	"placer/placer/problem"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/units"
	"placer/workloads"
)

// Steps says which steps are compared with their predictions, on one GPU that
// stands for several devices.
type Steps struct {
	Workloads     []string // placed by rule
	Rank          []string // of which random plans are ranked, on every number of devices above 1
	Devices       []int    // numbers of devices
	Plans         int      // random plans of each kind
	Link, Latency string   // between two devices, as 25 GB/s and 20 us
	Partition     bool     // devices get multiprocessors of their own
	Repeats       int      // timed steps, of which the median counts
	Budget        time.Duration
	Out           string // file of all that was measured, also after each workload; empty: none
}

// DefaultSteps takes ten minutes at most.
func DefaultSteps() Steps {
	return Steps{Workloads: []string{"rnnlm2", "trfxl2", "wavenet2", "gnmt2", "inception"}, Rank: []string{"rnnlm2"}, Devices: []int{1, 2, 4},
		Plans: 30, Link: "25 GB/s", Latency: "20 us", Repeats: 5, Budget: 10 * time.Minute}
}

// StepsHost is what Steps measures with.
type StepsHost struct {
	Host
	Driver gpu.Driver
	BLAS   gpu.BLAS
	Name   string // identifies GPU and libraries
	// State tells how the GPU of a UUID fares; nil: nothing does.
	State func(uuid string) (nvml.State, error)
	// Session sets the GPU up for steps of a graph.
	Session func(problem.Source, session.Config) (*session.Session, error)
}

// study is a comparison under way.
type study struct {
	f         Steps
	host      StepsHost
	device    *hw.Device
	bandwidth units.BytesPerSecond
	latency   units.Seconds
	sms       map[int]int // of each of so many parts
	shares    map[int]*bench.Share
	graphs    map[string]*graph.Graph
	until     float64 // by the host's clock
	doc       *report.Steps
}

// Run measures on the first GPU of m until it is done or the budget ends.
func (f Steps) Run(ctx context.Context, m *hw.Machine, host StepsHost) (*report.Steps, error) {
	bandwidth, latency, err := f.link()
	if err != nil {
		return nil, err
	}
	if m.Devices[0].Kind != hw.GPU {
		return nil, ConfigErrorf("the first device of machine %s is no GPU", m.Name)
	}
	s := &study{f: f, host: host, device: &m.Devices[0], bandwidth: bandwidth, latency: latency, sms: map[int]int{}, shares: map[int]*bench.Share{}, graphs: map[string]*graph.Graph{}, until: host.Clock() + f.Budget.Seconds(),
		doc: &report.Steps{Format: report.StepsFormat, Machine: m.Name, Calibrated: report.SummariseMachine(m).Devices[0].Calibrated, Host: host.Name,
			Link: fmt.Sprintf("%v and %v", bandwidth, latency), Partition: f.Partition, Repeats: f.Repeats, Trials: []report.Trial{}}}
	return s.doc, s.run(ctx)
}

// Validate reports the first fault.
func (f Steps) Validate() error {
	_, _, err := f.link()
	return err
}

// link returns the figures of the links of a valid f.
func (f Steps) link() (units.BytesPerSecond, units.Seconds, error) {
	for _, k := range f.Devices {
		if k < 1 || k > hw.MaxPlaced {
			return 0, 0, ConfigErrorf("--devices %d: want 1 to %d", k, hw.MaxPlaced)
		}
	}
	if f.Plans < 0 || f.Repeats < 1 || f.Budget <= 0 {
		return 0, 0, ConfigErrorf("--plans %d --repeats %d --budget %v: want at least 0, at least 1, more than 0", f.Plans, f.Repeats, f.Budget)
	}
	bandwidth, err1 := units.ParseBytesPerSecond(f.Link)
	latency, err2 := units.ParseSeconds(f.Latency)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, ConfigError{err}
	}
	return bandwidth, latency, nil
}

// humanPlan names the plan by the human rule.
const humanPlan = "human"

// errOver says that the budget has ended.
var errOver = errors.New("the budget has ended")

func (s *study) run(ctx context.Context) error {
	for _, k := range s.f.Devices {
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
		if !shared && s.f.Partition {
			n, err := measure.PartSMs(s.host.Driver, 0, k)
			if err != nil {
				return err
			}
			s.sms[k] = n
		}
	}
	err := s.all(ctx)
	if errors.Is(err, errOver) {
		s.doc.Notes = append(s.doc.Notes, fmt.Sprintf("The budget of %v ended before all plans were measured.", s.f.Budget))
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
	cfg.Repeats, cfg.State = 5, s.host.State
	cfg.Types = nil
	for _, name := range slices.Concat(s.f.Workloads, s.f.Rank) {
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
	s.host.Log("measuring one of %d devices", k)
	x, err := bench.RunShare(ctx, cfg, s.host.Driver, s.host.BLAS, 0, k, s.f.Partition)
	if err != nil {
		return err
	}
	s.shares[k] = x
	s.doc.Shares = append(s.doc.Shares, x)
	if s.f.Partition {
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
		if t, ok := measure.TypeOf(o.DType, roofline.Measured().TF32 && !o.Precise); ok && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// graph builds a workload once.
func (s *study) graph(name string) (g *graph.Graph, err error) {
	if g = s.graphs[name]; g == nil {
		if g, err = workloads.Build(name); err != nil {
			return nil, ConfigError{err}
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
	rank := s.f.Rank
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
	for _, name := range s.f.Workloads {
		for _, k := range s.f.Devices {
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
		for _, k := range s.f.Devices {
			if k == 1 || s.f.Plans == 0 {
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
	task    *problem.Problem
	issued  [2]issued // by mode
	source  problem.Source
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
	how := problem.Options{Scheduler: problem.CriticalPath, Tasks: plan.AllTasks}
	b := &stepBench{source: problem.Source{Graph: g, Roofline: &settings}, devices: k, name: name}
	eager := issued{machine: m}
	if b.task, err = problem.New(b.source, m, how); err != nil {
		return nil, err
	}
	eager.simulator = b.task.Simulator
	captured := issued{machine: m.Captured()}
	if captured.simulator, _, err = problem.Simulator(b.source, captured.machine, how); err != nil {
		return nil, err
	}
	b.issued[measure.Eager], b.issued[measure.Captured] = eager, captured
	return b, nil
}

// place returns what p decides.
func (b *stepBench) place(ctx context.Context, p plan.Placer, seed uint64) (plan.Decision, error) {
	t := b.task.Problem
	t.Tasks, t.Evaluator, t.Moves = 0, b.issued[measure.Eager].simulator.Clone(), nil
	t.Budget, t.Seed = plan.Budget{Evaluations: 1}, seed
	out, err := p.Place(ctx, &t)
	if err != nil {
		return plan.Decision{}, err
	}
	return plan.Decision{Device: out.Device, Priority: t.Priority}, nil
}

func (s *study) byRule(ctx context.Context, name string, k int, mode measure.Mode) error {
	b, err := s.bench(name, k)
	if errors.Is(err, problem.ErrInfeasible) {
		s.doc.Trials = append(s.doc.Trials, report.Trial{Workload: name, Devices: k, SMs: s.sms[k], Plan: humanPlan, Mode: mode.String(), Failed: err.Error()})
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s on %d devices: %w", name, k, err)
	}
	d, err := b.place(ctx, rules.Expert(), 1)
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
	if errors.Is(err, problem.ErrInfeasible) {
		return nil // the plans by rule tell
	}
	if err != nil {
		return fmt.Errorf("%s on %d devices: %w", name, k, err)
	}
	for seed := range s.f.Plans {
		d, err := b.place(ctx, rules.Random(unit.Chain), uint64(seed+1))
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
	if s.host.Clock() >= s.until {
		return errOver
	}
	s.host.Log("%s on %d devices, %s, %v", b.name, b.devices, name, mode)
	on := &b.issued[mode]
	steps, err := s.host.Session(b.source, session.Config{Machine: on.machine, Simulator: on.simulator, Clock: s.host.Clock, State: s.host.State,
		Trace:    mode == measure.Eager && name == humanPlan,
		Settings: session.Settings{Mode: mode.String(), Repeats: s.f.Repeats, Logical: true, Partition: s.f.Partition && b.devices > 1}})
	if err != nil {
		return err
	}
	predicted := on.simulator.Evaluate(plan.Decision{Device: d.Device, Priority: d.Priority, Fusion: d.Fusion})
	t := report.Trial{Workload: b.name, Devices: b.devices, SMs: s.sms[b.devices], Plan: name, Mode: mode.String(), Predicted: predicted.Value, Kernels: kernelsOf(b.task.Graph, d)}
	from := s.host.Clock()
	got, step, err := steps.Step(ctx, d)
	t.Took = s.host.Clock() - from
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		t.Failed = err.Error()
	case !got.Feasible():
		t.Failed = fmt.Sprintf("%v too large", got.Overflow)
	default:
		t.Measured = got.Value
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
	if s.f.Out == "" {
		return nil
	}
	return fsx.WriteFile(s.f.Out, func(w io.Writer) error { return jsonx.Write(w, s.doc) })
}
