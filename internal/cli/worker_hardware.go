//go:build !light

package cli

import (
	"bytes"
	"context"
	"fmt"

	"placer/graph"
	"placer/hw"
	"placer/internal/dispatch"
	"placer/measure"
	"placer/measure/session"
	"placer/placer/problem"
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
	w.host, err = session.Host(w.gpus.driver, w.gpus.blas, gpus, w.gpus.version)
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
	g, err := graph.Read(p.Graph, "graph")
	if err != nil {
		return nil, err
	}
	how, err := session.Parse(p.Settings)
	if err != nil {
		return nil, err
	}
	source := problem.Source{Graph: g}
	s, _, err := problem.Simulator(source, m, problem.Options{Scheduler: problem.FIFO, Contention: how.Contention})
	if err != nil {
		return nil, err
	}
	if order := session.Order(s, m.NumDevices()); order != how.Order {
		return nil, fmt.Errorf("this worker predicts other op times (%s) than the search (%s), from which the order on a device follows: is it another version of placer?", order, how.Order)
	}
	here, err := w.gpus.session(source, session.Config{Machine: m, Simulator: s, Settings: how, Clock: w.c.clock})
	if err != nil {
		return nil, err
	}
	return measuringEvaluator{s, here}, nil
}

// measuringEvaluator is a session in the form that a worker wants.
type measuringEvaluator struct {
	*sim.Simulator
	session *session.Session
}

// Measure implements dispatch.Measurer.
func (e measuringEvaluator) Measure(ctx context.Context, d plan.Decision) (plan.Score, error) {
	return e.session.Measure(ctx, d)
}

// Clone is as plan.Evaluator says.
func (e measuringEvaluator) Clone() plan.Evaluator {
	return measuringEvaluator{e.Simulator.Clone().(*sim.Simulator), e.session}
}
