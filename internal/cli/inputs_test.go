package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"placer/graph/formats"
	"placer/graph/formats/onnx"
	"placer/graph/formats/times"
	"placer/internal/fsx"
	"placer/internal/report"
	"placer/placer/methods"
	"placer/placer/pretrained"
)

// functionsModel is an ONNX file that leaves its batch open.
func functionsModel(t *testing.T) string {
	t.Helper()
	return modelFile(t, "functions.onnx")
}

// A size that the command line gives stands beside a settings file that gives none.
func TestConfigBesideDim(t *testing.T) {
	file := settingsText(t, `{"format": "placer run 1", "graph": "`+functionsModel(t)+`"}`)
	var got settings
	if err := json.Unmarshal([]byte(printed(t, "--config", file, "--dim", "batch=4")), &got); err != nil || got.Dims["batch"] != 4 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A machine on the command line takes the place of the file's with its count of GPUs.
func TestMachineBesideConfig(t *testing.T) {
	file := settingsText(t, printed(t, "--workload", smallGraph, "--gpu", "a100", "--gpus", "8", "--methods", "human"))
	var got settings
	if err := json.Unmarshal([]byte(printed(t, "--config", file, "--machine", machineFile(t))), &got); err != nil || got.GPUs != 0 || got.CPU {
		t.Errorf("%+v, %v", got, err)
	}
}

// Settings are printed on a host that could not measure by them, and nothing else beside them.
func TestPrintConfigNeedsNoGPU(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, flags := range [][]string{{"--evaluator", "both"}, {"--policy-device", "cuda", "--tasks", "place"}} {
		if got := printed(t, append([]string{"--workload", smallGraph, "--gpus", "2"}, flags...)...); !strings.Contains(got, `"format": "placer run 1"`) {
			t.Errorf("%v: %s", flags, got)
		}
	}
	got := command(t, []string{"search", "--print-config", "--workload", smallGraph, "--json"})
	if got != "! placer: --json does not go with --print-config\nexit 2\n" {
		t.Error(got)
	}
}

// A machine is the same from a file and from stdin, its CPU included.
func TestMachineFromStdin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box.json")
	if got := command(t, []string{"machines", "init", "--gpu", "rtx4090", "--cpu", "64GB", "-o", path, "-q"}); strings.Contains(got, "exit") {
		t.Fatal(got)
	}
	file, stdin := command(t, []string{"machines", "--machine", path}), command(t, []string{"machines", "--machine", "-", "<", path})
	if file != stdin || !strings.Contains(file, "CPU of") {
		t.Errorf("from the file\n%s, from stdin\n%s", file, stdin)
	}
}

// A CPU that is asked for has to be there.
func TestCPUThatIsNotThere(t *testing.T) {
	gpus := machineFile(t)
	for _, args := range [][]string{
		{"fit", "--workload", smallGraph, "--machine", gpus, "--cpu"},
		{"strategies", "--workload", smallGraph, "--gpu", "a100", "--cpu"},
	} {
		if got := command(t, args); !strings.HasPrefix(got, "! placer: --cpu: ") || !strings.HasSuffix(got, "exit 2\n") {
			t.Errorf("%v: %s", args, got)
		}
	}
}

// At most one input is stdin, plans and settings included.
func TestOneStdin(t *testing.T) {
	for _, args := range [][]string{
		{"search", "--graph", "-", "--from", "-"},
		{"search", "--config", "-", "--graph", "-"},
		{"verdict", "--graph", "-", "--machine", "-"},
	} {
		if got := command(t, args); got != "! placer: only one input can come from stdin\nexit 2\n" {
			t.Errorf("%v: %s", args, got)
		}
	}
}

