package cem_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"placer/graph/formats/dnnpart"
	"placer/placer/methods"
	"placer/placer/policy/cem"
	"placer/placer/problem"
	"placer/plan"
)

// chainOf returns a partitioning instance of n layers in a row. Every third cannot run on an
// accelerator, and where idle says so none takes any time there.
func chainOf(t *testing.T, n int, idle bool) *problem.Problem {
	t.Helper()
	var nodes, edges []string
	for i := range n {
		latency := 1 + i%5
		if idle || i%7 == 3 {
			latency = 0
		}
		nodes = append(nodes, fmt.Sprintf(`{"id": %d, "name": "l%d", "supportedOnFpga": %d, "cpuLatency": 9, "fpgaLatency": %d, "isBackwardNode": 0, "size": 3}`, i, i, min(i%3, 1), latency))
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"sourceId": %d, "destId": %d, "cost": 0.25}`, i-1, i))
		}
	}
	x, err := dnnpart.Import([]byte(fmt.Sprintf(`{"maxSizePerFPGA": 1000, "maxFPGAs": 3, "maxCPUs": 1, "nodes": [%s], "edges": [%s]}`, strings.Join(nodes, ","), strings.Join(edges, ","))), "chain.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := x.Times.Machine()
	if err != nil {
		t.Fatal(err)
	}
	p, err := problem.New(problem.Source{Graph: x.Graph, Times: x.Times}, m, problem.Options{Objective: plan.Throughput, Tasks: plan.Place})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestThroughputOfWhatCannotRun: ops that cannot run on some devices, and ops of no time, are
// placed by the whole portfolio and by each learned method.
func TestThroughputOfWhatCannotRun(t *testing.T) {
	for _, idle := range []bool{false, true} {
		p := chainOf(t, 48, idle)
		for d := range p.Machine.NumDevices() {
			for i, s := range p.Evaluator.OpSeconds(d) {
				if math.IsInf(s, 0) || s < 0 {
					t.Fatalf("op %d takes %g s on device %d", i, s, d)
				}
			}
		}
		all := map[string]plan.Placer{
			methods.Portfolio: methods.NewPortfolio(methods.Of(p), methods.Default(), methods.Guides{}, plan.Decision{}),
			"cross-entropy":   cem.Policy{Config: cem.Default()},
		}
		for _, name := range []string{methods.GoOne, methods.FineTuned} {
			m, err := methods.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if all[name], err = m.New(methods.Default()); err != nil {
				t.Fatal(name, err)
			}
		}
		for name, x := range all {
			q := p.Problem
			q.Budget = plan.Budget{Evaluations: 500}
			o, err := x.Place(t.Context(), &q)
			if err != nil {
				t.Errorf("idle %v, %s: %v", idle, name, err)
				continue
			}
			if strings.Contains(fmt.Sprint(o.Notes), "ended early") {
				t.Errorf("idle %v, %s: notes %q", idle, name, o.Notes)
			}
			// From nothing, random placements alone do not find one without an op that cannot run.
			if from := name == methods.GoOne || name == "cross-entropy"; !from && math.IsInf(o.Score.Value, 0) || math.IsNaN(o.Score.Value) {
				t.Errorf("idle %v, %s: load %g", idle, name, o.Score.Value)
			}
		}
	}
}
