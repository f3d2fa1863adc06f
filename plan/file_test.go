package plan_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"placer/graph"
	"placer/graph/remat"
	"placer/hw"
	"placer/plan"
	"placer/units"
	"placer/workloads"
)

// testMachine has devices of the given names, each pair joined by links of its
// own.
func testMachine(t rapid.TB, names ...string) *hw.Machine {
	t.Helper()
	m := &hw.Machine{Name: "box"}
	for _, n := range names {
		m.Devices = append(m.Devices, hw.Device{Name: n, Model: "x", Kind: hw.GPU, Memory: 1e9, MemoryBandwidth: 1e9, Peak: map[string]units.FLOPsPerSecond{"f32": 1e9}, SMs: 1})
	}
	m.Routes = make([][]int32, len(names)*len(names))
	for s := range names {
		for d := range names {
			if s != d {
				m.Routes[s*len(names)+d] = []int32{int32(len(m.Links))}
				m.Links = append(m.Links, hw.Link{Name: fmt.Sprint(s, ">", d), Bandwidth: 1e9, Latency: 1e-6})
			}
		}
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return m
}

// testGraph is a chain of n ops; op i is in co-location group groups[i], if any.
func testGraph(t rapid.TB, n int, groups ...int32) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("chain")
	var in []graph.TensorID
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Kind: "Relu", Bytes: graph.Auto, Forward: graph.None}
		if i < len(groups) {
			o.Group = groups[i]
		}
		in = []graph.TensorID{b.Output(b.Op(o, in, graph.Tensor{Shape: graph.Shape{4}, Bytes: graph.Auto}), 0)}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "ops")
		g, m := testGraph(t, n), testMachine(t, "gpu:0", "gpu:1", `odd "name"`)
		p := &plan.Plan{Graph: g.Hash(), Machine: m.Name, Method: "some\nmethod", Decision: plan.Decision{Device: make([]uint8, n)}}
		for i := range p.Device {
			p.Device[i] = rapid.Uint8Range(0, 2).Draw(t, "device")
		}
		if rapid.Bool().Draw(t, "with priority") {
			rank := make([]int32, n)
			for i := range rank {
				rank[i] = int32(i)
			}
			p.Priority = rapid.Permutation(rank).Draw(t, "priority")
		}
		if rapid.Bool().Draw(t, "with fusion") {
			p.Fusion = rapid.SliceOfN(rapid.Byte(), len(p.Device), len(p.Device)).Draw(t, "fusion")
		}
		f, err := p.File(g, m)
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if err := f.Write(&buf); err != nil {
			t.Fatal(err)
		}
		again, err := plan.Read(&buf, "p.json")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(f, again); d != "" {
			t.Errorf("write and read changed the file:\n%s", d)
		}
		back, err := again.Plan(g, m)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, back); d != "" || !again.SameMachine(m) {
			t.Errorf("write and read changed the plan:\n%s", d)
		}
	})
}

// A plan goes to another machine by the names of its devices.
func TestFileOnAnotherMachine(t *testing.T) {
	g := testGraph(t, 3)
	f, err := (&plan.Plan{Decision: plan.Decision{Device: []uint8{0, 1, 1}}}).File(g, testMachine(t, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	other := testMachine(t, "b", "c", "a")
	p, err := f.Plan(g, other)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]uint8{2, 0, 0}, p.Device); d != "" || f.SameMachine(other) {
		t.Errorf("devices:\n%s", d)
	}
	_, err = f.Plan(g, testMachine(t, "a", "c"))
	if want := `op 1 (op1) is on device "b", which machine box lacks`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	_, err = f.Plan(testGraph(t, 4), other)
	if err == nil || !strings.Contains(err.Error(), `plan is for another graph "chain" (`) || !strings.Contains(err.Error(), "--train") {
		t.Errorf("error %v, want that the plan is for another graph", err)
	}
}

func TestReadErrors(t *testing.T) {
	doc := func(rest string) string {
		return `{"format": "placer plan 1", "graph": {"name": "g", "hash": "aa"}, "machine": {"name": "m", "hash": "bb"},
"devices": ["x", "y"], ` + rest + `}`
	}
	for _, c := range []struct{ name, doc, want string }{
		{"empty", "", "p.json: line 1, column 1: the document ends early"},
		{"graph file", `{"format": "placer graph 1", "ops": []}`, `format is "placer graph 1", want "placer plan 1"`},
		{"no devices of ops", doc(`"method": "a"`), `key "device" is missing`},
		{"no ops", doc(`"device": []`), "plan places no op"},
		{"unknown key", doc(`"device": [0], "prority": []`), `p.json: line 2, column 39: unknown key "prority"`},
		{"device beyond the list", doc(`"device": [0, 2]`), "op 1 is on device 2, the file lists 2 devices"},
		{"device beyond all", doc(`"device": [0, 64]`), "p.json: device of op 1: line 2, column 38: 64 is out of range, want 0 to 63"},
		{"fraction", doc(`"device": [0.5]`), "0.5, want a whole number"},
		{"short priority", doc(`"device": [0, 1], "priority": [0]`), "plan has 1 priority for 2 ops"},
		{"empty priority", doc(`"device": [0, 1], "priority": []`), "plan has 0 priorities for 2 ops"},
		{"repeated priority", doc(`"device": [0, 1], "priority": [1, 1]`), "op 1: priority 1 is out of range or taken"},
		{"large priority", doc(`"device": [0, 1], "priority": [0, 2]`), "op 1: priority 2 is out of range or taken"},
		{"repeated device", strings.Replace(doc(`"device": [0]`), `"y"`, `"x"`, 1), `device 1: name "x" is empty or taken`},
		{"no hash", strings.Replace(doc(`"device": [0]`), `"aa"`, `""`, 1), "hash is empty"},
		{"short fusion", doc(`"device": [0, 1], "fusion": [1]`), "plan has 1 fusion priority for 2 ops"},
		{"large fusion", doc(`"device": [0, 1], "fusion": [0, 256]`), "fusion of op 1: line 2, column 56: 256 is out of range, want 0 to 255"},
		{"trailing", doc(`"device": [0]`) + "{}", "data after the end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := plan.Read(strings.NewReader(c.doc), "p.json")
			if err == nil || f != nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "p.json: ") {
				t.Errorf("error is not one line that starts with the file's name: %s", s)
			}
		})
	}
	if _, err := plan.ReadFile("absent.json"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}

