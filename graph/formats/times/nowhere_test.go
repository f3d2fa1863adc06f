package times_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/times"
)

// An op that has no time on any device of a machine cannot be placed on it.
func TestNowhere(t *testing.T) {
	b := graph.NewBuilder("g")
	for _, name := range []string{"a", "b"} {
		b.Op(graph.Op{Name: name, Kind: "NoOp", Forward: graph.None}, nil)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	inf := math.Inf(1)
	table := &times.Table{GraphHash: g.Hash(), Source: "s", Bandwidth: 1, Models: []times.Model{
		{Name: "x", Count: 2, Memory: 1, Seconds: []float64{1, inf}},
		{Name: "host", CPU: true, Count: 1, Memory: 1, Seconds: []float64{inf, 1}},
	}}
	if err := table.Check(g); err != nil {
		t.Fatal(err)
	}
	m, err := table.Machine()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.For(m); err != nil {
		t.Errorf("every op has a device: %v", err)
	}
	for _, issue := range []float64{-1, inf, math.NaN()} {
		if table.Issue = issue; table.Check(g) == nil {
			t.Errorf("ops issued in %v s are taken", issue)
		}
	}
	table.Issue = 0
	table.Models[1].Seconds[1] = inf
	if _, err := table.For(m); !errors.Is(err, times.ErrNowhere) || !strings.Contains(err.Error(), "op 1: ") {
		t.Errorf("error %v, want that op 1 can run nowhere", err)
	}
}

func TestReadIsStrict(t *testing.T) {
	_, err := times.Read([]byte(`{"format": "placer times 1", "seconds": []}`), "t.json")
	if err == nil || !strings.Contains(err.Error(), "t.json: ") || !strings.Contains(err.Error(), `unknown field "seconds"`) {
		t.Errorf("error %v, want the unknown key", err)
	}
}
