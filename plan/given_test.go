package plan_test

import (
	"reflect"
	"testing"

	"placer/graph"
	"placer/plan"
)

// TestWhatIsGiven: a decision is completed by what the problem gives, and what it gives is
// no part of an answer.
func TestWhatIsGiven(t *testing.T) {
	b := graph.NewBuilder("two")
	b.Op(graph.Op{Name: "a", Kind: "Placeholder"}, nil)
	b.Op(graph.Op{Name: "b", Kind: "Placeholder"}, nil)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	given := plan.Decision{Priority: []int32{1, 0}, Fusion: []uint8{0, 1}}
	device, priority := []uint8{0, 0}, []int32{0, 1}
	p := &plan.Problem{Graph: g, Tasks: plan.Place | plan.Schedule, Decision: given}
	if got, want := p.Complete(plan.Decision{Device: device}), (plan.Decision{Device: device, Priority: given.Priority, Fusion: given.Fusion}); !reflect.DeepEqual(got, want) {
		t.Errorf("completed to %v, want %v", got, want)
	}
	all := plan.Decision{Device: device, Priority: priority, Fusion: given.Fusion}
	if got, want := p.Decided(all), (plan.Decision{Device: device, Priority: priority}); !reflect.DeepEqual(got, want) {
		t.Errorf("decided %v, want %v", got, want)
	}
	for _, c := range []struct {
		d    plan.Decision
		want bool
	}{
		{p.Decided(all), true}, {all, true},
		{plan.Decision{Device: device}, false}, {plan.Decision{Priority: priority}, false}, {plan.Decision{Device: device[:1], Priority: priority}, false},
	} {
		if got := p.DecidedBy(c.d); got != c.want {
			t.Errorf("%v decides all: %v, want %v", c.d, got, c.want)
		}
	}
}
