//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"placer/internal/report"
	"placer/measure/python/pythontest"
)

const twoCores = `{"format": "placer machine 1", "name": "two cores",
"models": {"core": {"kind": "cpu", "capacity": "4 GiB", "memory_bandwidth": "30 GB/s", "peak": {"f32": "50 GFLOP/s"}, "launch": "3 us", "sms": 1, "l2": "1 MB", "source": "a test"}},
"devices": [{"name": "cpu:[0-1]", "model": "core"}],
"cables": [{"ends": ["cpu:0", "cpu:1"], "bandwidth": "12 GB/s", "latency": "2 us", "source": "a test"}]}`

const branches = `{"format": "placer graph 1", "name": "branches", "ops": [
  {"name": "x", "kind": "Placeholder", "out": [{"shape": [64, 64]}]},
  {"name": "left", "kind": "MatMul", "flops": 524288, "gemm": [1, 64, 64, 64], "in": ["x", "x"], "out": [{"shape": [64, 64]}]},
  {"name": "right", "kind": "MatMul", "flops": 1048576, "gemm": [1, 128, 64, 64], "in": ["x", "x"], "out": [{"shape": [64, 64]}]},
  {"name": "y", "kind": "AddV2", "flops": 4096, "in": ["left", "right"], "out": [{"shape": [64, 64]}]}
]}`

