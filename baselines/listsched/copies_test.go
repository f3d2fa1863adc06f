package listsched

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
)

// cores is a machine of two cores whose copies take latency, by the link or by the
// sender.
func cores(t *testing.T, latency, ends string) *hw.Machine {
	t.Helper()
	m, err := hw.Read(strings.NewReader(`{"format": "placer machine 1", "name": "cores",
"models": {"core": {"kind": "cpu", "capacity": "4 GB", "memory_bandwidth": "1 GB/s", "peak": {"f32": "1 GFLOP/s"}, "launch": "1 us", "sms": 1, "l2": "1 MB", "source": "a test"}},
"devices": [{"name": "cpu:[0-1]", "model": "core"}],
"cables": [{"ends": ["cpu:0", "cpu:1"], "bandwidth": "1 GB/s", "latency": "` + latency + `"` + ends + `, "source": "a test"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// comb is a chain whose every op is read by a light op of its own.
func comb(t *testing.T, n int) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("comb")
	var in []graph.TensorID
	out := graph.Tensor{Shape: graph.Shape{1}, Bytes: graph.Auto}
	for k := range n {
		x := b.Op(graph.Op{Name: fmt.Sprint("chain", k), Kind: "Relu", FLOPs: 20e3, Forward: graph.None}, in, out)
		in = []graph.TensorID{b.Output(x, 0)}
		b.Op(graph.Op{Name: fmt.Sprint("tooth", k), Kind: "Relu", FLOPs: 8e3, Forward: graph.None}, in, out)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestCopiesOccupyTheSender: a copy that links overlap is worth it where one that
// holds the sender up is not, and list schedulers know.
func TestCopiesOccupyTheSender(t *testing.T) {
	for _, latency := range []string{"60 us", "1 us"} {
		for _, method := range []plan.Placer{HEFT(), ETF()} {
			for _, ends := range []string{"", `, "occupies": "sender", "delivery": "1 us", "receive": "1 us"`} {
				p, err := problem.New(problem.Source{Graph: comb(t, 12)}, cores(t, latency, ends), problem.Options{})
				if err != nil {
					t.Fatal(err)
				}
				q := plan.Problem{Graph: p.Graph, Machine: p.Machine, Units: p.Units, Decision: plan.Decision{Priority: p.Priority}, Evaluator: p.Evaluator.Clone(), Budget: plan.Budget{Evaluations: 10}}
				out, err := method.Place(context.Background(), &q)
				if err != nil {
					t.Fatal(err)
				}
				split := slices.Max(out.Device) != slices.Min(out.Device)
				if want := ends == "" || latency == "1 us"; split != want {
					t.Errorf("latency %s, ends %q: devices %v", latency, ends, out.Device)
				}
				single := p.Evaluator.Evaluate(plan.Decision{Device: make([]uint8, p.Graph.NumOps()), Priority: p.Priority})
				if out.Score.Value > single.Value*(1+1e-9) {
					t.Errorf("latency %s, ends %q: %v, on one device %v", latency, ends, out.Score.Value, single.Value)
				}
			}
		}
	}
}

// TestCopiesOnTheTimeline: one copy serves all readers, and the first of each device
// takes its receipt longer.
func TestCopiesOnTheTimeline(t *testing.T) {
	p, err := problem.New(problem.Source{Graph: comb(t, 3)}, cores(t, "10 us", `, "occupies": "sender", "delivery": "1 us", "receive": "2 us"`), problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newGapFilling(&plan.Problem{Graph: p.Graph, Machine: p.Machine, Units: p.Units, Evaluator: p.Evaluator.Clone()})
	s.place(0, 0, true) // chain0
	x := s.seconds[0][0]
	copied := float64(p.Machine.TransferSeconds(0, 1, 4))
	s.place(2, 1, true) // chain1 reads it there, first
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s %v, want %v", what, got, want)
		}
	}
	near("the sender is free", s.devices[0].Free(), x+copied)
	near("chain1 ends", s.finish[2], x+copied+1e-6+2e-6+s.seconds[1][2])
	s.place(1, 1, false) // tooth0 reads it there too
	near("the sender is free", s.devices[0].Free(), x+copied)
	near("tooth0 ends", s.finish[1], s.finish[2]+s.seconds[1][1])
}
