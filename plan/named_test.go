package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"placer/graph"
	"placer/plan"
)

// moduleGraph is a chain of n ops of two modules.
func moduleGraph(t *testing.T, n int) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("captured")
	var in []graph.TensorID
	for i := range n {
		o := graph.Op{Name: fmt.Sprintf("h.%d/mm \"%d\"", i%2, i), Module: fmt.Sprintf("h.%d", i%2), Kind: "Relu", Bytes: graph.Auto, Forward: graph.None}
		in = []graph.TensorID{b.Output(b.Op(o, in, graph.Tensor{Shape: graph.Shape{4}, Bytes: graph.Auto}), 0)}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Plans of graphs with modules say of each op by name what the arrays say; those of
// other graphs are as they were.
func TestNamedOps(t *testing.T) {
	m := testMachine(t, "cpu:0", "cpu:1")
	g := moduleGraph(t, 5)
	for _, priority := range [][]int32{nil, {4, 2, 0, 1, 3}} {
		p := &plan.Plan{Graph: g.Hash(), Machine: m.Name, Method: "m", Decision: plan.Decision{Device: []uint8{0, 1, 1, 0, 1}, Priority: priority}}
		f, err := p.File(g, m)
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if err := f.Write(&buf); err != nil {
			t.Fatal(err)
		}
		var doc struct{ Ops map[string][]any }
		if err := json.Unmarshal(buf.Bytes(), &doc); err != nil || len(doc.Ops) != 5 {
			t.Fatalf("%v: %d ops in\n%s", err, len(doc.Ops), buf.String())
		}
		for i := range 5 {
			want := fmt.Sprint([]any{m.Devices[p.Device[i]].Name})
			if priority != nil {
				want = fmt.Sprint([]any{m.Devices[p.Device[i]].Name, priority[i]})
			}
			if got := fmt.Sprint(doc.Ops[g.Op(graph.OpID(i)).Name]); got != want {
				t.Errorf("op %d: %s, want %s", i, got, want)
			}
		}
		again, err := plan.Read(bytes.NewReader(buf.Bytes()), "p.json")
		if err != nil {
			t.Fatal(err)
		}
		var same bytes.Buffer
		if err := again.Write(&same); err != nil || !bytes.Equal(same.Bytes(), buf.Bytes()) {
			t.Errorf("%v: written again it is\n%s", err, same.String())
		}
		if _, err := again.Plan(g, m); err != nil {
			t.Error(err)
		}
		// a plan without names, as earlier ones are, is the same plan
		head, _, _ := strings.Cut(buf.String(), ",\n\"ops\": {")
		old, err := plan.Read(strings.NewReader(head+"}\n"), "old.json")
		if err != nil {
			t.Fatal(err)
		}
		if q, err := old.Plan(g, m); err != nil || fmt.Sprint(q.Decision) != fmt.Sprint(p.Decision) {
			t.Errorf("%v: without names %v, want %v", err, q, p.Decision)
		}
	}
	f, err := (&plan.Plan{Decision: plan.Decision{Device: []uint8{0, 1}}}).File(testGraph(t, 2), m)
	if err != nil || f.Names != nil {
		t.Errorf("%v: a graph without modules has names %q", err, f.Names)
	}
}

// What the names and the arrays say apart, or other names than the graph's, is an error.
func TestNamedOpsRefused(t *testing.T) {
	doc := func(ops string) string {
		return `{"format": "placer plan 1", "graph": {"name": "g", "hash": "aa"}, "machine": {"name": "m", "hash": "bb"}, "method": "", "devices": ["x", "y"], "device": [0, 1], "priority": [1, 0], "ops": ` + ops + `}`
	}
	if _, err := plan.Read(strings.NewReader(doc(`{"a": ["x", 1], "b": ["y", 0]}`)), "p.json"); err != nil {
		t.Fatal(err)
	}
	for ops, want := range map[string]string{
		`{"a": ["x", 1], "b": ["x", 0]}`:   `op 1: "b" is on x with priority 0 by its name, on y with 0 in the arrays`,
		`{"a": ["x", 1], "b": ["y", 1]}`:   `on y with priority 1 by its name`,
		`{"a": ["x", 1], "b": ["y"]}`:      `priority -1 by its name`,
		`{"a": ["x", 1]}`:                  `plan names 1 op of 2`,
		`{"a": ["x", 1], "a": ["y", 0]}`:   `name "a" is empty or taken`,
		`{"a": ["x", 1, 2], "b": ["y",0]}`: `want [device, priority] or [device]`,
		`{"a": [], "b": ["y",0]}`:          `want [device, priority] or [device]`,
		`[]`:                               `want an object`,
	} {
		_, err := plan.Read(strings.NewReader(doc(ops)), "p.json")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", ops, err, want)
		}
	}
	m, g := testMachine(t, "cpu:0", "cpu:1"), moduleGraph(t, 2)
	f, err := (&plan.Plan{Graph: g.Hash(), Decision: plan.Decision{Device: []uint8{0, 1}}}).File(g, m)
	if err != nil {
		t.Fatal(err)
	}
	f.Names[1] = "other"
	if _, err := f.Plan(g, m); err == nil || !strings.Contains(err.Error(), `op 1 of the plan is "other"`) {
		t.Errorf("error %v", err)
	}
}
