package dnnpart_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/plan"

	"placer/baselines/partition/contiguous"
	"placer/graph/formats/dnnpart"
	"placer/graph/formats/formatstest"
	"placer/internal/published"
	"placer/sim/throughput"
	"placer/sim/throughput/throughputtest"
)

func instance(nodes, edges string) string {
	return `{"maxSizePerFPGA": 1000.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [` + nodes + `], "edges": [` + edges + `]}`
}

const twoNodes = `{"id": 7, "name": "a", "supportedOnFpga": true, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": 0, "colorClass": 1, "size": 10.5, "layerId": 3},
{"id": 3, "supportedOnFpga": 1, "cpuLatency": 30, "fpgaLatency": 3, "isBackwardNode": true, "colorClass": 1}`

func TestImport(t *testing.T) {
	x, err := dnnpart.Import([]byte(instance(twoNodes, `{"sourceId": 7, "destId": 3, "cost": 0.25}`)), "dir/two.json")
	if err != nil {
		t.Fatal(err)
	}
	g := x.Graph
	if g.Name() != "two" || g.NumOps() != 2 || g.Op(0).Group == 0 || g.Op(0).Group != g.Op(1).Group || g.Op(1).Phase.String() != "backward" || g.Op(0).Resident != 11 {
		t.Errorf("graph %s: %+v, %+v", g.Name(), *g.Op(0), *g.Op(1))
	}
	if x.IDs[0] != 7 || x.IDs[1] != 3 || x.Times.Models[0].Seconds[1] != 3e-3 || x.Times.Models[1].Seconds[0] != 20e-3 || x.Times.Transfer[0] != 0.25e-3 {
		t.Errorf("ids %v, times %+v", x.IDs, x.Times)
	}
}

func TestImportErrors(t *testing.T) {
	node := `{"id": 1, "name": "n", "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 1, "isBackwardNode": 0}`
	formatstest.Faults(t, "x.json", dnnpart.Import, []formatstest.Fault{
		{"empty", "", "x.json: line 1, column 1: the document ends early"},
		{"cut off", `{"nodes": [`, "line 1, column 12: the document ends early"},
		{"wrong type", "{\n\"nodes\": 3}", "line 2, column 11: nodes: a JSON number, want an array"},
		{"trailing", instance(node, "") + "x", "data after the end of the document"},
		{"no limits", `{"nodes": []}`, "maxSizePerFPGA, maxFPGAs or maxCPUs is missing"},
		{"no nodes", instance("", ""), "0 nodes, want 1"},
		{"no id", instance(`{"name": "q"}`, ""), "node 0 of the list (q) has no id"},
		{"same id", instance(node+","+node, ""), "node 1 (n): an earlier node has the same id"},
		{"negative", instance(strings.Replace(node, `"fpgaLatency": 1`, `"fpgaLatency": -1`, 1), ""), "node 1 (n): latency -1 ms"},
		{"switch", instance(strings.Replace(node, `"isBackwardNode": 0`, `"isBackwardNode": 2`, 1), ""), "2, want true, false, 1 or 0"},
		{"edge to nowhere", instance(node, `{"sourceId": 1, "destId": 2, "cost": 1}`), "edge 0, from 1 to 2: no such node"},
		{"two costs", instance(twoNodes, `{"sourceId": 7, "destId": 3, "cost": 1}, {"sourceId": 7, "destId": 3, "cost": 2}`), "edge 1, from 7 to 3: cost 2, but another edge of the same source costs 1"},
		{"cycle", instance(twoNodes, `{"sourceId": 7, "destId": 3, "cost": 1}, {"sourceId": 3, "destId": 7, "cost": 1}`), "cycle through op"},
	})
}

