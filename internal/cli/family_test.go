package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenBatch: where a file's batch cannot be divided, the advice is for the framework that
// the file is of.
func TestOpenBatch(t *testing.T) {
	functions, err := os.ReadFile(functionsModel(t)) // whose one open dimension is "batch"
	if err != nil {
		t.Fatal(err)
	}
	hlo := func(name string) string { return string(read(t, "../../graph/formats/hlo/testdata", name)) }
	for name, x := range map[string]struct{ data, says string }{
		"a GraphDef":                {"node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" value { shape { dim { size: 8 } } } } }\nnode { name: \"y\" op: \"Relu\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }\n", "model.export of Keras"},
		"HLO":                       {hlo("layer_norm.hlo"), "jax2onnx"},
		"StableHLO":                 {hlo("mnist.mlir"), "jax2onnx"},
		"a trace":                   {`{"schema": "1.0.1", "pid": 1, "nodes": [{"id": 3, "name": "aten::relu", "parent": 2, "inputs": [[1, 1, 0, 4, 4, "cpu"]], "input_shapes": [[4]], "input_types": ["Tensor(float)"], "outputs": [], "output_shapes": [], "output_types": []}]}`, "placer_torch capture"},
		"ONNX of another dimension": {string(bytes.ReplaceAll(functions, []byte("batch"), []byte("rows_"))), `it leaves rows_ open; name the dimension that is the batch "batch"`},
		"ONNX without one":          {string(read(t, "../../graph/formats/onnx/testdata", "chain.onnx")), "torch.onnx.export"},
	} {
		path := filepath.Join(t.TempDir(), "model")
		if err := os.WriteFile(path, []byte(x.data), 0o600); err != nil {
			t.Fatal(err)
		}
		got := command(t, []string{"strategies", "--graph", path, "--gpus", "2", "--batch", "8", "-q"})
		if !strings.Contains(got, "its batch cannot be divided: ") || !strings.Contains(got, x.says) || !strings.HasSuffix(got, "exit 1\n") {
			t.Errorf("%s: %s", name, got)
		}
		if strings.Contains(got, "torch.onnx.export") != strings.Contains(x.says, "torch.onnx.export") {
			t.Errorf("%s: of PyTorch: %s", name, got)
		}
	}
}
