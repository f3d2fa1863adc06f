package plan_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"placer/plan"
)

func TestCheck(t *testing.T) {
	g, m := testGraph(t, 4, 0, 7, 0, 7), testMachine(t, "a", "b")
	for _, c := range []struct {
		name string
		plan plan.Plan
		want string // "" where the plan is valid
	}{
		{"valid", plan.Plan{Decision: plan.Decision{Device: []uint8{0, 1, 0, 1}, Priority: []int32{3, 0, 2, 1}}}, ""},
		{"FIFO", plan.Plan{Graph: g.Hash(), Decision: plan.Decision{Device: []uint8{0, 0, 0, 0}}}, ""},
		{"other graph", plan.Plan{Graph: "0123456789abcdef", Decision: plan.Decision{Device: []uint8{0, 0, 0, 0}}}, "plan is for graph 0123456789ab, not for chain"},
		{"too short", plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 0}}}, "plan places 3 ops, graph chain has 4"},
		{"no such device", plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 2, 0}}}, "op 2 (op2) is on device 2, machine box has 2"},
		{"split group", plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 0, 1}}}, "op 3 (op3) is on device 1 but must share a device with op 1 (op1), which is on device 0"},
		{"short priority", plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 0, 0}, Priority: []int32{0, 1}}}, "plan has 2 priorities for 4 ops"},
		{"priority twice", plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 0, 0}, Priority: []int32{0, 1, 1, 2}}}, "op 2 (op2): priority 1 is out of range or taken"},
		{"short fusion", plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 0, 0}, Fusion: []uint8{1}}}, "plan has 1 fusion priority for 4 ops"},
		{"priority out of range", plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 0, 0}, Priority: []int32{0, 1, 4, 2}}}, "op 2 (op2): priority 4"},
	} {
		err := c.plan.Check(g, m)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// TestBetter: a score is better than those that follow in the order.
func TestBetter(t *testing.T) {
	fast, slow := plan.Score{Value: 1}, plan.Score{Value: 2}
	over, worse := plan.Score{Value: 0.5, Overflow: 1}, plan.Score{Value: 0.1, Overflow: 2}
	order := []plan.Score{fast, slow, over, worse}
	for i, a := range order {
		for j, b := range order {
			if got := a.Better(b); got != (i < j) {
				t.Errorf("%+v better than %+v: %v, want %v", a, b, got, i < j)
			}
			if got := a.Compare(b); got != cmp.Compare(i, j) {
				t.Errorf("%+v beside %+v: %d, want %d", a, b, got, cmp.Compare(i, j))
			}
		}
		if a.Feasible() != (i < 2) {
			t.Errorf("%+v feasible: %v", a, a.Feasible())
		}
	}
}

func TestKernels(t *testing.T) {
	g := testGraph(t, 4) // a chain of loops
	p := plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 0, 1}}}
	for _, c := range []struct {
		fusion []uint8
		want   []int32
	}{
		{nil, []int32{0, 1, 2, 3}}, {[]uint8{0, 0, 0, 9}, []int32{0, 1, 2, 3}}, {[]uint8{0, 1, 1, 1}, []int32{0, 2, 2, 3}}, {[]uint8{1, 1, 1, 1}, []int32{2, 2, 2, 3}},
	} {
		p.Fusion = c.fusion
		if got := p.Kernels(g); !slices.Equal(got, c.want) {
			t.Errorf("fusion %v: kernels %v, want %v", c.fusion, got, c.want)
		}
	}
}
