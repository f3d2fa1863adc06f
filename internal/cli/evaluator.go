package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"placer/gpu"
	"placer/hw"
	"placer/measure"
	"placer/measured"
	"placer/placer"
	"placer/plan"
	"placer/report"
	"placer/sim"
)

// What gives a policy the times of its samples.
const (
	byRoofline = "roofline"
	byHardware = "hardware"
	byBoth     = "both"
)

// measurementsFile is the file of a run folder that holds what was measured.
const measurementsFile = "measurements.jsonl"

// evaluatorFlags say what gives a policy the times of its samples, and how steps
// are measured.
type evaluatorFlags struct {
	evaluator string
	best      int
	memo      string
	settings  measured.Settings
	libraries libraryFlags
}

func (f *evaluatorFlags) add(cmd *cobra.Command) {
	d := measured.DefaultSettings()
	cmd.Flags().StringVar(&f.evaluator, "evaluator", byRoofline, "what policies learn from: roofline (the simulator), hardware (measured steps) or both (the simulator screens, the best of each round are measured)")
	cmd.Flags().IntVar(&f.best, "measure-best", 4, "samples of a round that --evaluator both measures")
	cmd.Flags().StringVar(&f.memo, "measurements", "", "file of measurements, read and added to (default "+measurementsFile+" in the run folder)")
	cmd.Flags().StringVar(&f.settings.Mode, "measure-mode", d.Mode, "how a measured step is issued: eager (call by call) or graph (captured once)")
	cmd.Flags().IntVar(&f.settings.Repeats, "measure-repeats", d.Repeats, "timed steps of a measurement, behind one that is dropped; their median counts")
	cmd.Flags().BoolVar(&f.settings.Logical, "logical", false, "all GPUs of the machine stand on the first one of the host that measures")
	cmd.Flags().BoolVar(&f.settings.Partition, "partition", false, "devices on one GPU get multiprocessors of their own (green contexts)")
	f.libraries.add(cmd)
}

// measuringFlags are the flags that are about measuring alone.
var measuringFlags = []string{"measurements", "measure-mode", "measure-repeats", "logical", "partition"}

func (f *evaluatorFlags) check(cmd *cobra.Command, how judging) error {
	switch f.evaluator {
	case byRoofline:
		if cmd.Flags().Changed("measure-best") {
			return usagef("--measure-best is about --evaluator both")
		}
		for _, name := range measuringFlags {
			if cmd.Flags().Changed(name) {
				return usagef("--%s is about --evaluator hardware or both", name)
			}
		}
		return nil
	case byHardware:
		if cmd.Flags().Changed("measure-best") {
			return usagef("--measure-best is about --evaluator both")
		}
	case byBoth:
		if f.best < 1 {
			return usagef("--measure-best %d: want at least 1", f.best)
		}
	default:
		return usagef("unknown evaluator %q, want %s, %s or %s", f.evaluator, byRoofline, byHardware, byBoth)
	}
	switch err := f.settings.Validate(); {
	case err != nil:
		return usageError{err}
	case how.objective.Normal() != plan.Step:
		return usagef("--evaluator %s: the %s objective is not measured", f.evaluator, how.objective)
	}
	return nil
}

// config fills in what a run remembers of f.
func (f *evaluatorFlags) config(c *runConfig) {
	if f.evaluator == byRoofline {
		return
	}
	c.Evaluator, c.Measuring, c.Measurements = f.evaluator, &f.settings, f.memo
	if f.evaluator == byBoth {
		c.MeasureBest = f.best
	}
}

// measures reports whether the run measures.
func (c *runConfig) measures() bool { return c.Evaluator != "" }

// localGPUs are the GPUs of this host and its libraries.
type localGPUs struct {
	driver  gpu.Driver
	blas    gpu.BLAS
	version string // of the driver, where the management library tells
	warm    *measure.Warm
}

func (c *console) openGPUs(f libraryFlags) (g *localGPUs, err error) {
	g = &localGPUs{}
	if g.driver, g.blas, err = c.hardware.open(f.cuda, f.cublas); err != nil {
		return nil, err
	}
	if n, err := g.driver.Count(); err != nil || n == 0 {
		return nil, errors.Join(fmt.Errorf("%w: the driver has none", gpu.ErrNoDevice), err)
	}
	if inventory, err := c.hardware.detect(); err == nil {
		g.version = inventory.Driver
	}
	g.warm = measure.NewWarm(g.driver)
	return g, nil
}

// beforeMeasuring opens what a measuring session needs of the world, before
// anything is written: the GPUs, unless others measure, and the named memo.
func (c *console) beforeMeasuring(s *session, f *searchFlags) (err error) {
	if !s.config.measures() {
		return nil
	}
	if f.hub.hub == "" {
		if s.gpus, err = c.openGPUs(f.evaluator.libraries); err != nil {
			return err
		}
	}
	if s.config.Measurements != "" {
		s.memo, err = measured.OpenMemo(s.config.Measurements)
	}
	return err
}

