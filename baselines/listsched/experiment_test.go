//go:build experiment

package listsched

import (
	"fmt"
	"testing"
	"time"

	"placer/baselines/human"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/workloads"
)

func TestRules(t *testing.T) {
	for _, c := range []struct {
		w string
		d int
	}{{"rnnlm2", 2}, {"rnnlm8", 8}, {"gnmt2", 2}, {"gnmt4", 4}, {"gnmt8", 8}, {"trfxl2", 2}, {"trfxl8", 8}, {"inception", 2}, {"amoebanet", 4}, {"wavenet2", 2}, {"wavenet4", 4}} {
		g, err := workloads.Build(c.w)
		if err != nil {
			t.Fatal(err)
		}
		m, err := hw.Take("p100", c.d, false)
		if err != nil {
			t.Fatal(err)
		}
		r, err := roofline.New(g, m, roofline.Default())
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.New(g, m, r, sim.Default())
		if err != nil {
			t.Fatal(err)
		}
		h, err := unit.Find(g, s.OpSeconds(0))
		if err != nil {
			t.Fatal(err)
		}
		p := &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s, Priority: sim.CriticalPathPriority(g, s.OpSeconds(0))}
		o, err := human.Placer{}.Place(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, x := range s.OpSeconds(0) {
			total += x
		}
		bl := s.Evaluate(h.Blocks(s.OpSeconds(0), c.d), p.Priority)
		fmt.Printf("%s/%d human %.1f total %.1f blocks %.1f (%v):", c.w, c.d, o.Score.Seconds*1e3, total*1e3, bl.Seconds*1e3, bl.Overflow)
		t0 := time.Now()
		device := make([]uint8, g.NumOps())
		for _, r := range rules() {
			x, err := newScheduler(p, r.level)
			if err != nil {
				t.Fatal(err)
			}
			x.run(r)
			for i, u := range x.units.Of {
				device[i] = uint8(max(x.device[u], 0))
			}
			y := s.Evaluate(device, p.Priority)
			mark := ""
			if !y.Feasible() {
				mark = "!"
			}
			fmt.Printf(" %.0f%s", y.Seconds*1e3, mark)
		}
		fmt.Println(" in", time.Since(t0))
	}
}
