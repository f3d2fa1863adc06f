package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestStoppedRowsLoseNone: a row that is judged, fails or is not wanted takes nothing of the
// others with it, whatever their order.
func TestStoppedRowsLoseNone(t *testing.T) {
	rows := []row{{Workload: "a", Human: 1}, {Workload: "b"}, {Workload: "c"}, {Workload: "d", Human: 4}}
	var kept [][]string
	err := judgeEach(rows, func(r *row) bool { return r.Human == 0 }, func(r *row) error {
		r.Human = 9
		if r.Workload == "c" {
			return errors.New("stopped")
		}
		return nil
	}, func(rows []row) error {
		kept = append(kept, workloadsOf(rows))
		return nil
	})
	if err == nil || err.Error() != "c: stopped" {
		t.Errorf("error %v", err)
	}
	if len(kept) != 1 || !slices.Equal(kept[0], []string{"a", "b", "d"}) {
		t.Errorf("kept %v, want a, b and d behind b", kept)
	}
}

// TestRowsWithoutAPolicyStay: what results.csv has of a row that no policy can judge further
// is still there afterwards.
func TestRowsWithoutAPolicyStay(t *testing.T) {
	t.Chdir("../..")
	out := t.TempDir()
	recorded, err := readCSV[row]("experiments/transfer/" + resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	for i := range recorded {
		recorded[i].TunedSeeds = 0 // to be fine-tuned
	}
	if err := write(out, recorded); err != nil {
		t.Fatal(err)
	}
	if err := judgeRows(1, tuning{steps: 1, seeds: 1}, out, "", nil); err != nil {
		t.Fatal(err)
	}
	left, err := readCSV[row](filepath.Join(out, resultsFile))
	if err != nil || len(left) != len(recorded) {
		t.Errorf("%d rows are left of %d, %v", len(left), len(recorded), err)
	}
}

// TestChosen: a row that is not there is an error, not a run of nothing.
func TestChosen(t *testing.T) {
	names := []string{"a", "b", "c"}
	for only, want := range map[string]string{"": "abc", "b": "b", "c,a": "ac"} {
		in, err := chosen(only, names)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !in(n) }), ""); got != want {
			t.Errorf("-rows %q: %s, want %s", only, got, want)
		}
	}
	if _, err := chosen("a,x", names); err == nil {
		t.Error("a row that is not there passed")
	}
}

// TestTasksWantAllFamilies: without a policy for a family nothing is written, and what is
// recorded stays.
func TestTasksWantAllFamilies(t *testing.T) {
	out := t.TempDir()
	path := filepath.Join(out, tasksFile)
	if err := os.WriteFile(path, []byte("recorded\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := judgeTasks(nil, out); err == nil {
		t.Error("no policy was wanted")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "recorded\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestTasksThatDoNotFit: a plan that does not fit, 0, is in no mean.
func TestTasksThatDoNotFit(t *testing.T) {
	var b strings.Builder
	err := writeTasks(&b, []taskRow{
		{Workload: "a", GPU: "p100", Devices: 2, Default: 0.4, Place: 0.2, Rules: 0.1, Joint: 0.1},
		{Workload: "b", GPU: "p100", Devices: 2, Default: 0.4, Place: 0, Rules: 0.2, Joint: 0.1},
		{Workload: "c", GPU: "p100", Devices: 2, Default: 0.4, Place: 0.2, Rules: 0.1, Joint: 0},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| b on p100 x 2 | 400 ms | does not fit | 200 ms | 100 ms | 75.0% | - |", "| c on p100 x 2 | 400 ms | 200 ms | 100 ms | does not fit | - | - |",
		"joint 75.0% less than TensorFlow's default (2 cases that fit one GPU), 50.0% less than placement alone (1 of 3), 29.3% less than with everything fused (2 of 3).",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

// TestTasksTable: the recorded table is what the recorded rows give.
func TestTasksTable(t *testing.T) {
	for _, folder := range []string{".", "without-encoder"} {
		rows, err := readCSV[taskRow](filepath.Join(folder, tasksFile))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := writeTasks(&b, rows); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(folder, "tasks.md"))
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s/tasks.md is not what %s gives:\n%s", folder, tasksFile, b.String())
		}
	}
}