// torchCase writes graph, machine and the plan of a search, and returns the command line
// that measures the plan.
func torchCase(t *testing.T) (dir string, measure []string) {
	t.Helper()
	dir = t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"graph.json": branches, "machine.json": twoCores} {
		if err := os.WriteFile(path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := []string{"--graph", path("graph.json"), "--machine", path("machine.json")}
	code, _, stderr := runHere(append([]string{"search", "--methods", "heft", "--tasks", "place,schedule", "--evaluations", "5", "--out", path("run"), "-o", path("plan.json")}, in...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	return dir, append([]string{"measure", "--runtime", "torch", "--plan", path("plan.json")}, in...)
}

func runHere(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = newConsole(strings.NewReader(""), &out, &err).run(context.Background(), args)
	return code, out.String(), err.String()
}

// The stand-in takes its factor times what the schedule predicts, so every figure
// beside a prediction is known.
func TestMeasureTorch(t *testing.T) {
	dir, measure := torchCase(t)
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(pythontest.Behaviour, pythontest.Serves)
	trace := filepath.Join(dir, "step.json")
	measure = append(measure, "--python", me)
	code, stdout, stderr := runHere(append(measure, "--json", "--trace", trace)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var d report.RuntimeMeasurement
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatal(err)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if d.Format != "placer runtime measurement 1" || d.Runtime != "torch 0.0-stand-in" || d.Method != "heft" || d.Clock != "virtual" || d.Equal == nil || !*d.Equal {
		t.Errorf("document %+v", d)
	}
	if d.Step <= 0 || !near(d.Step, pythontest.Factor*d.Predicted) || !near(d.Error, 1/pythontest.Factor-1) {
		t.Errorf("step %v, predicted %v, error %v", d.Step, d.Predicted, d.Error)
	}
	for _, x := range d.Devices {
		if !near(x.Busy, pythontest.Factor*x.PredictedBusy) {
			t.Errorf("device %s: busy %v, predicted %v", x.Name, x.Busy, x.PredictedBusy)
		}
	}
	ops := 0
	for _, x := range d.Classes {
		ops += x.Ops
		if !near(x.Measured, pythontest.Factor*x.Predicted) || x.Predicted <= 0 || !near(x.MAPE, 1-1/pythontest.Factor) {
			t.Errorf("class %+v", x)
		}
	}
	if len(d.Devices) != 2 || ops != 3 {
		t.Errorf("%d devices, %d ops in classes, want 2 and 3", len(d.Devices), ops)
	}
	if data, err := os.ReadFile(trace); err != nil || !strings.Contains(string(data), `"left"`) {
		t.Errorf("trace: %v\n%s", err, data)
	}
	code, stdout, stderr = runHere(append(measure, "--clock", "wall")...)
	for _, want := range []string{"branches: 4 ops on two cores, 2 devices; placed by heft; torch 0.0-stand-in", "(wall clock)", "-20.0%", "load of others 0.50 cores", "results equal", "cpu:1", "gemm"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, no %q in\n%s%s", code, want, stdout, stderr)
		}
	}
}

func TestMeasureTorchErrors(t *testing.T) {
	_, measure := torchCase(t)
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, behaviour string
		args            []string
		code            int
		want            string
	}{
		{"no python", "", []string{"--python", "no-such-python"}, 4, "no PyTorch"},
		{"no torch", pythontest.NoTorch, []string{"--python", me}, 4, "No module named 'torch'"},
		{"refused", pythontest.Fails, []string{"--python", me}, 1, "op mm is not in the step"},
		{"dies", pythontest.Dies, []string{"--python", me}, 1, "worker cpu:1"},
		{"mode", "", []string{"--mode", "graph"}, 2, "--mode does not go with --runtime torch"},
		{"clock", "", []string{"--clock", "sun"}, 2, "--clock sun"},
		{"runtime", "", []string{"--runtime", "jax"}, 2, "--runtime jax: want one of kernels, torch, tensorflow"}, {"clock", "", []string{"--runtime", "tensorflow", "--clock", "virtual"}, 2, "--clock virtual: --runtime tensorflow has wall"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.behaviour != "" {
				t.Setenv(pythontest.Behaviour, c.behaviour)
			}
			code, stdout, stderr := runHere(append(append([]string{}, measure...), c.args...)...)
			last := stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n")+1:]
			if code != c.code || stdout != "" || !strings.Contains(last, c.want) {
				t.Errorf("exit %d, stdout %q, stderr %q; want exit %d and %q", code, stdout, stderr, c.code, c.want)
			}
		})
	}
	if code, _, stderr := runHere("measure", "--workload", "rnnlm2", "--plan", "p.json", "--clock", "wall"); code != 2 || !strings.Contains(stderr, "--clock does not go with --runtime kernels") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := runHere("measure", "--workload", "rnnlm2", "--plan", "p.json", "--runtime", "torch"); code != 2 || !strings.Contains(stderr, "--graph FILE") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// realTorch captures and profiles a small model with the torch of $PLACER_TORCH_PYTHON
// and returns that python, the model's folder and the flags that name its files.
func realTorch(t *testing.T) (python string, path func(name string) string, in []string) {
	t.Helper()
	python = os.Getenv("PLACER_TORCH_PYTHON")
	if python == "" {
		t.Skip("PLACER_TORCH_PYTHON names no python with torch")
	}
	dir := t.TempDir()
	path = func(name string) string { return filepath.Join(dir, name) }
	runPackage(t, python, "placer_torch", "capture", "--model", "tests.models:tiny", "-o", dir)
	runPackage(t, python, "placer_torch", "profile", "--program", path("program.pt"), "--devices", "cpu:2", "-o", dir)
	return python, path, []string{"--graph", path("graph.json"), "--machine", path("machine.json"), "--times", path("times.json"), "--cpu"}
}

// runPackage runs a command of a package of Python, which finds this program as placer.
func runPackage(t *testing.T, python, name string, args ...string) {
	t.Helper()
	source, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", source)
	c := exec.Command(python, append([]string{"-m", name}, args...)...)
	c.Env = append(os.Environ(), asProgram+"=1", "PLACER="+me)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// TestMeasureTorchReal searches and measures with real torch.
func TestMeasureTorchReal(t *testing.T) {
	python, path, in := realTorch(t)
	measureReal(t, "torch", python, path, in)
}

// TestMeasureTensorFlowReal does so with the TensorFlow of $PLACER_TENSORFLOW_PYTHON.
func TestMeasureTensorFlowReal(t *testing.T) {
	python := os.Getenv("PLACER_TENSORFLOW_PYTHON")
	if python == "" {
		t.Skip("PLACER_TENSORFLOW_PYTHON names no python with TensorFlow")
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	runPackage(t, python, "placer_tensorflow", "capture", "--model", "placer_tensorflow.examples:lstm", "--args", `{"hidden": 16, "batch": 4, "steps": 3, "vocab": 50}`, "-o", dir)
	runPackage(t, python, "placer_tensorflow", "profile", "--graph", path("graph.pb"), "--devices", "2", "--steps", "3", "-o", dir)
	measureReal(t, "tensorflow", python, path, []string{"--graph", path("graph.pb"), "--machine", path("machine.json"), "--times", path("times.json"), "--cpu"})
}

// measureReal searches a plan and measures it by a runtime.
func measureReal(t *testing.T, runtime, python string, path func(string) string, in []string) {
	t.Helper()
	code, _, stderr := runHere(append([]string{"search", "--methods", "single,random", "--tasks", "place,schedule", "--evaluations", "20", "--out", path("run"), "-o", path("plan.json")}, in...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	code, stdout, stderr := runHere(append([]string{"measure", "--runtime", runtime, "--python", python, "--plan", path("plan.json"), "--json"}, in...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var d report.RuntimeMeasurement
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatal(err)
	}
	if d.Equal == nil || !*d.Equal || d.Step <= 0 || d.Predicted <= 0 || len(d.Classes) == 0 {
		t.Errorf("step %v, predicted %v, equal %v, %d classes", d.Step, d.Predicted, d.Equal, len(d.Classes))
	}
}

// TestSearchTorchReal has policies learn from real steps: what the table says of each
// row is what the file of measurements holds.
func TestSearchTorchReal(t *testing.T) {
	python, path, in := realTorch(t)
	for _, evaluator := range []string{"hardware", "both"} {
		out := path(evaluator)
		code, _, stderr := runHere(append([]string{"search", "--methods", "human,single,GO-one", "--evaluations", "48", "--workers", "1", "--evaluator", evaluator,
			"--runtime", "torch", "--python", python, "--config", settingsFile(t, `"measuring": {"repeats": 2}`), "--out", out}, in...)...)
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", evaluator, code, stderr)
		}
		r := result(t, out)
		lines := bytes.Split(bytes.TrimSpace(read(t, out, "measurements.jsonl")), []byte("\n"))
		known := map[float64]bool{}
		plans := map[string]bool{}
		for _, line := range lines {
			var m struct {
				Plan string
				Host string
				Step float64 `json:"step_time_s"`
			}
			if err := json.Unmarshal(line, &m); err != nil || m.Step <= 0 || plans[m.Plan] || !strings.HasPrefix(m.Host, "torch 2.") {
				t.Fatalf("%s: %s: %v", evaluator, line, err)
			}
			known[m.Step], plans[m.Plan] = true, true
		}
		if r.Measured.Failed != 0 || r.Measured.Placements != len(lines) || len(lines) < 4 {
			t.Errorf("%s: %+v, %d lines", evaluator, r.Measured, len(lines))
		}
		for _, row := range r.Rows {
			if !known[row.StepTime] || row.Predicted == nil {
				t.Errorf("%s: %s: %v is no measurement", evaluator, row.Method, row.StepTime)
			}
		}
	}
}