// A mistake in what a search is asked for leaves no folder behind.
func TestMistakesLeaveNoFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for flag, want := range map[string]string{
		"--for=nonsense": "unknown target",
		"--config=" + settingsText(t, `{"format": "placer run 1", "objective": "memory", "hub": {"address": "127.0.0.1:0"}}`): "hub.address: workers evaluate step times",
		"--config=" + settingsText(t, `{"format": "placer run 1", "robust": "p95", "hub": {"address": "127.0.0.1:0"}}`):       "hub.address: workers evaluate steps on the machine as it is",
	} {
		got := command(t, []string{"search", "--workload", smallGraph, "--gpus", "2", "--evaluations", "1", flag})
		if !strings.Contains(got, want) || !strings.HasSuffix(got, "exit 2\n") {
			t.Errorf("%s: %s", flag, got)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A search that began from a plan on stdin is gone on with from that plan.
func TestResumedFromStdin(t *testing.T) {
	t.Chdir(t.TempDir())
	graph := []string{"--workload", smallGraph, "--gpus", "2"}
	search := append([]string{"search", "-q", "--methods", "single", "--evaluations", "1"}, graph...)
	for _, args := range [][]string{
		append(search, "--out", "first"),
		append(search, "--out", "second", "--from", "-", "<", "first/plan.json"),
	} {
		if got := command(t, args); strings.Contains(got, "exit") {
			t.Fatal(got)
		}
	}
	if err := os.Remove("second/result.json"); err != nil {
		t.Fatal(err)
	}
	if got := command(t, []string{"search", "--resume", "second", "-q"}); strings.Contains(got, "exit") || !strings.Contains(got, "given") {
		t.Error(got)
	}
}

// A run that names its graph by a relative path is gone on with in the folder where it began,
// whatever the file is called; elsewhere the error says so.
func TestResumedByRelativePaths(t *testing.T) {
	for _, name := range []string{"net.json", "graph.json"} { // as a run folder has a graph from stdin
		t.Chdir(t.TempDir())
		for _, args := range [][]string{
			{"import", "--workload", smallGraph, "-q", "-o", name},
			{"search", "-q", "--graph", name, "--gpus", "2", "--methods", "single", "--evaluations", "1", "--out", "first", "-o", "from.json"},
			{"search", "-q", "--graph", name, "--gpus", "2", "--methods", "single", "--evaluations", "1", "--out", "run", "--from", "from.json"},
		} {
			if got := command(t, args); strings.Contains(got, "exit") {
				t.Fatal(got)
			}
		}
		if err := os.Remove("run/result.json"); err != nil {
			t.Fatal(err)
		}
		if got := command(t, []string{"search", "--resume", "run", "-q"}); strings.Contains(got, "exit") || !strings.Contains(got, "given") {
			t.Errorf("%s: %s", name, got)
		}
		if err := os.Remove("run/result.json"); err != nil {
			t.Fatal(err)
		}
		run, err := filepath.Abs("run")
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(t.TempDir())
		if got := command(t, []string{"search", "--resume", run, "-q"}); !strings.Contains(got, name+": no such file or directory: the run names it from the folder in which it was begun") {
			t.Errorf("%s elsewhere: %s", name, got)
		}
	}
}

// A run whose best plan does not fit says so as often as it is asked for.
func TestResumedThatDoesNotFit(t *testing.T) {
	t.Chdir(t.TempDir())
	search := []string{"search", "-q", "--workload", "rnnlm8", "--gpus", "1", "--methods", "single", "--evaluations", "1", "--out", "run"}
	for _, args := range [][]string{search, {"search", "-q", "--resume", "run"}} {
		if got := command(t, args); !strings.Contains(got, "! placer: infeasible: ") || !strings.HasSuffix(got, "exit 3\n") || strings.Contains(got, "is complete") {
			t.Errorf("%v: %s", args, got)
		}
	}
}

// A robust search within a budget in evaluations that is killed and resumed ends as it would have.
func TestResumedRobustSearch(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := command(t, []string{"search", "-q", "--workload", smallGraph, "--gpus", "2", "--robust", "p95", "--evaluations", "60", "--out", "run"}); strings.Contains(got, "exit") {
		t.Fatal(got)
	}
	figures := func() (evaluations int, plan string) {
		var doc report.Search
		if err := json.Unmarshal(read(t, "run", "result.json"), &doc); err != nil {
			t.Fatal(err)
		}
		return doc.Evaluations, string(read(t, "run", "plan.json"))
	}
	evaluations, plan := figures()
	doc := result(t, "run")
	if r := doc.Robust; r == nil || r.Quantile != 0.95 || r.Machines != 50 || r.Error <= 0 {
		t.Errorf("the document does not say what its step times are: %+v", r)
	}
	if doc.BestRule == nil || doc.BestRule.Method == methods.GivenName || doc.Given == nil || doc.Given.Method != methods.GivenName {
		t.Errorf("held against the rule %+v and the plans for the machine as it is, %+v", doc.BestRule, doc.Given)
	}
	if !(doc.LowerBound > 0 && doc.LowerBound <= doc.UnfusedBound && doc.LowerBound < doc.Best.StepTime) {
		t.Errorf("bounds %v and %v of a step of %v", doc.LowerBound, doc.UnfusedBound, doc.Best.StepTime)
	}
	if page := string(read(t, "run", "report.html")); !strings.Contains(page, "the timeline is of the machine as it is") {
		t.Error("the page does not say which step it shows")
	}
	if err := os.Remove("run/result.json"); err != nil { // as before the end
		t.Fatal(err)
	}
	if got := command(t, []string{"search", "-q", "--resume", "run"}); strings.Contains(got, "exit") {
		t.Fatal(got)
	}
	if n, p := figures(); n != evaluations || p != plan {
		t.Errorf("%d evaluations after a kill, %d without; the same plan: %v", n, evaluations, p == plan)
	}
}

// A robust search that is stopped while it looks at the machine as it is writes the best plan that it has.
func TestStoppedRobustSearch(t *testing.T) {
	t.Chdir(t.TempDir())
	console, _, log := realClock(nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	time.AfterFunc(2*time.Second, stop)
	code := console.run(ctx, []string{"search", "-q", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--robust", "p95", "--methods", "human,anneal", "--budget", "10m", "--out", "run"})
	if doc := result(t, "run"); code != exitInterrupted || !doc.Interrupted || doc.Best.Method != methods.GivenName || !doc.Best.Feasible || doc.Robust == nil {
		t.Errorf("exit %d, interrupted %v, best %+v: %s", code, doc.Interrupted, doc.Best, log)
	}
	if text := log.String(); !strings.Contains(text, "placer search --resume run") {
		t.Errorf("it says %s", text)
	}
}

// What a search finds for a program is in its document.
func TestRestrictedIsReported(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	model := `{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "torch_dtype": "float32"}`
	if err := os.WriteFile(config, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runHere("search", "-q", "--graph", config, "--dim", "seq=32", "--gpu", "a100", "--gpus", "2", "--objective", "throughput", "--methods", "single", "--evaluations", "1", "--for", "vllm", "--json", "--out", filepath.Join(dir, "run"))
	var doc report.Search
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != 0 || doc.Restricted == nil || doc.Restricted.Program != "vllm" || !doc.Restricted.Feasible || doc.Restricted.Value <= 0 {
		t.Errorf("exit %d: %v: %s%s", code, err, stdout, stderr)
	}
	var kept report.Search
	if err := json.Unmarshal(read(t, dir, "run/result.json"), &kept); err != nil || kept.Restricted == nil || *kept.Restricted != *doc.Restricted {
		t.Errorf("the run folder: %+v, %v", kept.Restricted, err)
	}
}

// TestStoppedAnswers: Ctrl-C ends commands that answer about a plan, too.
func TestStoppedAnswers(t *testing.T) {
	dir := t.TempDir()
	graph := []string{"--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2"}
	planFile := filepath.Join(dir, "plan.json")
	if code, _, stderr := runHere(append([]string{"place", "-q", "-o", planFile}, graph...)...); code != 0 {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{
		append([]string{"explain", "--evaluations", "100000000", "--plan", planFile}, graph...),
		append([]string{"check", "--plan", planFile}, graph...),
		append([]string{"simulate", "--robust", "p95", "--plan", planFile}, graph...),
	} {
		console, _, log := realClock(nil)
		ctx, stop := context.WithCancel(t.Context())
		if slices.Contains(args, "--evaluations") {
			time.AfterFunc(time.Second, stop)
		} else {
			stop()
		}
		if code := console.run(ctx, append(args, "-q")); code != exitInterrupted || log.String() != "placer: interrupted\n" {
			t.Errorf("%v: exit %d: %s", args, code, log)
		}
		stop()
	}
}

// A comparison of strategies that is stopped says in its document that rows are missing.
func TestStoppedStrategies(t *testing.T) {
	console, out, log := realClock(nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	code := console.run(ctx, []string{"strategies", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--evaluations", "5", "-q", "--json"})
	var doc report.Strategies
	if err := json.Unmarshal([]byte(out.String()), &doc); err != nil || code != exitInterrupted || !doc.Interrupted {
		t.Errorf("exit %d, %v: %s%s", code, err, out, log)
	}
}

// A fit that is stopped does not say that nothing fits.
func TestStoppedFit(t *testing.T) {
	console, _, log := realClock(nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if code := console.run(ctx, []string{"fit", "--workload", "llama:layers=4,batch=8", "--gpu", "p100", "--gpus", "1", "-q"}); code != exitInterrupted {
		t.Errorf("exit %d: %s", code, log)
	}
}

// A plan that does not fit is said not to, beside its spread too.
func TestSpreadOfWhatDoesNotFit(t *testing.T) {
	machine := machineFile(t)
	data, err := os.ReadFile(machine)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte(`"42550034432 B"`), []byte(`"880000000 B"`)) // the state fits two of them, and little more
	if err := os.WriteFile(machine, data, 0o600); err != nil {
		t.Fatal(err)
	}
	planFile, graph := filepath.Join(t.TempDir(), "plan.json"), []string{"--workload", smallGraph, "--machine", machine}
	if code, _, stderr := runHere(append([]string{"place", "-q", "--samples", "1", "-o", planFile}, graph...)...); code != exitInfeasible {
		t.Fatal(code, stderr)
	}
	code, stdout, stderr := runHere(append([]string{"simulate", "-q", "--json", "--robust", "p95", "--plan", planFile}, graph...)...)
	if code != exitInfeasible || !strings.Contains(stdout, `"feasible": false`) {
		t.Errorf("exit %d: %.600s%s", code, stdout, stderr)
	}
}

// TestCompressedInputs: plans, schedules, machines, times, settings and policies are read from what gzip
// has compressed as from the files themselves, from stdin too.
func TestCompressedInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	graph := []string{"--workload", smallGraph}
	on := append([]string{"--machine", "box.json"}, graph...)
	pack := func(name string) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(read(t, ".", name)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"machines", "init", "-q", "--gpu", "rtx4090", "--gpus", "2", "--cpu", "64GB", "-o", "box.json"},
		append([]string{"search", "-q", "--methods", "single,heft", "--evaluations", "1", "--out", "run", "-o", "plan.json"}, on...),
		append([]string{"export", "-q", "--to", "schedule", "--plan", "plan.json", "-o", "schedule.json"}, on...),
		append([]string{"import", "-q", "-o", "graph.json"}, graph...),
	} {
		if got := command(t, args); strings.Contains(got, "exit") {
			t.Fatal(got)
		}
	}
	if err := os.WriteFile("times.json", timesOf(t, "graph.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("settings.json", []byte(`{"format": "placer run 1", "methods": ["single"], "seed": 7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := pretrained.Policy()
	if err != nil {
		t.Fatal(err)
	}
	if err := fsx.WriteFile("policy.safetensors", policy.Write); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"place", "--card", "--policy", "policy.safetensors"},
		append([]string{"simulate", "--plan", "plan.json"}, on...),
		append([]string{"simulate", "--plan", "-"}, append(slices.Clone(on), "<", "plan.json")...),
		append([]string{"check", "--plan", "schedule.json"}, on...),
		append([]string{"check", "--plan", "plan.json"}, on...),
		append([]string{"explain", "--plan", "plan.json", "--evaluations", "1"}, on...),
		append([]string{"export", "--to", "schedule", "-o", "-", "--plan", "plan.json"}, on...),
		append([]string{"search", "--print-config", "--from", "plan.json"}, on...),
		append([]string{"search", "--print-config", "--config", "settings.json"}, on...),
		{"machines", "--machine", "box.json"},
		{"machines", "--machine", "-", "<", "box.json"},
		{"place", "--graph", "graph.json", "--times", "times.json", "-o", "-"},
	}
	var plain []string
	for _, args := range commands {
		got := command(t, args)
		if strings.Contains(got, "exit") {
			t.Fatalf("%v: %s", args, got)
		}
		plain = append(plain, got)
	}
	for _, name := range []string{"plan.json", "schedule.json", "box.json", "graph.json", "times.json", "settings.json", "policy.safetensors"} {
		pack(name)
	}
	for k, args := range commands {
		if got := command(t, args); got != plain[k] {
			t.Errorf("%v:\n%s\nof the files themselves:\n%s", args, got, plain[k])
		}
	}
}

// timesOf is a file of times for the graph in the file at path, on one device.
func timesOf(t *testing.T, path string) []byte {
	t.Helper()
	f, err := formats.ReadFile(path, onnx.Default())
	if err != nil {
		t.Fatal(err)
	}
	x := times.Table{GraphHash: f.Graph.Hash(), Source: "a test", Bandwidth: 1e9, Models: []times.Model{{Name: "box", Count: 1, Memory: 1 << 40, Seconds: make([]float64, f.Graph.NumOps())}}}
	for i := range x.Models[0].Seconds {
		x.Models[0].Seconds[i] = 1e-3 // s
	}
	var b bytes.Buffer
	if err := x.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A flag that cannot be meant and a file of another kind are named as what they are, before
// anything is written.
func TestSlips(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"box.json": `{"format": "placer machine 1", "name": "x"}`, "stages.json": `{"module_to_stage_map": [0], "stage_to_rank_map": {"0": [0]}}`, "index.json": `{"metadata": {}, "weight_map": {}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	graph := "--workload " + smallGraph
	for args, want := range map[string]string{
		"completion":                                       "say for which shell: placer completion bash, fish, powershell, zsh\nexit 2",
		"completion tcsh":                                  "completion tcsh: want one of bash, fish, powershell, zsh\nexit 2",
		"simulate -o x":                                    "unknown flag -o; placer simulate --help lists them\nexit 2",
		"search --workers 1025 " + graph:                   "--workers: 1025, want 1 to 1024\nexit 2",
		"machines split --latency soon":                    "--latency: quantity \"soon\": want a number and a unit in s\nexit 2",
		"machines split --sms -1":                          "--sms -1: want 0, for parts that share all multiprocessors, or more\nexit 2",
		"simulate --plan p.json --times box.json " + graph: "box.json: format is \"placer machine 1\", want \"placer times 1\"\nexit 1",
		"search --config box.json " + graph:                "box.json: format is \"placer machine 1\", want \"placer run 1\"\nexit 1",
		"import --graph stages.json":                       "stages.json: looks like a configuration of PipeDream's stages, which pipeline --conf reads beside a profile; ",
		"import --graph index.json":                        "index.json: looks like the index of weights in several files: ",
	} {
		if got := command(t, strings.Fields(args)); !strings.HasPrefix(got, "! placer: "+want) {
			t.Errorf("%s:\n%swant %s", args, got, want)
		}
	}
	files, err := os.ReadDir(".")
	if err != nil || len(files) != 3 {
		t.Errorf("%v files are left, want the three that were there: %v", files, err)
	}
	if got := command(t, []string{"completion", "bash"}); !strings.Contains(got, "__start_placer") {
		t.Errorf("no script of bash: %.200s", got)
	}
}
