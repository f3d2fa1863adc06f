package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"placer/graph"
	"placer/hw"
	"placer/hw/gpu"
	"placer/hw/nvml"
	"placer/measure"
	"placer/plan"
	"placer/sim"
)

// Session is the GPUs of this host, set up to measure placements of one graph on one
// machine, one at a time.
type Session struct {
	mu        sync.Mutex // the GPUs measure one placement at a time
	graph     *graph.Graph
	machine   *hw.Machine
	simulator *sim.Simulator
	costs     sim.CostModel
	driver    gpu.Driver
	blas      gpu.BLAS
	config    measure.Config
	gpus      []int // [D]
}

// Config is what a Session is made of.
type Config struct {
	Graph     *graph.Graph
	Machine   *hw.Machine
	Simulator *sim.Simulator // gives the order of ops; the session has a clone
	Costs     sim.CostModel
	Driver    gpu.Driver
	BLAS      gpu.BLAS
	Settings  Settings
	Clock     func() float64 // the host's, in seconds
	// Warm, if not nil, keeps contexts and kernels between measurements, of several
	// sessions that do not measure at once.
	Warm *measure.Warm
	// Trace has Step run one more step with events around every op.
	Trace bool
	// State, if not nil, tells how the GPU of a UUID fares.
	State func(uuid string) (nvml.State, error)
}

// New makes a session. The error says what the GPUs here cannot stand for.
func New(c Config) (*Session, error) {
	if err := c.Settings.Validate(); err != nil {
		return nil, err
	}
	n, err := c.Driver.Count()
	if err != nil {
		return nil, err
	}
	r := &Session{graph: c.Graph, machine: c.Machine, simulator: c.Simulator.Clone().(*sim.Simulator), costs: c.Costs, driver: c.Driver, blas: c.BLAS, config: measure.Default()}
	if r.gpus, err = measure.Spread(c.Machine, n, c.Settings.Logical); err != nil {
		return nil, err
	}
	r.config.Mode, _ = c.Settings.mode()
	r.config.Repeats, r.config.Partition, r.config.Trace = c.Settings.Repeats, c.Settings.Partition, c.Trace
	r.config.Clock, r.config.Warm, r.config.State = c.Clock, c.Warm, c.State
	return r, r.config.Validate()
}

// Host returns what the measurements depend on; see Host.
func (r *Session) Host(version string) (string, error) {
	return Host(r.driver, r.blas, r.gpus, version)
}

// Parallel is as Measurer says.
func (r *Session) Parallel() int { return 1 }

// Measure is as Measurer says. The order on every device is that of the simulated
// step. A placement that does not fit the machine's devices is not run.
func (r *Session) Measure(ctx context.Context, d plan.Decision) (plan.Score, error) {
	score, _, err := r.Step(ctx, d)
	return score, err
}

// Step is Measure with all that is known of the step; nil where it was not run or
// ran out of memory.
func (r *Session) Step(ctx context.Context, d plan.Decision) (plan.Score, *measure.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return plan.Score{}, nil, err
	}
	p := &plan.Plan{Decision: d}
	predicted, err := r.simulator.Run(p, sim.Options{Trace: true})
	var over *sim.Infeasible
	if errors.As(err, &over) {
		return r.simulator.Evaluate(plan.Decision{Device: d.Device, Priority: d.Priority, Fusion: d.Fusion}), nil, nil
	}
	if err != nil {
		return plan.Score{}, nil, err
	}
	got, err := measure.Run(ctx, r.config, &measure.Problem{Graph: r.graph, Machine: r.machine, Plan: p, Predicted: predicted, GPU: r.gpus}, r.costs, r.driver, r.blas)
	var full *measure.OutOfMemory
	switch {
	case errors.As(err, &full):
		return plan.Score{Value: float64(predicted.Makespan), Overflow: max(1, full.Need-full.Have)}, nil, nil
	case errors.Is(err, gpu.OutOfMemory): // of something else than the slabs
		return plan.Score{Value: float64(predicted.Makespan), Overflow: 1}, nil, nil
	case err != nil:
		return plan.Score{}, nil, err
	case !(got.Makespan > 0):
		return plan.Score{}, nil, fmt.Errorf("a step of %v", got.Makespan)
	}
	return plan.Score{Value: float64(got.Makespan)}, got, nil
}
