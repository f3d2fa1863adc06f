// Package experiments_test runs the scripts of the experiments on stand-ins for the program:
// what they record of runs that fail, are interrupted or find nothing.
package experiments_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs a script of a folder with the variables of env and returns its exit code, and all
// that it printed.
func script(t *testing.T, env []string, name string, args ...string) (code int, said string) {
	t.Helper()
	for _, need := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skip(err)
		}
	}
	run := "bash"
	if strings.HasSuffix(name, ".py") {
		run = "python3"
	}
	c := exec.Command(run, append([]string{name}, args...)...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// program writes an executable that does what the lines of a shell script say. There $1 is the
// command, and $out the argument of --out.
func program(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	head := "#!/usr/bin/env bash\nset -eu\nargs=(\"$@\")\nout=\nfor ((k = 0; k < $#; k++)); do [ \"${args[k]}\" != --out ] || out=${args[k + 1]}; done\n"
	if err := os.WriteFile(path, []byte(head+lines), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// searched prints the document of a search whose plan takes a second where the expert's takes two.
const searched = `echo '{"best": {"step_time_s": 1, "feasible": true}, "rows": [{"method": "human", "step_time_s": 2, "cpu_seconds": 0.5, "feasible": true}]}'
`

// TestSearchBudget: a search that was interrupted has no line, and ends the script; one that finds
// nothing that fits has none either, and the script says so in the end.
func TestSearchBudget(t *testing.T) {
	for _, c := range []struct {
		name, exit  string
		code, lines int
	}{{"whole", "exit 0\n", 0, 1}, {"interrupted", "exit 130\n", 130, 0}, {"infeasible", "exit 3\n", 3, 0}} {
		t.Run(c.name, func(t *testing.T) {
			out := t.TempDir()
			env := []string{"PLACER=" + program(t, searched+c.exit), "OUT=" + out, "SECONDS_OF=1", "SEEDS=1", "ROWS=rnnlm2", "SINGLES=", "OLD=", "TASKS=", "FLAGS="}
			code, said := script(t, env, "search-budget/run.sh")
			if code != c.code {
				t.Errorf("exit %d, want %d: %s", code, c.code, said)
			}
			if got := strings.Count(read(t, out, "runs.tsv"), "\n"); got != c.lines {
				t.Errorf("%d lines, want %d", got, c.lines)
			}
			if c.code == 0 && !strings.Contains(read(t, out, "table.md"), "| geometric mean | 50.0% of 1 rows |") {
				t.Errorf("table %s", read(t, out, "table.md"))
			}
			// Searches of other tasks are no lines that are there already.
			if code, said := script(t, append(env, "TASKS=place,schedule,fuse"), "search-budget/run.sh"); code != 2 {
				t.Errorf("exit %d with other tasks, want 2: %s", code, said)
			}
		})
	}
}

// TestRobust: the plan of a search that was interrupted is not kept for the next run, and has no row.
func TestRobust(t *testing.T) {
	out, work := t.TempDir(), t.TempDir()
	placer := program(t, `case $1 in
search) mkdir -p "$out"; echo plan >"$out/plan.json"; exit 130 ;;
simulate) echo '{"step_time_s": 1, "spread": {"median_s": 2, "step_time_s": 3}}' ;;
esac
`)
	code, said := script(t, []string{"PLACER=" + placer, "OUT=" + out, "WORK=" + work, "ROWS=rnnlm2", "EVALUATIONS=", "SEED=", "GPU=", "FLAGS="}, "robust/run.sh")
	if code != 130 {
		t.Errorf("exit %d, want 130: %s", code, said)
	}
	if rows := read(t, out, "rows.tsv"); strings.Count(rows, "\n") != 1 {
		t.Errorf("rows %s, want the head alone", rows)
	}
	if plans, err := filepath.Glob(filepath.Join(work, "*.json")); err != nil || len(plans) > 0 {
		t.Errorf("kept %v, %v", plans, err)
	}
}

// TestVerdict: a verdict that fails fails the script, wherever it runs.
func TestVerdict(t *testing.T) {
	placer := program(t, `case "$*" in *box.json*) exit 1 ;; esac
echo '{}'
`)
	for _, together := range []string{"", "1"} {
		out := t.TempDir()
		code, said := script(t, []string{"PLACER=" + placer, "OUT=" + out, "TOGETHER=" + together, "RESNET=", "BUDGET="}, "verdict/run.sh")
		if code != 1 {
			t.Errorf("TOGETHER=%s: exit %d, want 1: %s", together, code, said)
		}
		if read(t, out, "llama-h100.json") == "" || read(t, out, "llama-box.json") != "" {
			t.Errorf("TOGETHER=%s: what failed is recorded, or what did not is not", together)
		}
	}
}

// TestScale: a search with other settings is none that has a line, and several of one size have a
// table.
func TestScale(t *testing.T) {
	out := t.TempDir()
	placer := program(t, `case $1 in
import) exec touch "$5" ;;
search)
  mkdir -p "$out"
  echo ' 0.1 s  graph, 10 ops, 12 edges' >&2
  echo '{"graph": {"ops": 10, "edges": 12}, "first_feasible_s": 0.1, "seconds": 1, "best_rule": {"method": "human", "value": 2}, "best": {"method": "anneal", "step_time_s": 1}, "lower_bound_s": 0.5, "evaluations": 7}' >"$out/result.json"
  echo '{"feasible": true, "step_time_s": 1, "seconds": 0.2}' >"$out/progress.jsonl" ;;
esac
`)
	for k, env := range [][]string{{"GPUS=8"}, {"GPUS=16"}, {"GPUS=16", "FLAGS=--from-scratch"}, {"GPUS=16"}} {
		code, said := script(t, append([]string{"PLACER=" + placer, "OUT=" + out, "SIZES=10k", "SECONDS_OF=1", "SEED=", "FLAGS="}, env...), "scale/run.sh")
		if code != 0 {
			t.Fatalf("%v: exit %d: %s", env, code, said)
		}
		if got, want := strings.Count(read(t, out, "runs.jsonl"), "\n"), min(k+1, 3); got != want {
			t.Errorf("%v: %d lines, want %d", env, got, want)
		}
	}
	if table := read(t, out, "table.md"); !strings.Contains(table, "| 1 s, 16 GPUs --from-scratch |") || !strings.Contains(table, "| 1 s |") {
		t.Errorf("table %s", table)
	}
}

// TestScaleRecorded: the recorded searches are known by today's settings, and the table is theirs.
func TestScaleRecorded(t *testing.T) {
	code, said := script(t, nil, "scale/summary.py", "scale/runs.jsonl")
	if want := read(t, "scale/table.md"); code != 0 || said != want {
		t.Errorf("exit %d, table %s", code, said)
	}
	code, key := script(t, nil, "scale/one.py", "key", "10k", "moe:layers=4,hidden=1024,heads=16,ffn=3584,seq=1024,experts=18,batch=2,micro_batches=2,attention=products", "8", "60", "1")
	if code != 0 || !strings.Contains(read(t, "scale/runs.jsonl"), strings.TrimSuffix(key, "\n")+", ") {
		t.Errorf("exit %d, no line begins with %s", code, key)
	}
}

// TestCampaign: a campaign one of whose cases has failed before has failed.
func TestCampaign(t *testing.T) {
	for failed, want := range map[string]int{"0": 0, "1": 1} {
		out := t.TempDir()
		if err := os.WriteFile(filepath.Join(out, "from-1.json"), []byte(`{"Cases":2,"Refused":0,"Failed":`+failed+`,"Plans":{},"Tried":{}}`+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, said := script(t, []string{"PART="}, "campaign/run.sh", program(t, "exit 1\n"), "2", "1", out); code != want || !strings.Contains(said, failed+" failed") {
			t.Errorf("%s failed: exit %d, want %d: %s", failed, code, want, said)
		}
	}
}

// TestQuick: a check that finds nothing to compare with the record has shown nothing.
func TestQuick(t *testing.T) {
	placer := program(t, `mkdir -p "$out"
printf 'graph,ops,bound,method,cost\nno such graph,1,1,no such method,1\n' >"$out/graphs.csv"
`)
	if code, said := script(t, nil, "quick/check.py", placer, t.TempDir(), "regal"); code != 1 || !strings.Contains(said, "OUTSIDE regal") {
		t.Errorf("exit %d, want 1: %s", code, said)
	}
}

// TestFuzz: what is recorded is of the fuzzer as it is, and not of a binary that an earlier run has
// left.
func TestFuzz(t *testing.T) {
	const spin = "for ((k = 0; k < 400000; k++)); do :; done\n" // a fuzzer counts by its processor time
	path, work, runs := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "runs.tsv")
	today := program(t, spin+"echo 'fuzz: elapsed: 1s, execs: 5 (5/sec)'\n")
	for name, lines := range map[string]string{"git": "echo graph/formats/dnnpart/fuzz_test.go:func FuzzImport\n", "go": "cp " + today + " \"$6\"\n"} {
		if err := os.Rename(program(t, lines), filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(program(t, spin+"echo 'fuzz: elapsed: 1s, execs: 1 (1/sec)'\n"), filepath.Join(work, "graph-formats-dnnpart-FuzzImport.test")); err != nil {
		t.Fatal(err)
	}
	t.Chdir("..")
	code, said := script(t, []string{"PATH=" + path + string(os.PathListSeparator) + os.Getenv("PATH")}, "experiments/fuzz/run.py", runs, work, "0.1")
	if code != 0 || !strings.HasPrefix(read(t, runs), "graph/formats/dnnpart\tFuzzImport\t5\t") {
		t.Errorf("exit %d, runs %q: %s", code, read(t, runs), said)
	}
}

// TestTable2: the recorded table stays where a new one is not made.
func TestTable2(t *testing.T) {
	out, path := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "table.md"), []byte("recorded\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program(t, "echo half\nexit 1\n"), filepath.Join(path, "go")); err != nil {
		t.Fatal(err)
	}
	env := []string{"PLACER=" + program(t, "echo '{}'\n"), "OUT=" + out, "PATH=" + path + string(os.PathListSeparator) + os.Getenv("PATH"), "BUDGET=", "SEED="}
	if code, said := script(t, env, "table2/run.sh"); code != 1 {
		t.Errorf("exit %d, want 1: %s", code, said)
	}
	if table := read(t, out, "table.md"); table != "recorded\n" {
		t.Errorf("table %q", table)
	}
}

// TestChecks: checks of a GPU for which there was no time have not passed.
func TestChecks(t *testing.T) {
	out := t.TempDir()
	if code, said := script(t, []string{"PLACER_CUBLAS=/none", "PACK="}, "hardware/checks.sh", t.TempDir(), out, "0", "search"); code != 1 || !strings.Contains(read(t, out, "summary-search.txt"), "NO TIME") {
		t.Errorf("exit %d, want 1: %s", code, said)
	}
}
