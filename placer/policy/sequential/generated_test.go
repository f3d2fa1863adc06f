package sequential

import (
	"testing"

	"placer/graph/unit"
)

// TestGeneratedNets: a policy sees the decisions and the counterparts of generated nets.
func TestGeneratedNets(t *testing.T) {
	for _, style := range []string{"series-parallel", "towers", "crossed", "skips"} {
		s := instanceOf(t, Case{Workload: style + ":12,64,256,1,3", GPU: "p100", Devices: 2, Bandwidth: 2})
		if s.decisions < 20 || s.problem.Units.Counterparts[unit.Cell] == nil {
			t.Errorf("%s: %d decisions, counterparts %v", style, s.decisions, s.problem.Units.Counterparts[unit.Cell] != nil)
		}
	}
}
