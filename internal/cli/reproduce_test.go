package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"placer/internal/report"
)

// TestSearchIsReproducible runs every method but METIS, the policy included,
// twice with one seed and one budget in evaluations, on one worker and on three:
// the plans are equal byte for byte and every row has the same step time.
func TestSearchIsReproducible(t *testing.T) {
	t.Chdir(t.TempDir())
	var plans [][]byte
	var results []report.Search
	for k, workers := range []string{"1", "3", "1"} {
		dir := filepath.Join("run", workers, string(rune('a'+k)))
		seed := "5"
		if k == 2 {
			seed = "6"
		}
		command(t, []string{"search", "-q", "--workload", "rnnlm:layers=3,unroll=4", "--gpus", "3", "--evaluations", "400", "--seed", seed, "--workers", workers, "--out", dir,
			"--methods", "human,heft,listsched,random,random-best,local,anneal,GO-one,polish"})
		plan, err := os.ReadFile(filepath.Join(dir, "plan.json"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "result.json"))
		if err != nil {
			t.Fatal(err)
		}
		var r report.Search
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		plans, results = append(plans, plan), append(results, r)
	}
	if !bytes.Equal(plans[0], plans[1]) {
		t.Error("one seed gave two plans")
	}
	if len(results[0].Rows) != 9 {
		t.Errorf("%d rows, want 9; skipped: %+v", len(results[0].Rows), results[0].Skipped)
	}
	differ := false
	for i, r := range results[0].Rows {
		if s := results[1].Rows[i]; r.StepTime != s.StepTime || r.Evaluations != s.Evaluations {
			t.Errorf("%s: %v after %d evaluations on one worker, %v after %d on three", r.Method, r.StepTime, r.Evaluations, s.StepTime, s.Evaluations)
		}
		differ = differ || r.StepTime != results[2].Rows[i].StepTime
		if r.Kind == "baseline" && r.Feasible && r.StepTime < results[0].Best.StepTime {
			t.Errorf("the best plan is worse than that of %s", r.Method)
		}
	}
	if !differ {
		t.Error("another seed changed nothing")
	}
}
