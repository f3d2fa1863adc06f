package portfolio

import (
	"slices"
	"testing"

	"placer/plan"
)

// The best plans that differ are kept, the best first.
func TestElite(t *testing.T) {
	var e elite
	for _, x := range []float64{5, 3, 9, 3, 1, 8, 7, 6, 2} {
		e.admit(plan.Decision{Device: []uint8{uint8(x)}}, plan.Score{Value: x})
	}
	want := []uint8{1, 2, 3, 5, 6, 7}
	got := e.decisions()
	if len(got) != len(want) {
		t.Fatalf("%d elite plans, want %d", len(got), len(want))
	}
	for k, d := range got {
		if d.Device[0] != want[k] {
			t.Errorf("elite plan %d comes to %d, want %d", k, d.Device[0], want[k])
		}
	}
}

// An arm that takes parts of elite plans waits until explorers have left some, and gets
// them all beside the best plan.
func TestArmsOfElitePlans(t *testing.T) {
	told, empty := 0, 0
	all := testArms()
	arms := append([]Arm{all[0], all[3]}, Arm{Name: "cross", FromBest: true, Elite: true, New: func(k Known) (plan.Placer, error) {
		told = max(told, len(k.Elite))
		if len(k.Elite) == 0 || k.Start.Device == nil {
			empty++
		}
		return walk{"cross", k.Start.Device}, nil
	}})
	o := place(t, Placer{Arms: arms, Workers: 1}, 3000)
	if told == 0 || empty > 0 {
		t.Errorf("at most %d elite plans were told, %d pulls had none or no start", told, empty)
	}
	if alone := place(t, Placer{Arms: arms, Workers: 1}, 2000); alone.Score.Better(o.Score) {
		t.Errorf("2000 evaluations end at %v, 3000 at %v", alone.Score, o.Score)
	}
}

// A walker that explores begins anew, goes on, and then takes over parts of what it left.
func TestExplorersCross(t *testing.T) {
	arms := []Arm{{Name: "anew"}, {Name: "on", FromBest: true}, {Name: "cross", FromBest: true, Elite: true}}
	r := &run{Placer: Placer{Arms: arms, Walkers: 2}, homes: make([]home, 2), ledgers: make([]ledger, 3)}
	r.best, r.score = plan.Decision{Device: []uint8{0}}, plan.Score{Value: 1}
	r.p = testProblem(t, 1)
	var got []int
	for k := range 6 {
		i := r.choose(k)[1]
		got = append(got, i)
		out := &plan.Outcome{Decision: plan.Decision{Device: make([]uint8, r.p.Graph.NumOps())}, Score: plan.Score{Value: 2 + float64(k)}}
		r.book(k, 1, []*pull{{arm: i, walker: 1, outcome: out}})
	}
	if want := []int{0, 1, 2, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("the walker pulls %v, want %v", got, want)
	}
}