// measurable reports what keeps the graph of s from being measured, and completes
// the settings.
func (s *session) measurable() error {
	if !s.config.measures() {
		return nil
	}
	if s.loaded.times != nil || s.loaded.seconds != nil {
		return usagef("--evaluator %s: graph %s brings op times of its own and not the shapes that could be measured", s.config.Evaluator, s.task.Graph.Name())
	}
	m, how := s.task.Machine, s.config.Measuring
	if s.gpus != nil {
		n, err := s.gpus.driver.Count()
		if err != nil {
			return err
		}
		if _, err := measure.Spread(m, n, how.Logical); err != nil {
			return usageError{err}
		}
	}
	if onHost := slices.ContainsFunc(m.Devices, func(d hw.Device) bool { return d.Kind == hw.CPU }); onHost && how.Mode != measure.Eager.String() {
		return usagef("--measure-mode %s: machine %s has a CPU, whose ops a graph cannot hold", how.Mode, m.Name)
	}
	how.Contention = s.config.Contention
	how.Order = measured.Order(s.sim, m.NumDevices())
	return nil
}

// measuring is the measuring side of a search.
type measuring struct {
	judge *measured.Judge
	host  string
	path  string // of the memo
}

// openMeasuring makes the evaluator and the judge of s. Nil where it does not
// measure. stop ends the search.
func (c *console) openMeasuring(ctx context.Context, s *session, workers *crowd, stop context.CancelCauseFunc) (x *measuring, err error) {
	if !s.config.measures() {
		return nil, nil
	}
	x = &measuring{path: s.config.Measurements}
	var meter measured.Meter
	if workers != nil {
		meter = workers.remote
		x.host = workers.host
	} else {
		rig, err := s.gpus.rig(c, s.loaded, s.task, s.sim, *s.config.Measuring)
		if err != nil {
			return nil, err
		}
		if x.host, err = rig.Host(s.gpus.version); err != nil {
			return nil, err
		}
		meter = rig
	}
	if s.memo == nil {
		x.path = s.run.Path(measurementsFile)
		if s.memo, err = measured.OpenMemo(x.path); err != nil {
			return nil, err
		}
	}
	key := measured.Key{Graph: s.config.GraphHash, Machine: s.config.MachineHash, Host: x.host, Settings: s.config.Measuring.String()}
	x.judge = measured.NewJudge(ctx, meter, s.memo, key, func(err error) { stop(stopped{err}) })
	s.task.Judge = x.judge
	if s.config.Evaluator == byHardware {
		s.task.Rollouts = measured.NewEvaluator(s.task.Evaluator.Clone(), x.judge)
		return x, nil
	}
	s.task.Rollouts, err = measured.NewScreen(s.task.Evaluator.Clone(), x.judge, s.config.MeasureBest)
	return x, err
}

// rig sets the GPUs up for a graph on a machine.
func (g *localGPUs) rig(c *console, l loaded, t *placer.Task, s *sim.Simulator, how measured.Settings) (*measured.Rig, error) {
	return g.rigOf(l, measured.RigConfig{Graph: t.Graph, Machine: t.Machine, Simulator: s, Settings: how, Clock: c.clock})
}

// rigOf fills in what cfg lacks of l and the GPUs.
func (g *localGPUs) rigOf(l loaded, cfg measured.RigConfig) (*measured.Rig, error) {
	costs, err := l.costs(cfg.Machine)
	if err != nil {
		return nil, err
	}
	cfg.Costs, cfg.Driver, cfg.BLAS, cfg.Warm = costs, g.driver, g.blas, g.warm
	r, err := measured.NewRig(cfg)
	if err != nil {
		return nil, usageError{err}
	}
	return r, nil
}

// stopped is why a search was stopped from within.
type stopped struct{ error }

func (e stopped) Unwrap() error { return e.error }

// sum says what was measured.
func (x *measuring) sum(c *console) {
	if x == nil {
		return
	}
	n := x.judge.Counts()
	c.say("measured: %d placements, of which %d ran out of memory; %d taken from %s; %d could not be measured", n.Measured, n.OverMemory, n.Known, x.path, n.Failed)
}

// document adds to d what was measured.
func (x *measuring) document(s *session, d *report.Search) {
	if x == nil {
		return
	}
	n := x.judge.Counts()
	how := s.config.Measuring
	d.Evaluator = s.config.Evaluator
	d.Measured = &report.Measured{Placements: n.Measured, OutOfMemory: n.OverMemory, Known: n.Known, Failed: n.Failed, Host: x.host,
		Mode: how.Mode, Repeats: how.Repeats, Logical: how.Logical, Partition: how.Partition, Best: s.config.MeasureBest}
}
