package formats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/graph/formats"
	"placer/graph/formats/formatstest"
	"placer/graph/formats/onnx"
)

// Every form is recognised by content, whatever the file is called, and read.
func TestForms(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.txt")
	if err := os.WriteFile(own, []byte(" \n{\"ops\": [{\"name\": \"a\", \"kind\": \"Add\", \"out\": [{\"bytes\": 4}]}], \"format\": \"placer graph 1\"}"), 0o644); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for path, want := range map[string]string{
		"costgraph/testdata/readme_example.pbtxt": "CostGraphDef",
		own:                                     "placer's JSON",
		"dnnpart/testdata/bert24_training.json": "dnn-partitioning",
		"../../baselines/partition/pipedreamplan/testdata/vgg16.graph.txt": "PipeDream",
		"doppler/testdata/chain_mm_112nodes.txt":                           "DOPPLER",
		"onnx/testdata/light_squeezenet.onnx":                              "ONNX",
		"hlo/testdata/layer_norm.hlo":                                      "HLO",
		"hlo/testdata/mnist.mlir":                                          "StableHLO",
	} {
		f, err := formats.ReadFile(path, onnx.Default())
		if err != nil {
			t.Error(err)
			continue
		}
		seen[f.Form.Name] = true
		if f.Form.Name != want || f.Graph == nil || f.Form.Machine != (f.Times != nil) || (f.ONNX != nil) != (want == "ONNX") || (f.Seconds != nil) != (want == "CostGraphDef") {
			t.Errorf("%s: %+v, want %s", path, f, want)
		}
		if form, err := formats.SniffFile(path); err != nil || form.Name != want {
			t.Errorf("%s looks like %s, %v", path, form.Name, err)
		}
	}
	piper := `{"maxDevices": 2, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "nodes": [{"id": 1, "name": "a", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 2}]}}], "edges": []}`
	if f, err := formats.Read([]byte(piper), "net", onnx.Default()); err != nil || f.Form.Name != "Piper" || f.Times == nil {
		t.Errorf("Piper: %v", err)
	}
	seen["Piper"] = true
	config := `{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 8}`
	if f, err := formats.Read([]byte(config), "net", onnx.Default()); err != nil || f.Form.Name != "config.json" {
		t.Errorf("config.json: %v", err)
	}
	header := `{"model.embed_tokens.weight": {"dtype": "F16", "shape": [8, 8], "data_offsets": [0, 128]}}`
	weights := append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...)
	for data, form := range map[string]string{"GGUF\x03\x00\x00\x00": "GGUF", string(weights): "safetensors"} { // read in package decoder
		if f, err := formats.Sniff([]byte(data), "net"); err != nil || f.Name != form {
			t.Errorf("%s: %v", form, err)
		}
		seen[form] = true
	}
	seen["config.json"] = true
	for _, data := range []string{"\n\x10\n\x01x\x12\x0bPlaceholder", "node {\n  name: \"x\"\n  op: \"Placeholder\"\n}\n"} {
		if f, err := formats.Read([]byte(data), "net", onnx.Default()); err != nil || f.Form.Name != "GraphDef" || f.Counts.Nodes != 1 {
			t.Errorf("GraphDef: %v", err)
		}
	}
	seen["GraphDef"] = true
	for form, data := range map[string]string{
		"execution trace": `{"schema": "1.0.1", "pid": 1, "nodes": [{"id": 3, "name": "aten::relu", "parent": 2, "inputs": [[1, 1, 0, 4, 4, "cpu"]], "input_shapes": [[4]], "input_types": ["Tensor(float)"], "outputs": [], "output_shapes": [], "output_types": []}]}`,
		"Kineto trace":    `{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}`,
	} {
		if f, err := formats.Read([]byte(data), "net", onnx.Default()); err != nil || f.Form.Name != form || f.Counts.Nodes != 1 {
			t.Errorf("%s: %v", form, err)
		}
		seen[form] = true
	}
	for _, form := range formats.Forms() {
		if !seen[form.Name] || form.Doc == "" {
			t.Errorf("%s is not tested or not described", form.Name)
		}
	}
}

