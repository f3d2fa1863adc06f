package sequential

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph/unit"
)

// TestHoldOut: the families held out and their kin are not drawn from.
func TestHoldOut(t *testing.T) {
	for _, f := range families() {
		left, err := chosen(nil, []string{f.name})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range left {
			if g.name == f.name || slices.Contains(f.kin, g.name) || slices.Contains(g.kin, f.name) {
				t.Errorf("%s is trained on where %s is held out", g.name, f.name)
			}
		}
	}
	if _, err := chosen(nil, []string{"nothing"}); err == nil {
		t.Error("an unknown family can be held out")
	}
}

// TestFamiliesBuild: members of every family build, and a search can better the
// expert's placement of generated ones.
func TestFamiliesBuild(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			c := f.drawCase(r)
			if _, err := c.graph(); err != nil {
				t.Fatalf("%v: %v", c, err)
			}
		})
	}
	for _, style := range slices.Sorted(maps.Keys(styles)) {
		s := instanceOf(t, Case{Workload: style + ":12,64,256,1,3", GPU: "p100", Devices: 2, Bandwidth: 2})
		p := s.problem
		if s.decisions < 20 || p.Units.Counterparts[unit.Cell] == nil {
			t.Errorf("%s: %d decisions, counterparts %v", style, s.decisions, p.Units.Counterparts[unit.Cell] != nil)
		}
	}
}
