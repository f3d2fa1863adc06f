package conformance

import (
	"errors"
	"testing"

	"placer/baselines/heft"
	"placer/baselines/human"
	"placer/baselines/metis"
	"placer/baselines/random"
	"placer/baselines/roundrobin"
	"placer/baselines/single"
	"placer/baselines/tfdefault"
	"placer/graph/unit"
	"placer/plan"
)

func TestBaselines(t *testing.T) {
	for _, m := range []struct {
		placer  plan.Placer
		reaches bool
	}{
		{placer: single.Placer{}},
		{placer: human.Placer{}},
		{placer: tfdefault.Placer{}},
		{placer: roundrobin.Placer{Level: unit.Cell}},
		{placer: random.Placer{Level: unit.Cell, Samples: 1}},
		{placer: random.Placer{Level: unit.Op}, reaches: true},
		{placer: metis.Placer{}},
		{placer: heft.HEFT{}},
		{placer: heft.ETF{}},
	} {
		t.Run(m.placer.Name(), func(t *testing.T) {
			Run(t, Method{
				Name: m.placer.Name(), New: func() (plan.Placer, error) { return m.placer, nil }, Reaches: m.reaches,
				Unavailable: func(err error) bool { return errors.Is(err, metis.ErrUnavailable) },
			})
		})
	}
}
