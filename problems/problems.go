// Package problems puts together what a method is given, as the command line does
// by default: the roofline's op times, the exact simulator, units, and the
// critical-path scheduler's priorities.
package problems

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/workloads"
)

// New returns the problem to place g on m, with the evaluator *sim.Simulator. It
// reports a graph or a machine that the simulator does not take.
func New(g *graph.Graph, m *hw.Machine) (*plan.Problem, error) {
	cost, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		return nil, err
	}
	s, err := sim.New(g, m, cost, sim.Default())
	if err != nil {
		return nil, err
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		return nil, err
	}
	return &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s, Priority: sim.CriticalPathPriority(g, s.OpSeconds(0)), Seed: 1}, nil
}

// Workload returns the problem to place a built-in workload on the first gpus GPUs
// of a built-in machine ("gnmt8", "p100", 8).
func Workload(name, gpu string, gpus int) (*plan.Problem, error) {
	g, err := workloads.Build(name)
	if err != nil {
		return nil, err
	}
	m, err := hw.Take(gpu, gpus, false)
	if err != nil {
		return nil, err
	}
	return New(g, m)
}
