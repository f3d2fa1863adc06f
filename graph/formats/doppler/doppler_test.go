package doppler_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/graph/formats/doppler"
	"placer/graph/formats/formatstest"
	"placer/internal/published"
)

const small = "5\n0, 1, \n0, 0, 1, \n1,2, 2, \n1000000000000,4000000000000\n20000000000,80000000000,einsummable\n10000000000,40000000000,formation\n"

func TestImportErrors(t *testing.T) {
	formatstest.Faults(t, "g.txt", doppler.Import, []formatstest.Fault{
		{"empty", "", "line 1: the file ends early"},
		{"no number", "x\n\n\n\n1,2\n", `line 1: "x", want a number of nodes`},
		{"bad list", strings.Replace(small, "0, 0, 1, ", "0, q, 1", 1), `line 3: entry 1: " q"`},
		{"lost cost", strings.TrimSuffix(small, "10000000000,40000000000,formation\n"), "5 nodes with 2 inputs need 3 lines of costs, the file has 2"},
		{"lost edge", strings.Replace(small, "1,2, 2, ", "1,2", 1), "line 4: 2 destinations for 3 sources"},
		{"far edge", strings.Replace(small, "1,2, 2, ", "1,2,3", 1), "edge 2, from 1 to 3: want nodes 0 to 2"},
		{"bad cost", strings.Replace(small, "20000000000,", "-1,", 1), `line 6: node 1: cost "-1"`},
		{"one cost", strings.Replace(small, "20000000000,80000000000,einsummable", "2", 1), `line 6: node 1: "2", want compute,communication[,type]`},
		{"cycle", strings.Replace(small, "1,2, 2, ", "1,2,0", 1), "cycle through op"},
	})
}

// TestPublishedGraphs reads all files: their nodes, and the work that the lower
// bounds are made of.
func TestPublishedGraphs(t *testing.T) {
	dir := published.Folder(t, "doppler")
	for name, want := range map[string]struct {
		ops, edges int
		work       float64 // milliseconds over four devices
	}{
		"chain_mm_112nodes": {76, 80, 1200.07}, "gdp_chain_mm_112nodes": {76, 80, 1200.07},
		"transformer_block_215nodes": {182, 234, 97.1695}, "gdp_transformer_block_215nodes": {182, 234, 97.1695},
		"8gpu_transformer_block": {302, 398, 194.306},
	} {
		path := filepath.Join(dir, name+".txt")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		x, err := doppler.Import(data, path)
		if err != nil {
			t.Error(err)
			continue
		}
		if !doppler.Sniff(data) {
			t.Errorf("%s is not recognised", name)
		}
		var work float64
		for _, s := range x.Times.Models[0].Seconds {
			work += s
		}
		if g := x.Graph; g.NumOps() != want.ops || g.NumEdges() != want.edges || math.Abs(1e3*work/4-want.work) > 1e-3 {
			t.Errorf("%s: %d ops, %d edges, %v ms of work on each of four devices", name, g.NumOps(), g.NumEdges(), 1e3*work/4)
		}
	}
}

// FuzzImport: no input panics.
func FuzzImport(f *testing.F) {
	formatstest.Fuzz(f, doppler.Sniff, doppler.Import, nil, small, "1\n\n\n\n1,1")
}

func Example() {
	x, err := doppler.Import([]byte(small), "small.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, s := range x.Times.Models[0].Seconds {
		t, _ := x.Graph.Outputs(0)
		fmt.Printf("op %d: %g ms\n", i, 1e3*s)
		if i == 0 {
			fmt.Printf("  its output is elsewhere %g ms later\n", 1e3*float64(x.Graph.Tensor(t).Bytes)/x.Times.Bandwidth)
		}
	}
	// Output:
	// op 0: 100 ms
	//   its output is elsewhere 400 ms later
	// op 1: 2 ms
	// op 2: 1 ms
}
