package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestStrategiesOfUnequalDevices: one device is the quicker of two, whichever slot it is in, and can
// be asked for by name beside others.
func TestStrategiesOfUnequalDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	type row struct {
		Name string
		Step float64 `json:"step_time_s"`
		Why  string
	}
	rows := func(args ...string) map[string]row {
		out := command(t, append([]string{"strategies", "--workload", "rnnlm:layers=2,unroll=3,hidden=64,vocab=100", "--batch", "4", "-q", "--json"}, args...))
		var doc struct{ Rows []row }
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		named := map[string]row{}
		for _, r := range doc.Rows {
			named[r.Name] = r
		}
		return named
	}
	for name, cards := range map[string]string{"quick": "rtx4090", "ordered": "rtx4090,rtx3060", "reversed": "rtx3060,rtx4090"} {
		if out := command(t, []string{"machines", "init", "--gpu", cards, "-o", name + ".json"}); out != "" {
			t.Fatal(out)
		}
	}
	want := rows("--machine", "quick.json", "--budget", "0")["one device"].Step
	ordered := rows("--machine", "ordered.json", "--budget", "0")
	for name, r := range rows("--machine", "reversed.json", "--budget", "0") {
		if r.Step != ordered[name].Step {
			t.Errorf("%s takes %g s, with the slots the other way round %g", name, r.Step, ordered[name].Step)
		}
		if name == "one device" && r.Step != want {
			t.Errorf("one device takes %g s, the quicker one alone %g", r.Step, want)
		}
	}
	if r := rows("--machine", "reversed.json", "--strategy", "one device")["as asked"]; r.Step != want {
		t.Errorf("one device as asked takes %g s (%s), want %g", r.Step, r.Why, want)
	}
	out := command(t, []string{"strategies", "--workload", "rnnlm:layers=2,unroll=3,hidden=64,vocab=100", "--batch", "4", "--machine", "reversed.json", "--budget", "0", "-q"})
	if !strings.Contains(out, "reversed: its devices count in the order GeForce RTX 4090 (gpu:1), GeForce RTX\n  3060 (gpu:0). One device is the first.") {
		t.Error(out)
	}
}

// TestProgramsThatHoldMore: where a program holds an optimizer's state in f32 and the prediction does not, a
// note says so, and how to predict it.
func TestProgramsThatHoldMore(t *testing.T) {
	const model = "llama:layers=1,hidden=64,heads=4,kv_heads=4,ffn=32,seq=8,vocab=64,batch=2"
	for _, c := range []struct {
		program, model string
		want           bool
	}{
		{"megatron-lm", model, true},
		{"deepspeed", model, true},
		{"torchtitan", model, true},
		{"megatron-lm", model + ",master_weights=true", false},
		{"megatron-lm", model + ",dtype=f32", false},
	} {
		out := command(t, []string{"strategies", "--workload", c.model, "--gpu", "a100", "--gpus", "2", "--strategy", "ddp=2", "--for", c.program})
		if got := strings.Contains(out, c.program+" holds state and a copy of the weights in f32, more than is predicted"); got != c.want {
			t.Errorf("%s of %s: noted %v, want %v:\n%s", c.program, c.model, got, c.want, out)
		}
	}
}

// TestStrategiesUsage: what would have been passed over says why it is refused.
func TestStrategiesUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--merged all", "--merged all: products are merged for inference, and the step trains"},
		{"--strategy=", "--strategy: want a strategy"},
	} {
		out := command(t, append(strings.Fields("strategies --workload rnnlm:layers=1,unroll=2,hidden=64,vocab=100 --gpus 2"), strings.Split(strings.Replace(c.args, " ", "=", 1), " ")...))
		if !strings.Contains(out, c.want) || !strings.Contains(out, "exit 2") {
			t.Errorf("%s:\n%s", c.args, out)
		}
	}
	out := command(t, strings.Fields("strategies --workload rnnlm:layers=1,unroll=2,hidden=64,vocab=100 --gpus 2 --budget 0 --for vllm"))
	if strings.Contains(out, "are merged, as vllm merges them") {
		t.Errorf("a step that trains is not merged:\n%s", out)
	}
}

// A batch that the workload cannot have is a fault of the command line.
func TestBatchOutOfRange(t *testing.T) {
	var out, stderr strings.Builder
	c := newConsole(strings.NewReader(""), &out, &stderr)
	if code := c.main([]string{"strategies", "--workload", "llama", "--gpu", "a100", "--gpus", "8", "--batch", "99999999"}); code != exitUsage || !strings.Contains(stderr.String(), "batch is 99999999, want 1 to 65536") {
		t.Errorf("code %d: %s", code, stderr.String())
	}
}
