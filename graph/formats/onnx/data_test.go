package onnx

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"placer/internal/published"
)

// refusedModels lists the files that cannot be imported, and why.
var refusedModels = map[string]string{
	"dummy_t5.onnx":           "operator com.microsoft.BeamSearch runs a subgraph an unknown number of times",
	"pipeline_vectorize.onnx": "operator ai.onnx.ml.DictVectorizer is not known",
}

// TestDataFolder imports every ONNX file of the folder and compares the counts
// of nodes and edges with its index.
func TestDataFolder(t *testing.T) {
	dir := published.Folder(t, "")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, line := range strings.Split(string(index), "\n") {
		f := strings.Split(line, "\t")
		if !strings.HasSuffix(f[0], ".onnx") {
			continue
		}
		files++
		t.Run(filepath.Base(f[0]), func(t *testing.T) {
			g, sum, err := importFile(filepath.Join(dir, filepath.FromSlash(f[0])), Default())
			if want := refusedModels[filepath.Base(f[0])]; want != "" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			nodes, _ := strconv.Atoi(f[3])
			edges, _ := strconv.Atoi(f[4])
			if sum.Nodes != nodes || sum.Edges != edges {
				t.Errorf("%d nodes and %d edges, want %d and %d", sum.Nodes, sum.Edges, nodes, edges)
			}
			t.Logf("%d nodes, %d edges, %d ops, %d parameters, %v", sum.Nodes, sum.Edges, sum.Ops, sum.Params, g.FLOPs())
		})
	}
	if files == 0 {
		t.Error("the index lists no ONNX file")
	}
}
