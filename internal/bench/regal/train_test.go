package regal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/baselines/regal/rivals"
	"placer/internal/bench"
	"placer/internal/fsx"
)

// short is a training of few steps into folder.
func short(folder string, steps int) Training {
	t := DefaultTraining()
	t.Folder, t.Steps, t.Graphs, t.Batch, t.Samples, t.Evaluations = folder, steps, 1, 1, 2, 50
	return t
}

// A training leaves weights that give a row; gone on with, it makes the steps
// that are missing; REGAL's row is absent where the weights are none.
func TestTrain(t *testing.T) {
	folder := t.TempDir()
	train := func(steps int) string {
		var log strings.Builder
		how := short(folder, steps)
		how.Imitate = 1
		if err := Train(context.Background(), small(), how, host(&log)); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	if got := train(1); strings.Count(got, "step ") != 1 {
		t.Errorf("one step: %s", got)
	}
	if got := train(2); strings.Count(got, "step ") != 1 || !strings.Contains(got, "step 2:") {
		t.Errorf("the second step: %s", got)
	}
	if events, err := filepath.Glob(filepath.Join(folder, "events.out.tfevents.*")); err != nil || len(events) == 0 {
		t.Errorf("no TensorBoard file, %v", err)
	}
	c := small()
	c.REGAL = []string{filepath.Join(folder, weightsFile)}
	doc := table(t, c)
	for _, name := range []string{"REGAL", "IDRS", "rule alone"} {
		if r := rowOf(t, doc, name); r.Evaluations != 500 || r.Graphs != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if notes := strings.Join(doc.Notes, " "); !strings.Contains(notes, "1 steps that imitate a rule of ours, then 1 of REINFORCE") {
		t.Errorf("notes: %s", notes)
	}
	c.REGAL = []string{none}
	for _, r := range table(t, c).Rows {
		if r.Method == "REGAL" {
			t.Error("a row without weights")
		}
	}
	if err := os.WriteFile(filepath.Join(folder, checkpointFile), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	if err := Train(context.Background(), small(), short(folder, 3), host(&log)); err == nil || !strings.Contains(err.Error(), checkpointFile) {
		t.Errorf("a broken checkpoint: %v", err)
	}
}

// A training that cannot be meant is refused with its flags, and a folder is one training's
// at a time.
func TestTrainErrors(t *testing.T) {
	how := short(t.TempDir(), 0)
	var log strings.Builder
	var wrong bench.ConfigError
	if err := Train(t.Context(), small(), how, host(&log)); !errors.As(err, &wrong) || err.Error() != "--train-steps 0 --train-graphs 1 --train-save 50: want at least 1" {
		t.Errorf("no steps: %v", err)
	}
	how.Steps, how.Batch = 1, 0
	if err := Train(t.Context(), small(), how, host(&log)); !errors.As(err, &wrong) || strings.Contains(err.Error(), "nil") {
		t.Errorf("no graphs in a step: %v", err)
	}
	how.Batch = 1
	other, err := fsx.OpenFolder(how.Folder)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := Train(t.Context(), small(), how, host(&log)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a folder that another training has: %v", err)
	}
}

// Policies for real graphs are trained on files and their copies.
func TestTrainOnFiles(t *testing.T) {
	file := pathsFile(t)
	for _, task := range []rivals.Task{rivals.Time, rivals.Memory} {
		how := short(t.TempDir(), 1)
		how.Agent, how.Batch, how.Evaluations = string(task), 2, 5
		var log strings.Builder
		if err := Train(context.Background(), ofFile(task, file, 1, 450), how, host(&log)); err != nil {
			t.Fatalf("%s: %v", task, err)
		}
		c := ofFile(task, file, 1, 450)
		c.REGAL = []string{filepath.Join(how.Folder, weightsFile)}
		if r := rowOf(t, table(t, c), "REGAL"); r.Evaluations != 450 || r.Graphs != 2 {
			t.Errorf("%s: %+v", task, r)
		}
		how.Imitate = 1
		var wrong bench.ConfigError
		if err := Train(context.Background(), c, how, host(&log)); !errors.As(err, &wrong) {
			t.Errorf("%s: imitation of a rule that is for synthetic graphs: %v", task, err)
		}
	}
}
