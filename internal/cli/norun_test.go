package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	graphs "placer/graph"
)

// TestSearchWhereAnOpCannotRun: by the throughput objective a plan with an op on a device where
// it cannot run is none. Methods that come to nothing else have no row, the others end with a plan.
func TestSearchWhereAnOpCannotRun(t *testing.T) {
	dir := t.TempDir()
	graph, times, out := filepath.Join(dir, "graph.json"), filepath.Join(dir, "times.json"), filepath.Join(dir, "run")
	chain := `{"format": "placer graph 1", "name": "two ways", "ops": [
		{"name": "a", "kind": "MatMul", "out": [{"bytes": 8}]},
		{"name": "b", "kind": "MatMul", "in": ["a"], "out": [{"bytes": 8}]},
		{"name": "c", "kind": "MatMul", "in": ["b"], "out": [{"bytes": 8}]}]}`
	g, err := graphs.Read([]byte(chain), graph)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		graph: chain,
		times: `{"format": "placer times 1", "graph": "` + g.Hash() + `", "source": "test", "bandwidth": 1e9, "latency": 1e-6, "models": [
			{"name": "one", "count": 1, "memory": "1 GB", "seconds": [0.001, null, 0.001]},
			{"name": "other", "count": 1, "memory": "1 GB", "seconds": [0.001, 0.001, null]}]}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, how := range [][]string{{"--methods", "single,roundrobin,random,local,BRKGA,GO-one,fine-tuned,fine-tuned-ppo", "--evaluations", "300"}, {"--budget", "2s"}} {
		code, stdout, stderr := runHere(append([]string{"search", "--graph", graph, "--times", times, "--objective", "throughput", "--out", filepath.Join(out, how[0])}, how...)...)
		if code != 0 || strings.Contains(stdout+stderr, "Inf") || !strings.Contains(stdout, "single: unavailable: it came to no placement whose ops all run") {
			t.Errorf("%v: exit %d: %s%s", how, code, stdout, stderr)
		}
	}
}