func TestSplits(t *testing.T) {
	x, err := dnnpart.Import([]byte(instance(twoNodes, "")), "two.json")
	if err != nil {
		t.Fatal(err)
	}
	// The expert names the forward node alone; its colour takes the other along.
	s, err := x.ReadSplit([]byte(`{"fpgas": [{"nodes": [], "load": -1}, {"nodes": [7]}], "cpus": [{"nodes": []}]}`), "s.json")
	if err != nil || s.Device[0] != 1 || s.Device[1] != 1 || s.MaxLoad >= 0 {
		t.Fatalf("split %+v, error %v", s, err)
	}
	var out bytes.Buffer
	if err := x.WriteSplit(&out, s.Device, []float64{0, 5, 0}); err != nil {
		t.Fatal(err)
	}
	want := `{"maxLoad":5,"fpgas":[{"nodes":[],"load":0},{"nodes":[3,7],"load":5}],"cpus":[{"nodes":[],"load":0}]}` + "\n"
	if out.String() != want {
		t.Errorf("wrote %s, want %s", out.String(), want)
	}
	for doc, want := range map[string]string{
		`{"fpgas": [{"nodes": [7, 9]}], "cpus": []}`:                 "accelerator 0: node 9 does not exist",
		`{"fpgas": [{"nodes": [7]}, {"nodes": [7]}], "cpus": []}`:    "accelerator 1: node 7 is placed twice",
		`{"fpgas": [], "cpus": []}`:                                  "is not placed",
		`{"fpgas": [], "cpus": [{"nodes": []}, {"nodes": [7, 3]}]}`:  "uses 0 accelerators and 2 CPU cores, the instance has 2 and 1",
		`{"fpgas": [{"nodes": ["7"]}], "cpus": [{"nodes": [7, 3]}]}`: "a JSON string, want a whole number",
	} {
		if _, err := x.ReadSplit([]byte(doc), "s.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", doc, err, want)
		}
	}
}

// FuzzImport: no input panics; what is accepted has a machine or says why not.
func FuzzImport(f *testing.F) {
	machine := func(x *dnnpart.Instance) error {
		m, err := x.Times.Machine()
		if err != nil {
			return nil // says why not
		}
		_, err = x.Times.For(m)
		return err
	}
	formatstest.Fuzz(f, dnnpart.Sniff, dnnpart.Import, machine, instance(twoNodes, `{"sourceId": 7, "destId": 3, "cost": 0.25}`), `{"maxSizePerFPGA": 1e300, "maxFPGAs": -1, "maxCPUs": 0}`)
}

// TestReference reads the published splits and finds the load they claim.
func TestReference(t *testing.T) {
	dir := published.Folder(t, "dnn-partitioning")
	splits, _ := filepath.Glob(filepath.Join(dir, "reference_splits", "throughput*.json"))
	if len(splits) == 0 {
		t.Fatalf("no splits in %s", dir)
	}
	for _, path := range splits {
		name := filepath.Base(path)
		input := strings.TrimSuffix(strings.NewReplacer("throughput-inputs_", "throughput-inputs/", "Graphs_", "Graphs/").Replace(name), ".split.json") + ".json"
		x := read(t, filepath.Join(dir, input))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := x.ReadSplit(data, path)
		if err != nil {
			t.Fatal(err)
		}
		if got := 1e3 * load(t, x, s.Device); math.Abs(got-s.MaxLoad) > 1e-6*s.MaxLoad {
			t.Errorf("%s: load %v ms, the file claims %v", name, got, s.MaxLoad)
		}
	}
}

func read(t *testing.T, path string) *dnnpart.Instance {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	x, err := dnnpart.Import(data, path)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func load(t *testing.T, x *dnnpart.Instance, device []uint8) float64 {
	t.Helper()
	e, err := throughput.NewEvaluator(throughputtest.Source(t, x.Instance))
	if err != nil {
		t.Fatal(err)
	}
	return e.Evaluate(plan.Decision{Device: device}).Value
}

func Example() {
	x, err := dnnpart.Import([]byte(`{"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 0, "nodes": [
		{"id": 1, "name": "embed", "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 2, "isBackwardNode": 0, "size": 60},
		{"id": 2, "name": "dense", "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 4, "isBackwardNode": 0, "size": 60}],
		"edges": [{"sourceId": 1, "destId": 2, "cost": 0.5}]}`), "two.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := x.Times.Machine()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := throughput.FromTable(x.Graph, m, x.Times)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := contiguous.Solve(context.Background(), s, contiguous.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s on %s: a sample every %.1f ms\n", x.Graph.Name(), m.Name, 1e3*r.Seconds)
	// Output:
	// two on accelerator-x2: a sample every 4.5 ms
}
