package search

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/plan"
)

func opID(i int) graph.OpID { return graph.OpID(i) }

// TestRunRemembers interrupts a search at several places and resumes it from its
// folder: with a budget in evaluations the end must be that of the uninterrupted
// search.
func TestRunRemembers(t *testing.T) {
	c := testConfig(plan.Budget{Evaluations: 400}, 1)
	want := search(t, context.Background(), testMethods(nil), c, nil, nil)
	for _, stop := range []struct {
		method string
		at     int
	}{{"human", 1}, {"policy", 3}, {"a", 20}, {"b", 119}, {"last", 5}} {
		t.Run(stop.method, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			run, err := CreateRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := run.WriteJSON(ConfigFile, struct{}{}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			search(t, ctx, testMethods(func(name string, c *counting) {
				if name == stop.method {
					c.at, c.then = stop.at, cancel
				}
			}), c, run.Observe, nil)
			cancel()
			run.Close()

			run, memory, err := OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			if memory.Seconds <= 0 {
				t.Errorf("the run remembers %g seconds", memory.Seconds)
			}
			asked := map[string]bool{}
			got := search(t, context.Background(), testMethods(func(name string, _ *counting) { asked[name] = true }), c, run.Observe, memory)
			for name := range memory.Ended {
				if asked[name] {
					t.Errorf("%s had ended and was run again", name)
				}
			}
			if len(memory.Ended) == 0 && stop.method != "human" {
				t.Error("no method is remembered")
			}
			for i := range want.Rows {
				if !slices.Equal(got.Rows[i].Device, want.Rows[i].Device) || got.Rows[i].Evaluations != want.Rows[i].Evaluations {
					t.Errorf("%s ended elsewhere than without the interruption", want.Rows[i].Method)
				}
			}
		})
	}
}

// TestRunGoesOnFromItsBest resumes a search in seconds: what had been found is
// where it goes on, and is not lost when there is no time left.
func TestRunGoesOnFromItsBest(t *testing.T) {
	c := testConfig(plan.Budget{Seconds: 3}, 1)
	memory := &Memory{FirstFeasible: -1, Ended: map[string]Remembered{}, Running: map[string]Remembered{}}
	full := search(t, context.Background(), testMethods(nil), testConfig(plan.Budget{Evaluations: 5000}, 1), nil, nil)
	best := full.Row("b")
	memory.Running["b"] = Remembered{Outcome: &plan.Outcome{Decision: plan.Decision{Device: best.Device}, Score: best.Score, Evaluations: 1000}, CPUSeconds: 5}
	var start []uint8
	r := search(t, context.Background(), testMethods(func(name string, c *counting) {
		if name == "b" {
			start = c.start
		}
	}), c, nil, memory)
	if !slices.Equal(start, best.Device) {
		t.Error("b did not start from its best")
	}
	if row := r.Row("b"); best.Score.Better(row.Score) || row.Evaluations <= 1000 || row.CPUSeconds <= 5 {
		t.Errorf("b ended at %v after %d evaluations and %g s, its best was %v after 1000 and 5", row.Score, row.Evaluations, row.CPUSeconds, best.Score)
	}
	k := &clock{now: 10} // past the end
	r, err := Search(context.Background(), testProblem(t), testMethods(nil), c, Host{Clock: k.read, CPU: k.read, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	if row := r.Row("b"); row == nil || best.Score.Better(row.Score) {
		t.Errorf("b's row is %+v after the end of the time, want its best, or that tidied", row)
	}
}

// TestDamagedMemory: a plan that is none ends the search with a word about what was remembered,
// and the score that it had is not taken for true.
func TestDamagedMemory(t *testing.T) {
	full := search(t, context.Background(), testMethods(nil), testConfig(plan.Budget{Evaluations: 400}, 1), nil, nil)
	best := full.Row("b")
	for _, c := range []struct {
		name   string
		change func(*plan.Outcome)
		want   string
	}{
		{"another device", func(o *plan.Outcome) { o.Device[0] = 77 }, "on device 77"},
		{"too few devices", func(o *plan.Outcome) { o.Device = o.Device[1:] }, "plan places"},
		{"priorities that are none", func(o *plan.Outcome) { o.Priority = make([]int32, len(o.Device)) }, "is out of range or taken"},
		{"another score", func(o *plan.Outcome) { o.Score.Value = 1e-12 }, ""},
	} {
		out := plan.Outcome{Decision: plan.Decision{Device: slices.Clone(best.Device)}, Score: best.Score, Evaluations: 10}
		c.change(&out)
		memory := &Memory{FirstFeasible: -1, Running: map[string]Remembered{"b": {Outcome: &out}}}
		k := &clock{}
		r, err := Search(context.Background(), testProblem(t), testMethods(nil), testConfig(plan.Budget{Seconds: 3}, 1), Host{Clock: k.read, CPU: k.read, Memory: memory})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "method b is damaged") {
				t.Errorf("%s: error %v, want %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if memory.Running["b"].Outcome.Score.Value != 1e-12 {
			t.Errorf("%s: what the caller remembers has changed", c.name)
		}
		if row := r.Row("b"); row == nil || best.Score.Better(row.Score) {
			t.Errorf("%s: b's row is %+v, want %v or better", c.name, row, best.Score)
		}
	}
}

func TestCreateRunRefusesFilledFolders(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateRun(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("a folder that is refused holds %v, %v", entries, err)
	}
}

// TestProgressFileMendsItself: a kill can leave half a line.
func TestProgressFileMendsItself(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{ConfigFile: "{}\n", ProgressFile: "{\"seconds\":1}\n{\"sec"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run, _, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Observe(Event{Method: "m", What: Started, Seconds: 2}); err != nil {
		t.Fatal(err)
	}
	run.Close()
	f, err := os.Open(filepath.Join(dir, ProgressFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines int
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		var x map[string]any
		if err := json.Unmarshal(s.Bytes(), &x); err != nil {
			t.Errorf("line %q: %v", s.Text(), err)
		}
	}
	if lines != 2 {
		t.Errorf("%d lines, want 2", lines)
	}
}

func TestOpenRunNeedsARun(t *testing.T) {
	if _, _, err := OpenRun(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is no run folder") {
		t.Errorf("error %v", err)
	}
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, ConfigFile), []byte("{}"), 0o644)
	os.WriteFile(filepath.Join(dir, stateFile), []byte(`{"format":"placer state 1","unknown":1}`), 0o644)
	if _, _, err := OpenRun(dir); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("error %v, want the unknown key", err)
	}
}
