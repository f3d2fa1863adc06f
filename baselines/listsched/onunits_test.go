package listsched

import (
	"context"
	"testing"

	"placer/graph/unit"
	"placer/placer/problem"
	"placer/plan"
)

func workload(t *testing.T, name string, gpus int) *plan.Problem {
	t.Helper()
	whole, err := problem.Workload(name, "p100", gpus, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	return p
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
		return out.Score.Value
	}
	for _, x := range []struct{ ops, units plan.Placer }{{HEFT(), UnitHEFT()}, {ETF(), UnitETF()}} {
		if ops, units := seconds(x.ops), seconds(x.units); units > ops*2/3 {
			t.Errorf("%s takes %.4g s, %s %.4g s", x.ops.Name(), ops, x.units.Name(), units)
		}
	}
}
