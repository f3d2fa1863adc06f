package session

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"placer/plan"
)

func key(plan string) Key { return Key{"g", plan, "m", "h", "s"} }

func open(t *testing.T, path string) *Cache {
	t.Helper()
	m, err := OpenCache(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// must asks m for a plan whose measurement is s.
func must(t *testing.T, m *Cache, name string, s plan.Score) (known bool) {
	t.Helper()
	got, known, err := m.Do(context.Background(), key(name), 1, func() (plan.Score, error) { return s, nil })
	if err != nil || got != s {
		t.Fatalf("%s: %+v, %v, want %+v", name, got, err, s)
	}
	return known
}

// TestCacheSurvivesAnyCut: a file that is cut off anywhere, as a kill in the middle
// of a write leaves it, opens with every whole line, and goes on behind them.
func TestCacheSurvivesAnyCut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole")
	m := open(t, path)
	scores := map[string]plan.Score{"a": {Value: 0.1}, "b": {Value: 0.2, Overflow: 5}, "c": {Value: 1.0 / 3}}
	for _, name := range []string{"a", "b", "c"} {
		if must(t, m, name, scores[name]) {
			t.Errorf("%s is known", name)
		}
	}
	m.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(text) + 1 {
		path := filepath.Join(dir, "cut")
		if err := os.WriteFile(path, text[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := OpenCache(path)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if want := strings.Count(string(text[:cut]), "\n"); m.len() != want {
			t.Fatalf("cut at %d: %d measurements, want %d", cut, m.len(), want)
		}
		for _, name := range []string{"a", "b", "c"} {
			must(t, m, name, scores[name])
		}
		m.Close()
		if again, err := os.ReadFile(path); err != nil || string(again) != string(text) {
			t.Fatalf("cut at %d: the file ends as\n%s", cut, again)
		}
	}
}

func TestCacheRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for text, want := range map[string]string{
		"{}\n": "line 1: no measurement",
		`{"graph":"g","plan":"p","machine":"m","host":"","settings":"","step_time_s":1,"overflow_bytes":0,"predicted_step_s":1}` + "\nwhat\n": "line 2: no measurement: ",
		`{"graph":"g","plan":"p","machine":"m","host":"","settings":"","step_time_s":-1,"overflow_bytes":0,"predicted_step_s":1}` + "\n":      "line 1: no measurement",
		`{"graph":"g","plan":"p","machine":"m","host":"","settings":"","step_time_s":1,"overflow_bytes":0,"predicted_step_s":1,"x":2}` + "\n": `unknown field "x"`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenCache(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
		if again, _ := os.ReadFile(path); string(again) != text {
			t.Errorf("%q was changed", text)
		}
	}
}

// TestCacheInAnotherProcess: a second process is told that the file is in use, and
// gets it when the first one is killed.
func TestCacheInAnotherProcess(t *testing.T) {
	if path := os.Getenv("PLACER_TEST_MEMO"); path != "" { // the other process
		if _, err := OpenCache(path); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("open\n")
		select {}
	}
	path := filepath.Join(t.TempDir(), "cache")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestCacheInAnotherProcess$")
	cmd.Env = append(os.Environ(), "PLACER_TEST_MEMO="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	if _, err := OpenCache(path); err == nil || !strings.Contains(err.Error(), path+" is in use") {
		t.Errorf("while it is in use: error %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	open(t, path)
}

// TestCacheMeasuresOnce: however many ask at once, each plan is measured once; a
// failure is not kept.
func TestCacheMeasuresOnce(t *testing.T) {
	m := open(t, filepath.Join(t.TempDir(), "cache"))
	var runs, failures atomic.Int64
	broken := errors.New("broken")
	fail := func() (plan.Score, error) { failures.Add(1); return plan.Score{}, broken }
	for range 2 {
		if _, _, err := m.Do(context.Background(), key("x"), 1, fail); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	}
	if failures.Load() != 2 {
		t.Errorf("%d runs of what fails twice", failures.Load())
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for _, name := range []string{"x", "y", "z"} {
				s, _, err := m.Do(context.Background(), key(name), 1, func() (plan.Score, error) { runs.Add(1); return plan.Score{Value: 2}, nil })
				if err != nil || s.Value != 2 {
					t.Errorf("%s: %+v, %v", name, s, err)
				}
			}
		})
	}
	wait.Wait()
	if runs.Load() != 3 || m.len() != 3 {
		t.Errorf("%d runs of 3 plans, %d known", runs.Load(), m.len())
	}
}

// TestCacheCannotWrite: a disk that is full leaves the measurement, and an error
// that says so.
func TestCacheCannotWrite(t *testing.T) {
	m := open(t, filepath.Join(t.TempDir(), "cache"))
	m.file.Close()
	s, _, err := m.Do(context.Background(), key("x"), 1, func() (plan.Score, error) { return plan.Score{Value: 2}, nil })
	var unwritten *writeError
	if !errors.As(err, &unwritten) || s.Value != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestPlanHash: decisions that differ in anything have different hashes.
func TestPlanHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) plan.Decision {
			n := rapid.IntRange(1, 3).Draw(t, name)
			d := plan.Decision{Device: rapid.SliceOfN(rapid.Uint8Range(0, 2), n, n).Draw(t, name+" device")}
			if rapid.Bool().Draw(t, name+" ranked") {
				d.Priority = rapid.SliceOfN(rapid.Int32Range(0, 2), n, n).Draw(t, name+" priority")
			}
			if rapid.Bool().Draw(t, name+" fused") {
				d.Fusion = rapid.SliceOfN(rapid.Uint8Range(0, 2), n, n).Draw(t, name+" fusion")
			}
			return d
		}
		a, b := draw("a"), draw("b")
		if (PlanHash(a) == PlanHash(b)) != equal(a, b) {
			t.Errorf("%+v and %+v: equal hashes %v", a, b, PlanHash(a) == PlanHash(b))
		}
	})
}

func equal(a, b plan.Decision) bool {
	return slices.Equal(a.Device, b.Device) && slices.Equal(a.Priority, b.Priority) && slices.Equal(a.Fusion, b.Fusion)
}
