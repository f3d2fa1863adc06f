package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

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
