package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// --for ends with a plan that the program can take: exporting it moves nothing, and its
// own form reads back as the same placement.
func TestSearchFor(t *testing.T) {
	dir := t.TempDir()
	out, file := filepath.Join(dir, "run"), filepath.Join(dir, "vllm.txt")
	config := filepath.Join(dir, "config.json")
	model := `{"model_type": "llama", "num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "torch_dtype": "float32"}`
	if err := os.WriteFile(config, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	in := []string{"--graph", config, "--dim", "seq=32", "--gpu", "a100", "--gpus", "3", "--objective", "throughput"}
	code, _, stderr := runHere(append([]string{"search", "--methods", "single,random", "--evaluations", "20", "--for", "vllm", "--out", out, "-o", file}, in...)...)
	if code != 0 || !strings.Contains(stderr, "the best found that vllm can take takes") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if strings.Contains(stderr, "--to schedule") {
		t.Errorf("names a form that was not asked for: %s", stderr)
	}
	if a, b := read(t, out, "plan-vllm.txt"), read(t, dir, "vllm.txt"); !bytes.Equal(a, b) {
		t.Errorf("-o has %q, the run folder %q", b, a)
	}
	code, stdout, stderr := runHere(append([]string{"export", "--plan", filepath.Join(out, "plan-vllm.json"), "--to", "vllm"}, in...)...)
	if code != 0 || !strings.Contains(stderr, " 0 of ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	form, err := os.ReadFile(filepath.Join(out, "plan-vllm.txt"))
	if err != nil || string(form) != stdout || !strings.HasPrefix(stdout, "VLLM_PP_LAYER_PARTITION=") {
		t.Errorf("%q, exported %q: %v", form, stdout, err)
	}
	// The form is read wherever a plan is, but for replan, which has another machine.
	code, stdout, stderr = runHere(append([]string{"export", "--plan", file, "--to", "vllm"}, in...)...)
	if code != 0 || stdout != string(form) || !strings.Contains(stderr, " 0 of ") {
		t.Errorf("from its form: %q, exit %d: %s", stdout, code, stderr)
	}
	code, _, stderr = runHere(append([]string{"search", "--methods", "single", "--from", file, "--evaluations", "1", "--out", filepath.Join(dir, "from")}, in...)...)
	if code != 0 || !strings.Contains(stderr, "given") {
		t.Errorf("--from its form: exit %d: %s", code, stderr)
	}
	code, _, stderr = runHere("replan", "--graph", config, "--dim", "seq=32", "--gpu", "a100", "--gpus", "2", "--plan", file)
	if code != 1 || !strings.Contains(stderr, file+" is a placement in the form of vllm, and a plan is wanted") {
		t.Errorf("replan of its form: exit %d: %s", code, stderr)
	}
	code, printed, stderr := runHere(append([]string{"search", "-q", "--methods", "single,random", "--evaluations", "20", "--for", "vllm", "--out", filepath.Join(dir, "again"), "-o", "-"}, in...)...)
	if code != 0 || printed != string(form) {
		t.Errorf("-o - printed %q, exit %d: %s", printed, code, stderr)
	}
	code, _, stderr = runHere("search", "--resume", out, "--for", "vllm")
	if code != 2 || !strings.Contains(stderr, "is complete; 'placer export --plan "+filepath.Join(out, "plan.json")+" --to vllm'") {
		t.Errorf("a run that has ended: exit %d: %s", code, stderr)
	}
	again := filepath.Join(dir, "again.json")
	code, _, stderr = runHere("search", "--resume", out, "-o", again)
	if code != 0 || !bytes.Equal(read(t, dir, "again.json"), read(t, out, "plan.json")) {
		t.Errorf("a run that has ended: exit %d: %s", code, stderr)
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

// The best plan of a program's form is a plan: where nothing that the search found is better, it is
// the best, and a second stage that gains next to nothing is none.
func TestSearchForIsAPlan(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	model := `{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16"}`
	if err := os.WriteFile(config, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		objective string
		best      string
		devices   int
	}{{"throughput", "vllm", 3}, {"step", "single", 1}} {
		out := filepath.Join(dir, x.objective)
		code, _, stderr := runHere("search", "--graph", config, "--dim", "seq=512", "--dim", "batch=4", "--gpu", "a100", "--gpus", "3", "--tasks", "place", "--objective", x.objective, "--methods", "single", "--evaluations", "100", "--for", "vllm", "--out", out)
		if code != 0 {
			t.Fatal(stderr)
		}
		var best, legal struct {
			Method string
			Device []int
		}
		for name, into := range map[string]any{"plan.json": &best, "plan-vllm.json": &legal} {
			if err := json.Unmarshal(read(t, out, name), into); err != nil {
				t.Fatal(err)
			}
		}
		if n := slices.Max(legal.Device) + 1; best.Method != x.best || !slices.Equal(best.Device, legal.Device) || n != x.devices {
			t.Errorf("%s: best by %q, vllm's on %d devices; %s", x.objective, best.Method, n, stderr)
		}
	}
}

// A mixture of experts of 35 GB on a card of 24 GB: llama.cpp's plan has experts on the CPU
// and fits, is written as -ot, and simulates from that as it was found.
func TestSearchForLlamaWithExperts(t *testing.T) {
	dir := t.TempDir()
	out, box := filepath.Join(dir, "run"), filepath.Join(dir, "box.json")
	config := filepath.Join(dir, "config.json")
	model := `{"model_type": "mixtral", "num_hidden_layers": 12, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16"}`
	if err := os.WriteFile(config, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runHere("machines", "init", "--gpu", "rtx3090", "--cpu", "128GB", "-o", box); code != 0 {
		t.Fatal(stderr)
	}
	in := []string{"--graph", config, "--dim", "seq=512", "--machine", box}
	code, _, stderr := runHere(append([]string{"search", "--methods", "single,offload", "--evaluations", "20", "--for", "llama.cpp", "--out", out}, in...)...)
	said := regexp.MustCompile(`the best found that llama\.cpp can take takes ([\d.]+ \w+), `).FindStringSubmatch(stderr)
	if code != 0 || said == nil {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	form := string(read(t, out, "plan-llama.cpp.txt"))
	if !regexp.MustCompile(`^llama-server -m MODEL\.gguf -ngl 13 -sm layer -ts 13 -ot "blk\\\.\(\d+(\|\d+)*\)\\\.ffn_\(up\|down\|gate\|gate_up\)_exps\\\.=CPU"\n$`).MatchString(form) {
		t.Errorf("wrote %q", form)
	}
	code, _, stderr = runHere(append([]string{"export", "--plan", filepath.Join(out, "plan-llama.cpp.json"), "--to", "llama.cpp", "-o", filepath.Join(dir, "again.txt")}, in...)...)
	if code != 0 || !strings.Contains(stderr, " 0 of ") || string(read(t, dir, "again.txt")) != form {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, stdout, stderr := runHere(append([]string{"simulate", "--scheduler", "critical-path", "--plan", filepath.Join(out, "plan-llama.cpp.txt")}, in...)...)
	if code != 0 || !strings.Contains(stdout, "step time "+said[1]+",") {
		t.Errorf("exit %d, found %s: %s%s", code, said[1], stdout, stderr)
	}
}
