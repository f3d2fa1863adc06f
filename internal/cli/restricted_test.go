package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// --for ends with a plan that the program can take: exporting it moves nothing, and its
// own form reads back as the same placement.
func TestSearchFor(t *testing.T) {
	dir := t.TempDir()
	out, plan := filepath.Join(dir, "run"), filepath.Join(dir, "plan.json")
	config := filepath.Join(dir, "config.json")
	model := `{"model_type": "llama", "num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "torch_dtype": "float32"}`
	if err := os.WriteFile(config, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	in := []string{"--graph", config, "--dim", "seq=32", "--gpu", "a100", "--gpus", "3", "--objective", "throughput"}
	code, _, stderr := runHere(append([]string{"search", "--methods", "single,random", "--evaluations", "20", "--for", "vllm", "--out", out, "-o", plan}, in...)...)
	if code != 0 || !strings.Contains(stderr, "the best found that vllm can take takes") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if a, b := read(t, out, "plan-vllm.json"), read(t, dir, "plan.json"); !bytes.Equal(a, b) {
		t.Error("-o has another plan than the run folder")
	}
	code, stdout, stderr := runHere(append([]string{"export", "--plan", plan, "--to", "vllm"}, in...)...)
	if code != 0 || !strings.Contains(stderr, " 0 of ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	form, err := os.ReadFile(filepath.Join(out, "plan-vllm.txt"))
	if err != nil || string(form) != stdout || !strings.HasPrefix(stdout, "VLLM_PP_LAYER_PARTITION=") {
		t.Errorf("%q, exported %q: %v", form, stdout, err)
	}
	bare := filepath.Join(dir, "bare.json")
	if err := os.WriteFile(bare, []byte(`{"format": "placer graph 1", "name": "bare", "ops": [{"name": "x", "kind": "Placeholder", "out": [{"bytes": 8}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"tgi": "unknown target", "vllm": "names neither modules nor layers"} {
		code, _, stderr := runHere("search", "--graph", bare, "--evaluations", "10", "--for", target, "--out", filepath.Join(dir, target))
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d: %s", target, code, stderr)
		}
	}
}
