package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"placer/hw/gpu/fake"
	"placer/internal/report"
)

// twoOnOne is a machine file of two devices that one GPU of the fake stands for.
func twoOnOne(t *testing.T, dir string) (f fake.Config, machine string) {
	t.Helper()
	f = fake.Default()
	f.Devices, f.Memory = 1, 60<<30
	machine = filepath.Join(dir, "two.json")
	if code, _, stderr := onFake(t, f, "machines", "split", "--gpu", "a100", "--parts", "2", "--link", "20 GB/s", "-o", machine); code != 0 {
		t.Fatal(stderr)
	}
	return f, machine
}

// settingsFile writes a file for --config.
func settingsFile(t *testing.T, members ...string) string {
	t.Helper()
	return settingsText(t, `{"format": "placer run 1", `+strings.Join(members, ", ")+"}")
}

// onOneGPU are the settings of short measurements on one GPU.
const onOneGPU = `"measuring": {"logical": true, "repeats": 2}`

// measuredSearch are the arguments of a short search that measures, with settings.
func measuredSearch(t *testing.T, machine, out, evaluator string, members ...string) []string {
	return []string{"search", "--workload", "rnnlm:layers=2,unroll=3", "--machine", machine, "--methods", "human,single,GO-one", "--evaluations", "96", "--workers", "1",
		"--evaluator", evaluator, "--config", settingsFile(t, members...), "--out", out}
}

func result(t *testing.T, dir string) *report.Search {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Search
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestSearchOnHardware: rewards and judgement are measured, nothing twice, and
// never again once a file knows it: the same search from the file runs nothing
// and comes to the same plan.
func TestSearchOnHardware(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, machine := twoOnOne(t, dir)
	for _, evaluator := range []string{"hardware", "both"} {
		cache := filepath.Join(dir, evaluator+".jsonl")
		run := func(out string) *report.Search {
			out = filepath.Join(dir, evaluator+out)
			code, stdout, stderr := onFake(t, f, measuredSearch(t, machine, out, evaluator, onOneGPU, `"measurements": "`+cache+`"`)...)
			if code != 0 {
				t.Fatalf("%s: exit %d: %s", evaluator, code, stderr)
			}
			if !strings.Contains(stdout, "predicted") || !strings.Contains(stdout, "step times are measured (eager mode, median of 2") {
				t.Errorf("%s: the table does not tell:\n%s", evaluator, stdout)
			}
			return result(t, out)
		}
		first := run("1")
		m := first.Measured
		lines, err := os.ReadFile(cache)
		if err != nil {
			t.Fatal(err)
		}
		if m.Placements != bytes.Count(lines, []byte("\n")) || m.Placements < 10 || m.Failed != 0 || !strings.Contains(m.Host, "Fake GPU") {
			t.Errorf("%s: %+v with %d lines in the file", evaluator, m, bytes.Count(lines, []byte("\n")))
		}
		for _, r := range first.Rows {
			if r.Predicted == nil || r.StepTime == *r.Predicted || r.Unmeasured != "" {
				t.Errorf("%s: %s: measured %v beside %v", evaluator, r.Method, r.StepTime, r.Predicted)
			}
		}
		again := run("2")
		if k := again.Measured; k.Placements != 0 || k.Known != m.Placements+m.Known {
			t.Errorf("%s: with the file %+v, without %+v", evaluator, k, m)
		}
		a, b := read(t, dir, evaluator+"1/plan.json"), read(t, dir, evaluator+"2/plan.json")
		if !bytes.Equal(a, b) {
			t.Errorf("%s: another plan with the file than without", evaluator)
		}
	}
}

// TestSearchOfGraphSteps: where steps are measured as captured graphs they are
// predicted as such, from the run folder too.
func TestSearchOfGraphSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, machine := twoOnOne(t, dir)
	text := read(t, dir, "two.json")
	slow := regexp.MustCompile(`"graph_launch": "[^"]*"`).ReplaceAll(text, []byte(`"graph_launch": "500 us"`))
	if bytes.Equal(slow, text) {
		t.Fatalf("no launch in a graph in\n%s", text)
	}
	if err := os.WriteFile(machine, slow, 0o644); err != nil {
		t.Fatal(err)
	}
	predicted := map[string]float64{}
	for _, mode := range []string{"eager", "graph"} {
		out := filepath.Join(dir, mode)
		if code, _, stderr := onFake(t, f, measuredSearch(t, machine, out, "hardware", `"measuring": {"logical": true, "repeats": 2, "mode": "`+mode+`"}`)...); code != 0 {
			t.Fatalf("%s: exit %d: %s", mode, code, stderr)
		}
		predicted[mode] = *result(t, out).Best.Predicted
		if err := os.Remove(filepath.Join(out, "result.json")); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := onFake(t, f, "search", "--resume", out); code != 0 {
			t.Fatalf("%s, resumed: exit %d: %s", mode, code, stderr)
		}
		if p := *result(t, out).Best.Predicted; p != predicted[mode] {
			t.Errorf("%s: predicted %g, resumed %g", mode, predicted[mode], p)
		}
	}
	if predicted["graph"] < 5*predicted["eager"] {
		t.Errorf("predicted %g, %g as a graph whose kernels take half a millisecond more", predicted["eager"], predicted["graph"])
	}
}

