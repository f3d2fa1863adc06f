package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"placer/hw"
	"placer/hw/gpu"
	"placer/internal/report"
	"placer/internal/words"
	"placer/measure"
	"placer/measure/python"
	"placer/measure/session"
	"placer/placer/problem"
)

// What gives a policy the times of its samples.
const (
	byRoofline = "roofline"
	byHardware = "hardware"
	byBoth     = "both"
)

// measurementsFile is the file of a run folder that holds what was measured.
const measurementsFile = "measurements.jsonl"

// measures reports whether the run measures.
func (c *runSettings) measures() bool { return c.Evaluator != "" }

// localGPUs are the GPUs of this host and its libraries.
type localGPUs struct {
	driver  gpu.Driver
	blas    gpu.BLAS
	version string // of the driver, where the management library tells
	warm    *measure.Warm
}

func (c *console) openGPUs(f libraryFlags) (g *localGPUs, err error) {
	g = &localGPUs{}
	if g.driver, g.blas, err = c.hardware.open(f.CUDA, f.CUBLAS); err != nil {
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
// anything is written: the GPUs, unless others measure, and the named cache.
func (c *console) beforeMeasuring(ctx context.Context, s *searchRun, f *searchFlags) (err error) {
	if !s.config.measures() {
		return nil
	}
	switch how := s.config.Measuring; {
	case how.Runtime == session.Torch && f.Hub.Address != "":
		return usagef("--runtime torch measures on this host: leave out the hub")
	case how.Runtime == session.Torch:
		if s.torch, err = python.Start(ctx, python.Config{Runtime: python.Torch(), Python: f.Python, Graph: s.config.Graph, Realtime: how.Realtime}); err != nil {
			return err
		}
	case f.Hub.Address == "":
		if s.gpus, err = c.openGPUs(f.Libraries); err != nil {
			return err
		}
	}
	if s.config.Measurements != "" {
		s.cache, err = session.OpenCache(s.config.Measurements)
	}
	return err
}

// measurable reports what keeps the graph of s from being measured, and completes
// the settings.
func (s *searchRun) measurable() error {
	if !s.config.measures() {
		return nil
	}
	onTorch := s.config.Measuring.Runtime == session.Torch
	if s.torch != nil {
		if err := s.torch.Ready.Runs(s.task.Graph, s.task.Machine); err != nil {
			return err
		}
		if by := python.Torch().Clock(s.task.Machine); by != session.Virtual { // which an empty one stands for
			s.config.Measuring.Clock = cmp.Or(s.config.Measuring.Clock, by)
		}
	} else if !onTorch && (s.loaded.Times != nil || s.loaded.Seconds != nil) {
		return usagef("--evaluator %s: graph %s brings op times of its own and not the shapes that could be measured", s.config.Evaluator, s.task.Graph.Name())
	}
	m, how := s.task.Machine, s.config.Measuring
	if s.gpus != nil {
		n, err := s.gpus.driver.Count()
		if err != nil {
			return err
		}
		if _, err := measure.Spread(m, n, how.Logical); err != nil {
			return usage(err)
		}
	}
	if onHost := !onTorch && slices.ContainsFunc(m.Devices, func(d hw.Device) bool { return d.Kind == hw.CPU }); onHost && how.Mode != measure.Eager.String() {
		return usagef("measuring.mode %s: machine %s has a CPU, whose ops a graph cannot hold", how.Mode, m.Name)
	}
	how.Contention = s.config.Contention
	how.Order = session.Order(s.task.Simulator, m.NumDevices())
	return nil
}

// measuring is the measuring side of a search.
type measuring struct {
	done *session.Measurements
	host string
	path string // of the cache
}

// openMeasuring makes the evaluator of s, and what judges its rows. Nil where it does not
// measure. stop ends the search.
func (c *console) openMeasuring(ctx context.Context, s *searchRun, workers *workerPool, stop context.CancelCauseFunc) (x *measuring, err error) {
	if !s.config.measures() {
		return nil, nil
	}
	x = &measuring{path: s.config.Measurements}
	var measurer session.Measurer
	switch how := s.config.Measuring; {
	case workers != nil:
		measurer = workers.remote
		x.host = workers.host
	case s.torch != nil:
		measurer = python.NewMeasurer(s.torch, s.task.Graph, s.task.Machine, s.task.Simulator, python.Request{Steps: how.Repeats, Clock: how.Clock, Brief: true})
		x.host = s.torch.Ready.Identity()
	default:
		here, err := s.gpus.session(s.loaded.Source, session.Config{Machine: s.task.Machine, Simulator: s.task.Simulator, Settings: *s.config.Measuring, Clock: c.clock})
		if err != nil {
			return nil, err
		}
		if x.host, err = here.Host(s.gpus.version); err != nil {
			return nil, err
		}
		measurer = here
	}
	if s.cache == nil {
		x.path = s.run.Path(measurementsFile)
		if s.cache, err = session.OpenCache(x.path); err != nil {
			return nil, err
		}
	}
	key := session.Key{Graph: s.config.GraphHash, Machine: s.config.MachineHash, Host: x.host, Settings: s.config.Measuring.String()}
	x.done = session.NewMeasurements(ctx, measurer, s.cache, key, func(err error) { stop(stopped{err}) })
	s.host.Measurer = x.done
	if s.config.Evaluator == byHardware {
		s.host.Rollouts = session.NewEvaluator(s.task.Evaluator.Clone(), x.done).Rollouts
		return x, nil
	}
	prescreen, err := session.NewPrescreen(s.task.Evaluator.Clone(), x.done, s.config.MeasureBest)
	if err != nil {
		return nil, err
	}
	s.host.Rollouts = prescreen.Rollouts
	return x, nil
}

// session sets the GPUs up for steps of source; cfg says the rest.
func (g *localGPUs) session(source problem.Source, cfg session.Config) (*session.Session, error) {
	costs, err := source.Costs(cfg.Machine)
	if err != nil {
		return nil, err
	}
	cfg.Graph, cfg.Costs, cfg.Driver, cfg.BLAS, cfg.Warm = source.Graph, costs, g.driver, g.blas, g.warm
	r, err := session.New(cfg)
	if err != nil {
		return nil, usage(err)
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
	n := x.done.Counts()
	c.say("measured: %s, of which %d ran out of memory; %d taken from %s; %d could not be measured", words.Count(n.Measured, "placement", "placements"), n.OverMemory, n.Known, x.path, n.Failed)
}

// document adds to d what was measured.
func (x *measuring) document(s *searchRun, d *report.Search) {
	if x == nil {
		return
	}
	n := x.done.Counts()
	how := s.config.Measuring
	d.Evaluator = s.config.Evaluator
	d.Measured = &report.Measured{Placements: n.Measured, OutOfMemory: n.OverMemory, Known: n.Known, Failed: n.Failed, Host: x.host,
		Mode: how.Mode, Runtime: how.Runtime, Clock: how.Clock, Repeats: how.Repeats, Logical: how.Logical, Partition: how.Partition, Best: s.config.MeasureBest}
}
