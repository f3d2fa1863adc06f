package curriculum

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"placer/graph/unit"
	"placer/placer/policy/rollout"
	"placer/plan"
)

// TestWalk: every curriculum has an equal share and its stages theirs, the last stage
// of the best one has the rest, from what that learnt; a walk that was cut off goes on
// in the stage where it was.
func TestWalk(t *testing.T) {
	stage := func(name string, share float64) Stage {
		return Stage{Name: name, Units: &unit.Partition{}, Share: share}
	}
	all := [][]Stage{{stage("a", 1), stage("b", 3)}, {stage("c", 1)}, {stage("d", 1)}}
	values := map[string]float64{"a": 5, "b": 4, "c": 3, "d": 6}
	type call struct{ name, from string }
	var calls []call
	var begins []float64
	walk := func(at *Position) Walk {
		calls, begins = nil, nil
		run := new(rollout.Run)
		return Walk{all, at, run, func(x Leg) (Logits, error) {
			if s := (plan.Score{Value: values[x.Name]}); run.Round == nil || s.Better(*run.Round) {
				run.Round = &s
			}
			if l := x.From.Logits; x.From.Name != "" && l != nil && l[0][0][0] != float32(values[x.From.Name]) {
				t.Errorf("%s begins with %v, not what %s learnt", x.Name, l, x.From.Name)
			}
			calls, begins = append(calls, call{x.Name, x.From.Name}), append(begins, x.Begin)
			return Logits{{{float32(values[x.Name])}}}, nil
		}}
	}
	at := new(Position)
	if err := walk(at).Begin(); err != nil {
		t.Fatal(err)
	}
	if want := []call{{"a", ""}, {"b", "a"}, {"c", ""}, {"d", ""}, {"c", "c"}}; !slices.Equal(calls, want) {
		t.Errorf("stages %v, want %v", calls, want)
	}
	for k, want := range []float64{0, 0.05, 0.2, 0.4, 0.6} {
		if d := begins[k] - want; d > 1e-9 || d < -1e-9 {
			t.Errorf("stage %d begins at %g, want %g", k, begins[k], want)
		}
	}
	if at.Chosen != 1 || at.Curriculum != 3 {
		t.Errorf("ended at %+v", at)
	}
	if err := walk(&Position{Curriculum: 0, Stage: 1, Chosen: -1}).Resume(); err != nil {
		t.Fatal(err)
	}
	if want := []call{{"b", ""}, {"c", ""}, {"d", ""}, {"c", "c"}}; !slices.Equal(calls, want) {
		t.Errorf("resumed, stages %v, want %v", calls, want)
	}
	if err := walk(&Position{Curriculum: 3, Chosen: 0, Best: plan.Score{Value: 4}}).Resume(); err != nil {
		t.Fatal(err)
	}
	if want := []call{{"b", "b"}}; !slices.Equal(calls, want) {
		t.Errorf("resumed in the end, stages %v, want %v", calls, want)
	}
}

// TestWalkLeavesOut: stages too coarse for the devices are left out, with the curricula
// whose finest is, and their share of the budget is the next one's; it is an error where no
// curriculum is left.
func TestWalkLeavesOut(t *testing.T) {
	stage := func(name string) Stage { return Stage{Name: name, Units: &unit.Partition{}, Share: 1} }
	all := [][]Stage{{stage("a"), stage("b"), stage("c")}, {stage("d"), stage("e")}, {stage("f")}}
	type call struct {
		name, from string
		learnt     bool
		begin, end float64
	}
	walk := func(coarse string) (calls []call, err error) {
		run := new(rollout.Run)
		err = Walk{all, new(Position), run, func(x Leg) (Logits, error) {
			for _, c := range coarse {
				if x.Name == string(c) {
					return nil, fmt.Errorf("stage %s: %w", x.Name, rollout.ErrTooCoarse)
				}
			}
			run.Round = &plan.Score{Value: 1}
			calls = append(calls, call{x.Name, x.From.Name, x.From.Logits != nil, x.Begin, x.End})
			return Logits{{{1}}}, nil
		}}.Begin()
		return calls, err
	}
	const third = trialShare / 3
	for _, c := range []struct {
		coarse string
		want   []call
		fails  bool
	}{
		{"ae", []call{{"b", "", false, 0, 2 * third / 3}, {"c", "b", true, 2 * third / 3, third}, {"d", "", false, third, 1.5 * third}, {"f", "", false, third, 3 * third}, {"c", "c", true, 3 * third, 1}}, false},
		{"abcf", []call{{"d", "", false, 0, third}, {"e", "d", true, third, 2 * third}, {"e", "e", true, 2 * third, 1}}, false},
		{"cef", []call{{"a", "", false, 0, third / 3}, {"b", "a", true, third / 3, 2 * third / 3}, {"d", "", false, 0, third}}, true},
	} {
		got, err := walk(c.coarse)
		if errors.Is(err, rollout.ErrTooCoarse) != c.fails {
			t.Errorf("%s too coarse: %v", c.coarse, err)
		}
		same := slices.EqualFunc(got, c.want, func(a, b call) bool {
			near := func(x, y float64) bool { return x-y < 1e-9 && y-x < 1e-9 }
			return a.name == b.name && a.from == b.from && a.learnt == b.learnt && near(a.begin, b.begin) && near(a.end, b.end)
		})
		if !same {
			t.Errorf("%s too coarse: stages %+v, want %+v", c.coarse, got, c.want)
		}
	}
}
