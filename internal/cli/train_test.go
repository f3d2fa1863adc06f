package cli

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"placer/graph"
)

// quietConsole is a console that nobody reads.
func quietConsole() *console { return newConsole(nil, io.Discard, io.Discard) }

// modelFile is the path of an ONNX model of the tests.
func modelFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../graph/formats/onnx/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// What a search was asked for stands on the command line that it ends with, and in its
// settings.
func TestLineOfMasterWeights(t *testing.T) {
	f := graphFlags{Graph: "m.onnx", Train: "adam", MasterWeights: true}
	if got, want := f.line(), "--graph m.onnx --train adam --master-weights"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := printed(t, "--graph", functionsModel(t), "--train", "adam", "--master-weights", "--dim", "batch=4", "--gpus", "2"); !strings.Contains(got, `"master_weights": true`) {
		t.Errorf("the settings lack it:\n%s", got)
	}
}

// A step that is derived from an ONNX file asks no tensor of the passes for its shape: every
// dimension is known. Strategies build it at several batches, of which one sample alone
// would broadcast less, and its ops are the same at each.
func TestShapesOfImportedSteps(t *testing.T) {
	shapes := func(g *graph.Graph) (n int) {
		for i := range graph.OpID(g.NumOps()) {
			if o := g.Op(i); o.Phase == graph.Backward && o.Kind == "Shape" {
				n++
			}
		}
		return n
	}
	c := quietConsole()
	open := graphFlags{Graph: modelFile(t, "gpt2_one_layer.onnx"), Train: "adam", Dims: map[string]int64{"batch_size": 8, "seq_len": 8}}
	for _, f := range []graphFlags{{Graph: modelFile(t, "light_resnet50.onnx"), Train: "momentum"}, open} {
		l, err := c.loadGraph(&f)
		if err != nil {
			t.Fatal(err)
		}
		if n := shapes(l.Graph); n != 0 {
			t.Errorf("%s: %d Shape ops", f.Graph, n)
		}
	}
	family, _, err := c.family(&open, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	one, err := family(1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := family(8)
	if err != nil {
		t.Fatal(err)
	}
	if one.NumOps() != all.NumOps() || shapes(all) == 0 {
		t.Errorf("strategies: %d ops of one sample, %d of eight, with %d Shape ops", one.NumOps(), all.NumOps(), shapes(all))
	}
}