func TestWriteRefusesBrokenPlan(t *testing.T) {
	f := &plan.File{GraphHash: "a", MachineHash: "b", Devices: []string{"x"}, Decision: plan.Decision{Device: []uint8{1}}}
	var buf bytes.Buffer
	if err := f.Write(&buf); err == nil || buf.Len() != 0 {
		t.Errorf("wrote %q, error %v; want nothing and an error", buf.String(), err)
	}
}

// FuzzPlan: no input panics; what is accepted survives being written.
func FuzzPlan(f *testing.F) {
	f.Add(`{"format": "placer plan 1", "graph": {"name": "g", "hash": "aa"}, "machine": {"name": "m", "hash": "bb"}, "devices": ["x", "y"], "device": [0, 1, 1], "priority": [2, 0, 1], "fusion": [0, 255, 1], "method": "m"}`)
	f.Add(`{"format": "placer plan 1", "graph": {"name": "g", "hash": "aa"}, "machine": {"name": "m", "hash": "bb"}, "devices": [], "device": [63]}`)
	f.Add(`{"device": [0`)
	f.Fuzz(func(t *testing.T, doc string) {
		p, err := plan.Read(strings.NewReader(doc), "p.json")
		if err != nil {
			if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "p.json: ") {
				t.Errorf("error is not one located line: %q", s)
			}
			return
		}
		var buf bytes.Buffer
		if err := p.Write(&buf); err != nil {
			t.Fatal(err)
		}
		again, err := plan.Read(&buf, "p.json")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, again); d != "" {
			t.Errorf("write and read changed the file:\n%s", d)
		}
	})
}

// A plan for a graph with changes says so in its file, and is of use with the graph that
// was given.
func TestChangedFile(t *testing.T) {
	g, err := workloads.Build("llama:layers=3,hidden=256,heads=4,kv_heads=4,ffn=512,seq=64,vocab=1000")
	if err != nil {
		t.Fatal(err)
	}
	m := testMachine(t, "gpu:0", "cpu:0")
	c := remat.Changes{Recompute: []int32{1}, Offload: []int32{2}}
	d, err := remat.Find(g).Derive(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Graph: d.Graph.Hash(), Machine: m.Name, Method: "fit", Decision: plan.Decision{Device: d.Place(make([]uint8, g.NumOps()), 1)}}
	f, err := p.ChangedFile(g, c, d.Graph, m)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := f.Write(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `{"format": "placer plan 2"`) {
		t.Error("not in the format of plans with changes")
	}
	back, err := plan.Read(bytes.NewReader(text.Bytes()), "p.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, back); diff != "" {
		t.Error(diff)
	}
	changed, err := back.Graph(g)
	if err != nil || changed.Hash() != d.Graph.Hash() {
		t.Fatalf("graph %v, error %v", changed, err)
	}
	if q, err := back.Plan(changed, m); err != nil || !slices.Equal(q.Device, p.Device) {
		t.Errorf("plan %v, error %v", q, err)
	}
	if _, err := back.Plan(g, m); err == nil || !strings.Contains(err.Error(), "recompute or offload") {
		t.Errorf("the plan was taken for the graph itself: %v", err)
	}
	if _, err := back.Graph(testGraph(t, 3)); err == nil || !strings.Contains(err.Error(), "plan is for") {
		t.Errorf("the plan was taken for another graph: %v", err)
	}
	for old, c := range map[string]struct{ is, want string }{
		`"placer plan 2"`:    {`"placer plan 1"`, "changes go with format"},
		`"recompute": [1]`:   {`"recompute": [0]`, "out of range"},
		`"offload": [2]`:     {`"offload": [1]`, "twice"},
		`"recompute": [1], `: {`"recompute": [], `, "gave"},
		f.ChangedHash:        {"00" + f.ChangedHash[2:], "gave"},
	} {
		x, err := plan.Read(strings.NewReader(strings.Replace(text.String(), old, c.is, 1)), "p.json")
		if err == nil {
			_, err = x.Graph(g)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: error %v, want %q", c.is, old, err, c.want)
		}
	}
}
