package piper_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/graph/formats/formatstest"
	"placer/graph/formats/piper"
	"placer/internal/published"
)

const small = `{"maxDevices": 2, "maxMemoryPerDevice": 1000.0, "bandwidth": 100.0, "mbsInBatch": 4,
"nodes": [
 {"id": 5, "name": "a", "TMPCs": {"1": [{"id": "activation recomp", "timePerSample": 9}, {"id": "vanilla", "timePerSample": 2, "parameterSize": 8, "memoryUsageA": 10, "memoryUsageB": 5}]}},
 {"id": 6, "name": "b", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 3}]}}],
"edges": [{"sourceId": 5, "destId": 6, "communicationCost": 50}]}`

func TestImportErrors(t *testing.T) {
	formatstest.Faults(t, "p.json", piper.Import, []formatstest.Fault{
		{"empty", "", "the document ends early"},
		{"no machine", `{"nodes": []}`, "maxDevices, maxMemoryPerDevice or bandwidth is missing"},
		{"no nodes", `{"maxDevices": 2, "maxMemoryPerDevice": 1000.0, "bandwidth": 100.0}`, "0 nodes"},
		{"no plain", strings.Replace(small, `"vanilla", "timePerSample": 3`, `"other", "timePerSample": 3`, 1), `node 6 (b): no "vanilla" configuration`},
		{"negative", strings.Replace(small, `"timePerSample": 3`, `"timePerSample": -3`, 1), "node 6 (b): time -3 ms"},
		{"edge", strings.Replace(small, `"destId": 6`, `"destId": 7`, 1), "edge 0, from 5 to 7"},
		{"twice", strings.Replace(small, `"id": 6`, `"id": 5`, 1), "node 5 (b): an earlier node has the same id"},
	})
}

func TestPublishedGraph(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(published.Folder(t, "piper"), "resnet.json"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := piper.Import(data, "resnet.json")
	if err != nil {
		t.Fatal(err)
	}
	var all float64
	for _, s := range x.Times.Models[0].Seconds {
		all += s
	}
	if !piper.Sniff(data) || x.Graph.NumOps() != 177 || x.Graph.NumEdges() != 193 || math.Abs(1e3*all-462.381) > 1e-3 {
		t.Errorf("%d ops, %d edges, %v ms", x.Graph.NumOps(), x.Graph.NumEdges(), 1e3*all)
	}
}

// FuzzImport: no input panics.
func FuzzImport(f *testing.F) {
	formatstest.Fuzz(f, piper.Sniff, piper.Import, nil, small)
}

func Example() {
	x, err := piper.Import([]byte(small), "two.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := x.Times.Machine()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d layers, %s held by the first, %d devices of %s\n", x.Graph.Name(), x.Graph.NumOps(), x.Graph.Op(0).Resident, m.NumDevices(), m.Devices[0].Memory)
	// Output:
	// two: 2 layers, 15 B held by the first, 2 devices of 1.00 kB
}
