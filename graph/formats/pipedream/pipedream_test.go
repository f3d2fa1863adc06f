package pipedream_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/dnnpart"
	"placer/graph/formats/formatstest"
	"placer/graph/formats/pipedream"
	"placer/internal/published"
)

const small = `node1 -- Input0 -- forward_compute_time=636.000, backward_compute_time=0.000, activation_size=64.0, parameter_size=0.000
	node1 -- node2
node2 -- Conv2d(3, 64, kernel_size=(3, 3)) -- forward_compute_time=2.000, backward_compute_time=4.000, activation_size=[100.0; 28.0], parameter_size=400.000
node3 -- ReLU(inplace) -- forward_compute_time=0.500, backward_compute_time=0.250, activation_size=128.0, parameter_size=0.000
	node2 -- node3
`

func TestImport(t *testing.T) {
	x, err := pipedream.Import([]byte(small), "conv.graph.txt")
	if err != nil {
		t.Fatal(err)
	}
	g := x.Graph
	if g.Name() != "conv" || g.NumOps() != 6 {
		t.Fatalf("graph %s of %d ops", g.Name(), g.NumOps())
	}
	forward, backward := 0.0, 0.0
	for i := range g.NumOps() {
		if s := x.Times.Models[0].Seconds[i]; x.Backward[i] {
			backward += s
		} else {
			forward += s
		}
		if o := g.Op(graph.OpID(i)); o.Name == "node2" && (o.Resident != 400 || g.Tensor(1).Bytes != 128) {
			t.Errorf("%+v", *o)
		}
	}
	if math.Abs(forward-2.5e-3) > 1e-12 || math.Abs(backward-4.25e-3) > 1e-12 {
		t.Errorf("forward %v s, backward %v s: loading data must not count", forward, backward)
	}
}

func TestImportErrors(t *testing.T) {
	formatstest.Faults(t, "p.txt", pipedream.Import, []formatstest.Fault{
		{"empty", "", "the profile has no layer"},
		{"no fields", "node1 - Input\n", "line 1: 1 fields between dashes"},
		{"bad figure", strings.Replace(small, "=2.000", "=fast", 1), `line 3: layer node2: forward_compute_time is "fast"`},
		{"unknown figure", strings.Replace(small, "parameter_size=400", "weights=400", 1), `line 3: layer node2: unknown figure "weights"`},
		{"twice", small + "node3 -- x -- forward_compute_time=1\n", "line 6: layer node3 occurs twice"},
		{"edge", small + "\tnode3 -- node4\n", `line 6: edge from "node3" to "node4": no such layer`},
		{"half an edge", small + "\tnode3\n", "line 6: \"\\tnode3\", want an edge"},
		{"stage", "a -- b -- forward_compute_time=1 -- stage=2\n", `line 1: layer a: "stage=2", want stage_id=NUMBER`},
		{"cycle", small + "\tnode3 -- node2\n", "cycle through op"},
	})
}

func TestWriteKeepsTheProfile(t *testing.T) {
	x, err := pipedream.Import([]byte(small), "p.txt")
	if err != nil {
		t.Fatal(err)
	}
	device := make([]uint8, x.Graph.NumOps())
	for i, l := range x.Layer {
		device[i] = uint8(l / 2)
	}
	var out bytes.Buffer
	if err := x.Write(&out, device); err != nil {
		t.Fatal(err)
	}
	y, err := pipedream.Import(out.Bytes(), "p.txt")
	if err != nil {
		t.Fatal(err)
	}
	stage, n := y.Stages()
	if n != 2 || y.Graph.Hash() != x.Graph.Hash() {
		t.Errorf("%d stages, graphs %s and %s", n, x.Graph.Hash(), y.Graph.Hash())
	}
	for i := range stage {
		if stage[i] != device[i] {
			t.Errorf("op %d: stage %d, wrote %d", i, stage[i], device[i])
		}
	}
}

// TestPublishedProfiles reads all profiles; ResNet-50's is the same network as
// the layer graph of the partitioning instances, node for node.
func TestPublishedProfiles(t *testing.T) {
	dir := published.Folder(t, "pipedream-profiles")
	paths, _ := filepath.Glob(filepath.Join(dir, "*.graph.txt"))
	more, _ := filepath.Glob(filepath.Join(dir, "test_graphs", "*.txt"))
	if len(paths) == 0 {
		t.Fatalf("no profiles in %s", dir)
	}
	for _, path := range append(paths, more...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		x, err := pipedream.Import(data, path)
		switch {
		case strings.HasPrefix(filepath.Base(path), "test"):
			continue // has cycles or not; it has no times
		case err != nil:
			t.Error(err)
			continue
		case !pipedream.Sniff(data):
			t.Errorf("%s is not recognised", path)
		}
		if _, n := x.Stages(); (n > 0) != strings.Contains(path, "partitioned") {
			t.Errorf("%s: %d stages", path, n)
		}
		if filepath.Base(path) != "resnet50.graph.txt" {
			continue
		}
		other, err := os.ReadFile(filepath.Join(published.Folder(t, "dnn-partitioning"), "throughput-inputs/LayerGraphs/resnet50_training.json"))
		if err != nil {
			t.Fatal(err)
		}
		y, err := dnnpart.Import(other, "resnet50_training.json")
		if err != nil {
			t.Fatal(err)
		}
		if x.Graph.NumOps() != y.Graph.NumOps() {
			t.Errorf("resnet50: %d ops here, %d there", x.Graph.NumOps(), y.Graph.NumOps())
		}
		want := map[string]float64{}
		for i, s := range y.Times.Models[0].Seconds {
			want[y.Graph.Op(graph.OpID(i)).Name] = s
		}
		for i, s := range x.Times.Models[0].Seconds {
			name := strings.Replace(x.Graph.Op(graph.OpID(i)).Name, ":backward", "grad", 1)
			if w, ok := want[name]; name != "node1" && (!ok || math.Abs(w-s) > 1e-12) { // there, loading data counts
				t.Errorf("resnet50: %s takes %v s here, %v s there", name, s, w)
			}
		}
	}
}

// FuzzImport: no input panics; what is accepted can be written and read again.
func FuzzImport(f *testing.F) {
	write := func(x *pipedream.Instance) error { return x.Write(&bytes.Buffer{}, make([]uint8, x.Graph.NumOps())) }
	formatstest.Fuzz(f, pipedream.Sniff, pipedream.Import, write, small)
}

func Example() {
	x, err := pipedream.Import([]byte(small), "conv.graph.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, s := range x.Times.Models[0].Seconds {
		fmt.Printf("%s: %g ms\n", x.Graph.Op(graph.OpID(i)).Name, 1e3*s)
	}
	// Output:
	// node1: 0 ms
	// node2: 2 ms
	// node3: 0.5 ms
	// node3:backward: 0.25 ms
	// node2:backward: 4 ms
	// node1:backward: 0 ms
}
