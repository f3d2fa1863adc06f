package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"placer/hw"
)

// TestCUDAGraph: a replayed step takes less by launch - graph_launch for each of its kernels, and
// a machine that does not say what a kernel costs in a graph is refused.
func TestCUDAGraph(t *testing.T) {
	t.Parallel()
	step := func(args ...string) float64 {
		t.Helper()
		out := command(t, append([]string{"strategies", "--workload", "gpt:layers=2,hidden=64,heads=2,ffn=128,vocab=128,seq=8", "--gpus", "1", "--batch", "1", "--strategy", "one device", "--eager", "--json", "-q"}, args...))
		var doc struct {
			Rows []struct {
				Step float64 `json:"step_time_s"`
			} `json:"rows"`
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Rows) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		return doc.Rows[0].Step
	}
	m, err := hw.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	queued, replayed := step("--gpu", "a100"), step("--gpu", "a100", "--cuda-graph")
	kernels := (queued - replayed) / float64(m.Devices[0].Launch-m.Devices[0].GraphLaunch)
	if kernels < 50 || math.Abs(kernels-math.Round(kernels)) > 1e-3 {
		t.Errorf("a step of %g s takes %g s replayed: %g kernels", queued, replayed, kernels)
	}
	file := filepath.Join(t.TempDir(), "a100.json")
	var text strings.Builder
	if err := m.Write(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(regexp.MustCompile(`"graph_launch": "[^"]*",`).ReplaceAllString(text.String(), "")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, machine := range [][]string{{"--gpu", "p100"}, {"--machine", file}} {
		if out := command(t, append([]string{"simulate", "--workload", "rnnlm2", "--plan", "x.json", "--cuda-graph"}, machine...)); !strings.Contains(out, "exit 2") || !strings.Contains(out, "graph_launch") {
			t.Errorf("%v: %s", machine, out)
		}
	}
	if out := command(t, []string{"measure", "--workload", "rnnlm2", "--gpu", "a100", "--plan", "x.json", "--cuda-graph"}); !strings.Contains(out, "exit 2") || !strings.Contains(out, "--mode graph") {
		t.Error(out)
	}
}
