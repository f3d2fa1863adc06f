package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
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

// A step that is derived from an ONNX file or of a decoder asks no tensor of the passes for its shape: every
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
	config := filepath.Join(t.TempDir(), "config.json")
	const sizes = `{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256}`
	if err := os.WriteFile(config, []byte(sizes), 0o600); err != nil {
		t.Fatal(err)
	}
	decoder := graphFlags{Graph: config, Train: "adam", Dims: map[string]int64{"batch": 2, "seq": 32}}
	for _, f := range []graphFlags{{Graph: modelFile(t, "light_resnet50.onnx"), Train: "momentum"}, open, decoder} {
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

// A training step that is derived from a decoder's config.json has the logits of every token
// and their loss, as one that trains has: products of six times the parameters that are
// multiplied by each token, and the bytes of the built-in decoder of the same sizes.
func TestTrainingStepOfConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	const layers, hidden, ffn, vocab, batch, seq = 2, 128, 384, 5000, 2, 64
	text := fmt.Sprintf(`{"model_type": "llama", "num_hidden_layers": %d, "hidden_size": %d, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": %d, "vocab_size": %d, "torch_dtype": "bfloat16"}`, layers, hidden, ffn, vocab)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := quietConsole()
	f := graphFlags{Graph: file, Train: "adam", Dims: map[string]int64{"batch": batch, "seq": seq}}
	l, err := c.loadGraph(&f)
	if err != nil {
		t.Fatal(err)
	}
	built := graphFlags{Workload: fmt.Sprintf("llama:layers=%d,hidden=%d,heads=4,kv_heads=4,ffn=%d,vocab=%d,batch=%d,seq=%d", layers, hidden, ffn, vocab, batch, seq)}
	same, err := c.loadGraph(&built)
	if err != nil {
		t.Fatal(err)
	}
	matmuls := func(g *graph.Graph) (sum units.FLOPs) {
		for i := range graph.OpID(g.NumOps()) {
			if o := g.Op(i); o.Kind == "MatMul" {
				sum += o.FLOPs
			}
		}
		return sum
	}
	if got, want := matmuls(l.Graph), units.FLOPs(6*batch*seq*(layers*(4*hidden*hidden+3*hidden*ffn)+hidden*vocab)); got != want || got != matmuls(same.Graph) {
		t.Errorf("products of %v, of the built-in decoder %v, want %v", got, matmuls(same.Graph), want)
	}
	peaks := [2]units.Bytes{}
	m, err := hw.Take("a100", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	for k, g := range []*graph.Graph{l.Graph, same.Graph} {
		s, priority, err := problem.Simulator(problem.Source{Graph: g}, m, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: make([]uint8, g.NumOps()), Priority: priority}}, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		peaks[k] = r.PeakBytes[0]
	}
	if a, b := float64(peaks[0]), float64(peaks[1]); a < 0.95*b || a > 1.05*b {
		t.Errorf("a peak of %v, of the built-in decoder %v", peaks[0], peaks[1])
	}
	f.Dims["past"] = 8
	if _, err := c.loadGraph(&f); err == nil || !strings.Contains(err.Error(), "past is 8, want 0: a training step has no tokens before it") {
		t.Errorf("with tokens before it: %v", err)
	}
}
