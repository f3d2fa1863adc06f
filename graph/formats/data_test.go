package formats_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"placer/graph/formats"
	"placer/graph/formats/onnx"
	"placer/internal/published"
)

// refused are the files of the published data that no importer reads, with the reason
// that the error must give; a prefix of the path stands for a folder.
var refused = []struct{ path, reason string }{
	{"dnn-partitioning/reference_results.csv", "is text in none of the forms"},
	{"dnn-partitioning/human-experts/", "unknown key"},
	{"dnn-partitioning/reference_splits/", "unknown key"},
	{"gpu-perf-data/", ""}, // measurements: JSON of other keys, CSV, text protocol buffers
	{"nncf-dot/", "looks like a DOT graph"},
	{"mlir/stablehlo/unidirectional_lstm.mlir", "cf.br: branches between blocks are not read"},
	{"mlir/torch-mlir/", "MLIR's torch dialect, want StableHLO"},
	{"onnx/onnxruntime-testdata/dummy_t5.onnx", "operator com.microsoft.BeamSearch runs a subgraph an unknown number of times"},
	{"onnx/onnxruntime-testdata/pipeline_vectorize.onnx", "operator ai.onnx.ml.DictVectorizer is not known"},
	{"pipedream-profiles/stage_conf/", "looks like a configuration of PipeDream's stages"},
	{"tf-graphs/graphdef-pbtxt/keras_imagenet_main_graph_mode.golden_summary", "is text in none of the forms"},
	{"tf-graphs/graphdef-pbtxt/grappler/function_error.pbtxt", "node 0 (Add) is on a cycle"},
	{"tf-graphs/graphdef-pbtxt/grappler/function_functional_while.pbtxt", "a loop that runs an unknown number of times"},
	{"tf-graphs/graphdef-pbtxt/grappler/loops_and_resource_vars", "a loop that runs an unknown number of times"},
	{"tf-graphs/graphdef-pbtxt/grappler/while_loop_var_handle_op.pbtxt", "a loop that runs an unknown number of times"},
	{"tf-graphs/tfjs-graph-model/movenet.model.json.gz", "a loop that runs an unknown number of times"},
	{"tf-graphs/profiler/run_meta", "looks like TensorFlow's RunMetadata"},
	{"tpugraphs-testdata/", "looks like TpuGraphs' tuning data"},
	{"xla-hlo/openxla/gemma2_2b_keras_jax.hlo.gz", "instruction while.14219: a loop that runs an unknown number of times"},
}

// counted are the sets whose index has nodes and edges as our importers count them.
var counted = []string{"xla-hlo/", "tf-graphs/", "onnx/"}

// named are results with names in the text of MLIR files: the index counts those with
// numbers alone.
var named = map[string]int{"mlir/stablehlo/mnist_fake_weights.mlir": 4}

// TestPublishedFiles: every file of the published data is read with the counts of their
// index, or refused by its name and the reason.
func TestPublishedFiles(t *testing.T) {
	root := filepath.Dir(published.Folder(t, "INDEX.tsv"))
	index, err := os.Open(filepath.Join(root, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	read, not := 0, 0
	lines := bufio.NewScanner(index)
	lines.Buffer(nil, 1<<20)
	lines.Scan() // the header
	for lines.Scan() {
		row := strings.Split(lines.Text(), "\t")
		path := filepath.Join(root, row[0])
		f, err := formats.ReadFile(path, onnx.Default())
		reason, refuse := "", false
		for _, r := range refused {
			if strings.HasPrefix(row[0], r.path) {
				reason, refuse = r.reason, true
			}
		}
		if refuse {
			not++
			if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want one line with %q", row[0], err, reason)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		read++
		for _, set := range counted {
			if !strings.HasPrefix(row[0], set) {
				continue
			}
			nodes, edges := f.Counts.Nodes, f.Counts.Edges
			if f.ONNX != nil {
				nodes, edges = f.ONNX.Nodes, f.ONNX.Edges
			}
			if strconv.Itoa(nodes) != row[3] || strconv.Itoa(edges) != row[4] {
				t.Errorf("%s: %d nodes, %d edges, want %s and %s", row[0], nodes, edges, row[3], row[4])
			}
		}
		if (strings.HasPrefix(row[0], "pytorch-traces/") || strings.HasPrefix(row[0], "mlir/")) && strconv.Itoa(f.Counts.Nodes-named[row[0]]) != row[3] {
			t.Errorf("%s: %d nodes, want %s", row[0], f.Counts.Nodes, row[3])
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files read, %d refused", read, not)
}