func TestOthersAreNamed(t *testing.T) {
	for data, want := range map[string]string{
		"":                      "f: the file is empty",
		"\x1f\x8b\x08":          "f: unexpected EOF",
		"PK\x03\x04":            "a checkpoint holds weights only: export the model to ONNX, or capture it with the Python package (docs/pytorch.md), whose graph is graph.json, beside program.pt",
		"\x89PNG\r\n\x1a\n0000": "a PNG image",
		"version https://git-lfs.github.com/spec/v1\n":      "a Git LFS pointer (not the model itself)",
		"GGUF\x03\x00\x00\x00":                              "f: GGUF: the header is cut off",
		"\x3c\x02\x00\x00\x00\x00\x00\x00{\"__metadata__\"": "f: safetensors: a header of 572 bytes in a file of 23",
		"\x80\x02}q\x00":                                    "a checkpoint holds weights only",
		"\x1c\x00\x00\x00TFL3\x14\x00":                      "a TensorFlow Lite model",
		"digraph G {\n}":                                    "a DOT graph",
		"once upon a time":                                  "f: is text in none of the forms that are read: CostGraphDef, placer's JSON, dnn-partitioning, Piper, PipeDream, DOPPLER, HLO, StableHLO, GraphDef, GGUF, safetensors, config.json, execution trace, Kineto trace; ONNX files are binary",
		"{\"maxlod\": 3}":                                   `f: line 1, column 2: unknown key "maxlod"`,
		"\x08\x07\x12\x04test":                              "f: is no ONNX model: it has no graph",
		"ML\xefR\x0dStableHLO":                              "looks like MLIR's bytecode", "{ lambda ; a:f32[2]. let": "looks like a jaxpr",
		"\"builtin.module\"() ({\n  \"func.func\"() <{sym_name = \"main\"}> ({\n  }) : () -> ()\n}) : () -> ()\n": "is in MLIR's generic form",
	} {
		f, err := formats.Read([]byte(data), "f", onnx.Default())
		if f != nil || !formatstest.Located(err, "f") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", data, err, want)
		}
	}
}

func TestPythonIsNamed(t *testing.T) {
	_, err := formats.Read([]byte("import torch\n"), "mine.py", onnx.Default())
	if !formatstest.Located(err, "mine.py") || !strings.Contains(err.Error(), "placer_torch capture") {
		t.Errorf("a Python program: %v", err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.onnx")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: ": is a folder", filepath.Join(dir, "absent.onnx"): "no such file", empty: "empty.onnx: the file is empty",
		"onnx/testdata/nodecases.tar.gz": "looks like a tar archive",
		"onnx/testdata/dummy_t5.onnx":    "onnx/testdata/dummy_t5.onnx: node 0 (BeamSearch): operator com.microsoft.BeamSearch runs a subgraph an unknown number of times",
	} {
		if _, err := formats.ReadFile(path, onnx.Default()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", path, err, want)
		}
	}
}

// FuzzRead: no input panics, and every error is one line that begins with the file's name.
func FuzzRead(f *testing.F) {
	for _, data := range []string{"{", "3\n0,\n", "a -- b -- c", "node {", "\n\x04\n\x01x\x18\x01", "\x08\x07", "\x80\x02"} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := formats.Read(data, "f", onnx.Default())
		if err == nil && file.Graph == nil {
			t.Error("neither a graph nor an error")
		}
		if err != nil && !formatstest.Located(err, "f") {
			t.Errorf("error is not one located line: %q", err)
		}
	})
}

func Example() {
	f, err := formats.ReadFile("doppler/testdata/chain_mm_112nodes.txt", onnx.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d ops, times of %s on %d devices\n", f.Form.Name, f.Graph.NumOps(), f.Times.Models[0].Name, f.Times.Models[0].Count)
	// Output: DOPPLER: 76 ops, times of doppler on 4 devices
}

// A graph without a name of its own is called as its file is, whatever folder that is in.
func TestNamelessGraph(t *testing.T) {
	const text = `{"format": "placer graph 1", "ops": [{"name": "a", "kind": "Relu", "out": [{"shape": [2]}]}]}`
	for name, want := range map[string]string{"models/mlp.json": "mlp", "stdin": "stdin", ".json": ".json"} {
		f, err := formats.Read([]byte(text), name, onnx.Default())
		if err != nil || f.Graph.Name() != want {
			t.Errorf("%s: %v, want the name %q", name, err, want)
		}
	}
}