// TestOutOfMemoryInSearch: GPUs with less memory than the machine's file says.
// What runs out of memory there is infeasible, whatever the simulator said, and
// the plan is one that runs.
func TestOutOfMemoryInSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := fake.Default()
	args := func(methods, out string) []string {
		return []string{"search", "--workload", "rnnlm:layers=2,unroll=3", "--gpu", "a100", "--gpus", "2", "--methods", methods, "--evaluations", "64", "--workers", "1",
			"--config", settingsFile(t, `"measuring": {"repeats": 1}`), "--evaluator", "hardware", "--out", filepath.Join(dir, out)}
	}
	f.Memory = 1700 << 20
	if code, _, stderr := onFake(t, f, args("human,single,GO-one", "run")...); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	r := result(t, filepath.Join(dir, "run"))
	if single := r.Rows[1]; single.Feasible || single.Overflow < 1 || single.Predicted == nil {
		t.Errorf("all on one GPU of 1.7 GiB: %+v", single)
	}
	if !r.Best.Feasible || r.Measured.OutOfMemory < 1 || r.Measured.OutOfMemory >= r.Measured.Placements {
		t.Errorf("best %+v, measured %+v", r.Best, r.Measured)
	}
	f.Memory = 1 << 30
	if code, stdout, stderr := onFake(t, f, args("human", "small")...); code != exitInfeasible || !strings.Contains(stdout, "nothing fits") || !strings.Contains(stderr, "placer: infeasible: the best plan found takes ") {
		t.Errorf("GPUs of 1 GiB: exit %d\n%s%s", code, stdout, stderr)
	}
}

// TestCannotBeMeasured: what the GPUs here cannot stand for is a mistake of usage,
// told before anything is written.
func TestCannotBeMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, machine := twoOnOne(t, dir)
	cache := filepath.Join(dir, "cache")
	if err := os.WriteFile(cache, []byte("no measurement\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, more := range map[string][]string{
		"more GPUs than the 1 here: --logical": {"--machine", machine},
		"a graph cannot hold":                  {"--gpu", "a100", "--gpus", "1", "--cpu", "--config", settingsFile(t, `"measuring": {"mode": "graph"}`)},
		"line 1: no measurement":               {"--machine", machine, "--config", settingsFile(t, onOneGPU, `"measurements": "`+cache+`"`)},
	} {
		out := filepath.Join(dir, "run")
		code, _, stderr := onFake(t, f, append([]string{"search", "--workload", "rnnlm:layers=2,unroll=3", "--evaluator", "hardware", "--out", out}, more...)...)
		if code == 0 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d: %s; want %q", more, code, stderr, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: a run folder was made", more)
		}
	}
}
