package judge_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/judge"
	"placer/graph"
	"placer/hw"
	"placer/plan"
)

func problem(t *testing.T, k int) (*plan.Problem, *conformance.Case) {
	t.Helper()
	c := conformance.Cases()[k]
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	return p, &c
}

func TestJudgeKeepsTheBest(t *testing.T) {
	p, _ := problem(t, 3)
	var told []plan.Progress
	p.Report = func(r plan.Progress) { told = append(told, r) }
	j := judge.New(context.Background(), p, "m")
	device := make([]uint8, p.Graph.NumOps())
	best := j.Try(device)
	kept := slices.Clone(device)
	for k := range 40 {
		device[k%len(device)] = uint8((k + 1) % p.Machine.NumDevices()) // the judge must not keep this slice
		if s := j.Try(device); s.Better(best) {
			best, kept = s, slices.Clone(device)
		}
	}
	out, err := j.Outcome()
	if err != nil {
		t.Fatal(err)
	}
	if out.Score != best || !slices.Equal(out.Device, kept) || out.Evaluations != 41 {
		t.Errorf("outcome %v after %d, want %v after 41", out.Score, out.Evaluations, best)
	}
	if len(told) < 3 || told[0].Device == nil {
		t.Errorf("progress %v", told)
	}
}

func TestJudgeNoticesTheEnd(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	now := 0.0
	for _, c := range []struct {
		name   string
		ctx    context.Context
		budget plan.Budget
		tries  int
	}{
		{"evaluations", context.Background(), plan.Budget{Evaluations: 3}, 3},
		{"seconds", context.Background(), plan.Budget{Seconds: 2.5}, 3},
		{"both", context.Background(), plan.Budget{Evaluations: 2, Seconds: 2.5}, 2},
		{"context", ended, plan.Budget{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := problem(t, 2)
			now = 0
			p.Clock = func() float64 { return now }
			p.Budget = c.budget
			j := judge.New(c.ctx, p, "m")
			n := 0
			for ; !j.Done() && n < 100; n++ {
				j.Try(make([]uint8, p.Graph.NumOps()))
				now++
			}
			if n != c.tries {
				t.Errorf("done after %d, want %d", n, c.tries)
			}
		})
	}
	p, _ := problem(t, 2)
	if _, err := judge.New(ended, p, "m").Outcome(); err == nil {
		t.Error("an outcome without a candidate")
	}
}

func TestTogether(t *testing.T) {
	p, c := problem(t, 4) // groups
	device := make([]uint8, p.Graph.NumOps())
	for i := range device {
		device[i] = uint8(i % p.Machine.NumDevices())
	}
	judge.Together(p.Graph, device, c.Costs.Micros)
	if err := (&plan.Plan{Device: device}).Check(p.Graph, p.Machine); err != nil {
		t.Error(err)
	}
	for i := range device {
		if p.Graph.Op(graph.OpID(i)).Group == 0 && device[i] != uint8(i%p.Machine.NumDevices()) {
			t.Errorf("op %d belongs to no group but moved", i)
		}
	}
}

func ExampleAccelerators() {
	m, err := hw.Take("p100", 2, true)
	if err != nil {
		panic(err)
	}
	for _, d := range judge.Accelerators(m) {
		fmt.Println(m.Devices[d].Name)
	}
	// Output:
	// gpu:0
	// gpu:1
}
