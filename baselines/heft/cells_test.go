package heft

import (
	"context"
	"testing"

	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/workloads"
)

func workload(t *testing.T, name string, gpus int) *plan.Problem {
	t.Helper()
	g, err := workloads.Build(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", gpus, false)
	if err != nil {
		t.Fatal(err)
	}
	cost, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(g, m, cost, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s, Priority: sim.CriticalPathPriority(g, s.OpSeconds(0)), Seed: 1}
}

// TestUnitsKeepGradientsTogether: on a recurrent training graph the schedulers on
// units need at most two thirds of the time of those on ops, because weights,
// gradients and updates share a device.
func TestUnitsKeepGradientsTogether(t *testing.T) {
	p := workload(t, "rnnlm:layers=2,unroll=10", 2)
	seconds := func(m plan.Placer) float64 {
		out, err := m.Place(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		cells := p.Units.Levels[unit.Cell]
		for u, ops := range cells.Ops {
			for _, i := range ops {
				if p.Units.Roles[unit.Cell][u] == unit.Weights && out.Device[i] != out.Device[ops[0]] && m.Name() != "heft" && m.Name() != "etf" {
					t.Fatalf("%s splits the weights of unit %d", m.Name(), u)
				}
			}
		}
		return out.Score.Seconds
	}
	for _, x := range []struct{ ops, units plan.Placer }{{HEFT{}, HEFT{Units: true}}, {ETF{}, ETF{Units: true}}} {
		if ops, units := seconds(x.ops), seconds(x.units); units > ops*2/3 {
			t.Errorf("%s takes %.4g s, %s %.4g s", x.ops.Name(), ops, x.units.Name(), units)
		}
	}
}
