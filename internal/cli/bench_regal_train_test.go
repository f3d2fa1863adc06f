package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A training leaves weights that give a row; gone on with, it makes the steps
// that are missing; REGAL's row is absent with --regal none.
func TestTrainRegal(t *testing.T) {
	folder := t.TempDir()
	train := func(steps string) string {
		var out, errs bytes.Buffer
		args := []string{"bench", "regal", "--train-regal", folder, "--train-steps", steps, "--train-imitate", "1", "--train-graphs", "1", "--train-batch", "1", "--train-samples", "2", "--train-evaluations", "50"}
		if code := Main(args, nil, &out, &errs); code != 0 || out.Len() > 0 {
			t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
		}
		return errs.String()
	}
	if got := train("1"); strings.Count(got, "step ") != 1 {
		t.Errorf("one step: %s", got)
	}
	if got := train("2"); strings.Count(got, "step ") != 1 || !strings.Contains(got, "step 2:") {
		t.Errorf("the second step: %s", got)
	}
	if events, err := filepath.Glob(filepath.Join(folder, "events.out.tfevents.*")); err != nil || len(events) == 0 {
		t.Errorf("no TensorBoard file, %v", err)
	}
	doc := benchRegal(t, "--graphs", "1", "--evaluations", "500", "--regal", filepath.Join(folder, regalWeights))
	for _, name := range []string{"REGAL", "IDRS", "rule alone"} {
		if r := rowOf(t, doc, name); r.Evaluations != 500 || r.Graphs != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if notes := strings.Join(doc.Notes, " "); !strings.Contains(notes, "1 steps that imitate a rule of ours, then 1 of REINFORCE") {
		t.Errorf("notes: %s", notes)
	}
	for _, r := range benchRegal(t, "--graphs", "1", "--evaluations", "500", "--regal", "none").Rows {
		if r.Method == "REGAL" {
			t.Error("a row without weights")
		}
	}
	if err := os.WriteFile(filepath.Join(folder, regalCheckpoint), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if code := Main([]string{"bench", "regal", "--train-regal", folder}, nil, &bytes.Buffer{}, &errs); code != 1 || !strings.Contains(errs.String(), regalCheckpoint) {
		t.Errorf("a broken checkpoint: exit %d, %s", code, errs.String())
	}
}

// Policies for real graphs are trained on files and their copies.
func TestTrainRegalOnFiles(t *testing.T) {
	file := pathsFile(t)
	for _, task := range []string{"time", "memory"} {
		folder := t.TempDir()
		args := []string{"bench", "regal", "-q", "--task", task, "--graph", file, "--copies", "1", "--regal-agent", task, "--train-regal", folder, "--train-steps", "1", "--train-batch", "2", "--train-samples", "2", "--train-evaluations", "5"}
		var out, errs bytes.Buffer
		if code := Main(args, nil, &out, &errs); code != 0 {
			t.Fatalf("%s: exit %d: %s", task, code, errs.String())
		}
		doc := benchRegal(t, "--task", task, "--graph", file, "--copies", "1", "--evaluations", "450", "--regal", filepath.Join(folder, regalWeights))
		if r := rowOf(t, doc, "REGAL"); r.Evaluations != 450 || r.Graphs != 2 {
			t.Errorf("%s: %+v", task, r)
		}
		if code := Main(append(args, "--train-imitate", "1"), nil, &out, &errs); code != 2 {
			t.Errorf("%s: imitation of a rule that is for synthetic graphs: exit %d", task, code)
		}
	}
}
