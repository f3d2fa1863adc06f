package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMerged: products are merged where --merged or the program says so, and the step of a decoder is
// shorter the more of them are.
func TestMerged(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(`{"model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": 2, "hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 2816, "vocab_size": 512}`), 0o644); err != nil {
		t.Fatal(err)
	}
	step := func(args ...string) float64 {
		t.Helper()
		out := command(t, append([]string{"strategies", "--graph", config, "--dim", "batch=1", "--dim", "seq=1", "--dim", "past=64", "--gpu", "a100", "--gpus", "1", "--strategy", "one device", "--json", "-q"}, args...))
		var doc struct {
			Rows []struct {
				Step float64 `json:"step_time_s"`
			} `json:"rows"`
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Rows) != 1 || doc.Rows[0].Step == 0 {
			t.Fatalf("%v: %s", err, out)
		}
		return doc.Rows[0].Step
	}
	apart, attention, all := step(), step("--merged", "attention"), step("--merged", "all")
	if !(all < attention && attention < apart) {
		t.Errorf("%g s with all merged, %g with attention, %g apart", all, attention, apart)
	}
	if got := step("--for", "vllm"); got != all {
		t.Errorf("%g s for vllm, want %g", got, all)
	}
	if got := step("--for", "vllm", "--merged", "none"); got != apart {
		t.Errorf("%g s for vllm with nothing merged, want %g", got, apart)
	}
	if out := command(t, []string{"strategies", "--graph", config, "--merged", "qkv"}); !strings.Contains(out, "want none, attention or all") || !strings.HasSuffix(out, "exit 2\n") {
		t.Errorf("--merged qkv: %s", out)
	}
}
