package cli

import (
	"bytes"
	"context"
	"fmt"

	"placer/dispatch"
	"placer/graph"
	"placer/hw"
	"placer/measure"
	"placer/measured"
	"placer/placer"
	"placer/plan"
	"placer/sim"
)

// hardwareWorker measures for searches on one machine.
type hardwareWorker struct {
	c       *console
	machine *hw.Machine
	gpus    *localGPUs
	host    string
}

// newHardwareWorker opens the GPUs here, which are to stand for the machine.
func (c *console) newHardwareWorker(f *machineFlags, libraries libraryFlags) (w *hardwareWorker, err error) {
	w = &hardwareWorker{c: c}
	if w.gpus, err = c.openGPUs(libraries); err != nil {
		return nil, err
	}
	if w.machine, err = c.loadMachine(f); err != nil {
		return nil, err
	}
	n, err := w.gpus.driver.Count()
	if err != nil {
		return nil, err
	}
	// Whether each device has a GPU of its own is the search's to say: the identity
	// is that of the GPUs that would be used.
	gpus, err := measure.Spread(w.machine, n, false)
	if err != nil {
		if gpus, err = measure.Spread(w.machine, n, true); err != nil {
			return nil, err
		}
	}
	w.host, err = measured.Host(w.gpus.driver, w.gpus.blas, gpus, w.gpus.version)
	return w, err
}

func (w *hardwareWorker) config() dispatch.WorkerConfig {
	w.c.say("measures on machine %s (%.12s): %s", w.machine.Name, w.machine.Hash(), w.host)
	// The first queue stays empty: serving it tells searches on the machine that there
	// is a worker, whose identity names the second.
	kinds := []dispatch.Kind{dispatch.Hardware(w.machine.Hash()), measuringKind(w.machine.Hash(), w.host)}
	return dispatch.WorkerConfig{Kinds: kinds, Slots: 1, Identity: w.host, Evaluator: w.evaluator}
}

// evaluator sets the GPUs up for a problem, or says why not.
func (w *hardwareWorker) evaluator(p dispatch.Problem) (plan.Evaluator, error) {
	if !p.Kind.IsHardware() {
		return nil, fmt.Errorf("a job of kind %s is nothing to measure", p.Kind)
	}
	m, err := hw.Read(bytes.NewReader(p.Machine))
	if err != nil {
		return nil, err
	}
	if m.Hash() != w.machine.Hash() {
		return nil, fmt.Errorf("the search is about machine %s (%.12s), this worker measures on %s (%.12s)", m.Name, m.Hash(), w.machine.Name, w.machine.Hash())
	}
	g, err := graph.Read(bytes.NewReader(p.Graph), "graph")
	if err != nil {
		return nil, err
	}
	how, err := measured.Parse(p.Settings)
	if err != nil {
		return nil, err
	}
	l := loaded{Graph: g}
	s, _, err := simulator(l, m, judging{scheduler: fifo, contention: how.Contention})
	if err != nil {
		return nil, err
	}
	if order := measured.Order(s, m.NumDevices()); order != how.Order {
		return nil, fmt.Errorf("this worker predicts other op times (%s) than the search (%s), from which the order on a device follows: is it another version of placer?", order, how.Order)
	}
	rig, err := w.gpus.rig(w.c, l, &placer.Task{Graph: g, Machine: m}, s, how)
	if err != nil {
		return nil, err
	}
	return rigEvaluator{s, rig}, nil
}

// rigEvaluator is a rig in the form that a worker wants.
type rigEvaluator struct {
	*sim.Simulator
	rig *measured.Rig
}

// Measure implements dispatch.Measurer.
func (e rigEvaluator) Measure(ctx context.Context, d plan.Decision) (plan.Score, error) {
	return e.rig.Measure(ctx, d)
}

// Clone is as plan.Evaluator says.
func (e rigEvaluator) Clone() plan.Evaluator {
	return rigEvaluator{e.Simulator.Clone().(*sim.Simulator), e.rig}
}
