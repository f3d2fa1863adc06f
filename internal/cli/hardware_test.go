package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"placer/hw"
	"placer/hw/bench"
	"placer/hw/gpu"
	"placer/hw/gpu/fake"
	"placer/internal/report"
)

// onFake runs a command line on a host of two fake GPUs.
func onFake(t *testing.T, cfg fake.Config, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	g := fake.New(cfg)
	h := noHardware()
	h.open = func(string, string) (gpu.Driver, gpu.BLAS, error) { return g, g.BLAS(), nil }
	var out, err bytes.Buffer
	c := &console{in: strings.NewReader(""), out: &out, err: &err, clock: g.Clock, cpu: g.Clock, hardware: h, now: func() time.Time { return time.Unix(0, 0) }}
	code = c.run(context.Background(), args)
	return code, out.String(), err.String()
}

// TestBenchHardware: tables, the document, and a machine file that search takes.
func TestBenchHardware(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, machine := filepath.Join(dir, "hardware.json"), filepath.Join(dir, "machine.json")
	code, stdout, stderr := onFake(t, fake.Default(), "bench", "hw", "--quick", "--calibrate", "-o", out, "--machine-file", machine, "--cpu=false")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"Fake GPU", "bf16", "gpu:0", "direct", "fitted, unseen shapes", "1970-01-01"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var r bench.Result
	if err := json.Unmarshal(data, &r); err != nil || len(r.Devices) != 2 || r.Format != bench.Format {
		t.Errorf("%v: %d devices, format %q", err, len(r.Devices), r.Format)
	}
	m, err := hw.ReadFile(machine)
	if err != nil || m.NumDevices() != 2 {
		t.Fatalf("machine file: %v", err)
	}
	code, stdout, stderr = onFake(t, fake.Default(), "search", "--workload", "rnnlm2", "--machine", machine, "--methods", "human,single", "--evaluations", "1", "--out", filepath.Join(dir, "run"))
	if code != 0 || !strings.Contains(stdout, "human") {
		t.Errorf("search on the measured machine: exit %d: %s", code, stderr)
	}
}

// TestMeasure: a plan that search has found, measured on one fake GPU that stands
// for two, with the trace and the document.
func TestMeasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	do := func(cfg fake.Config, want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := onFake(t, cfg, args...)
		if code != want {
			t.Fatalf("%v: exit %d, want %d: %s", args, code, want, stderr)
		}
		return stdout + stderr
	}
	f := fake.Default()
	f.Devices, f.Memory = 1, 60<<30
	do(f, 0, "machines", "split", "--gpu", "a100", "--parts", "2", "--link", "20 GB/s", "-o", path("two.json"))
	do(f, 0, "search", "--workload", "rnnlm:layers=2,unroll=3", "--machine", path("two.json"), "--methods", "human,polish", "--evaluations", "64", "--out", path("run"), "-o", path("plan.json"))
	plan := []string{"measure", "--workload", "rnnlm:layers=2,unroll=3", "--machine", path("two.json"), "--plan", path("plan.json")}
	if out := do(f, 2, plan...); !strings.Contains(out, "--logical") {
		t.Errorf("two GPUs on one: %s", out)
	}
	out := do(f, 0, append(plan, "--logical", "--mode", "both", "--repeats", "3", "--trace", path("step.json"))...)
	for _, want := range []string{"eager", "graph", "gemm", "fused elementwise", "GPU 0, Fake GPU", "predicted step"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if data, err := os.ReadFile(path("step.json")); err != nil || !bytes.Contains(data, []byte("traceEvents")) {
		t.Errorf("trace: %v", err)
	}
	f.Memory = 1 << 30
	if out := do(f, 3, append(plan, "--logical")...); !strings.Contains(out, "infeasible") {
		t.Errorf("a small GPU: %s", out)
	}
}

// TestMeasureOwnTimes: the kernels of a graph whose file has times in place of shapes are
// not those of the graph, so nothing is measured.
func TestMeasureOwnTimes(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(t.TempDir(), "profile.txt")
	text := "node1 -- Input0 -- forward_compute_time=6.000, backward_compute_time=0.000, activation_size=64.0, parameter_size=0.000\n"
	if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := onFake(t, fake.Default(), "measure", "--graph", profile, "--gpu", "a100", "--plan", "plan.json")
	if code != exitUsage || !strings.Contains(stderr, "brings op times of its own") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestBenchSteps: the comparison of steps with their predictions on a fake GPU,
// whose machine file bench hw has made: by its constants the steps come out well,
// by the built-in ones worse.
func TestBenchSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	f := fake.Default()
	f.Devices, f.Memory, f.Call, f.Divided = 1, 60<<30, 100, true
	do := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := onFake(t, f, args...)
		if code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, stderr)
		}
		return stdout
	}
	errs := map[string]report.Errors{}
	for _, name := range []string{"fitted", "builtin"} {
		args := []string{"bench", "hw", "--quick", "--machine-file", path(name), "--cpu=false"}
		if name == "fitted" {
			args = append(args, "--calibrate")
		}
		do(args...)
		out := do("bench", "steps", "--machine", path(name), "--workloads", "rnnlm:layers=2,unroll=3", "--rank", "rnnlm:layers=2,unroll=3", "--devices", "1,2", "--plans", "12", "--repeats", "1",
			"--partition", "-o", path("steps-"+name))
		text, err := os.ReadFile(path("steps-" + name))
		if err != nil {
			t.Fatal(err)
		}
		var doc report.Steps
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Trials) != 2*2*2+12 || len(doc.Summary) != 3 || doc.Format != report.StepsFormat || !strings.Contains(out, "random plans, rnnlm") || !strings.Contains(out, "human, fused") {
			t.Errorf("%s: %d trials, summary %+v:\n%s", name, len(doc.Trials), doc.Summary, out)
		}
		if (name == "fitted") != (len(doc.Shares) == 1) {
			t.Errorf("%s: shares %v", name, doc.Shares)
		}
		for _, x := range doc.Trials {
			if (len(x.Classes) > 0) != (x.Plan == "human" && x.Mode == "eager") || len(x.Steps) != 1 || !(x.Issue > 0) {
				t.Errorf("%s: %+v", name, x)
			}
			if x.Failed != "" || !(x.Measured > 0) || (x.Plan == "human, fused") != (x.Kernels < doc.Trials[0].Kernels) || x.Devices == 2 && x.SMs != f.SMs/2 {
				t.Errorf("%s: %+v", name, x)
			}
		}
		for _, e := range doc.Summary {
			if e.Of == "plans by rule, graph" {
				errs[name] = e
			}
		}
		t.Logf("%s: %+v", name, doc.Summary)
	}
	if a, b := errs["fitted"].MAPE, errs["builtin"].MAPE; a > 0.05 || a > b {
		t.Errorf("mean error %.3f by the fitted constants, %.3f by the built-in ones", a, b)
	}
	if out := do("bench", "steps", "--machine", path("fitted"), "--workloads", "rnnlm:layers=2,unroll=3", "--plans", "0", "--devices", "1", "--budget", "1ns"); !strings.Contains(out, "ended before") {
		t.Errorf("a budget of nothing:\n%s", out)
	}
	f.Memory = 1 << 30
	do("bench", "hw", "--quick", "--machine-file", path("small"), "--cpu=false")
	if out := do("bench", "steps", "--machine", path("small"), "--workloads", "rnnlm:layers=2,unroll=3", "--rank", "rnnlm:layers=2,unroll=3", "--plans", "1", "--devices", "1,2"); !strings.Contains(out, "cannot fit") {
		t.Errorf("a graph that fits nowhere:\n%s", out)
	}
}
