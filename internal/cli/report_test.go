package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	hwbench "placer/hw/bench"
	"placer/internal/tfevents"
)

// pageAt returns the text of a file.
func pageAt(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReport: search writes the page that report writes again, byte for byte; two plans
// come from two runs or a run and a plan; what is neither is refused in one line.
func TestReport(t *testing.T) {
	t.Chdir(t.TempDir())
	search := func(out, methods string) {
		t.Helper()
		if got := command(t, []string{"search", "--workload", smallGraph, "--gpus", "2", "--methods", methods, "--evaluations", "1", "--out", out}); !strings.Contains(got, "! placer: report "+out+"/report.html\n") {
			t.Fatal(got)
		}
	}
	search("a", "human,roundrobin")
	search("b", "roundrobin")
	first := pageAt(t, "a/report.html")
	if got := command(t, []string{"report", "a"}); got != "! placer: report a/report.html\n" || pageAt(t, "a/report.html") != first {
		t.Errorf("report writes another page than search did, and says %s", got)
	}
	if got := command(t, []string{"report", "a", "-o", "-"}); strings.TrimSuffix(got, "\n") != strings.TrimSuffix(first, "\n") {
		t.Errorf("stdout has another page: %.200s", got)
	}
	for _, args := range [][]string{{"a", "b"}, {"a", "b/plan.json"}, {"b/plan.json", "a"}} {
		if got := command(t, append([]string{"report", "--compare", "-o", "both.html"}, args...)); got != "! placer: report both.html\n" {
			t.Errorf("%v: %s", args, got)
		}
		if page := pageAt(t, "both.html"); strings.Count(page, `role="application"`) != 2 || !strings.Contains(page, filepath.Base(args[0])+" takes ") {
			t.Errorf("%v: not a page of two plans", args)
		}
	}

	older := regexp.MustCompile(`("best": \{[^{}]*"step_time_s": )[0-9.e-]+`).ReplaceAllString(pageAt(t, "b/result.json"), "${1}0.05")
	if err := os.WriteFile("b/result.json", []byte(older), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := command(t, []string{"report", "b"}); !strings.Contains(got, "! placer: note: the run has a step of 50 ms for its plan, and this version of placer predicts ") || !strings.Contains(pageAt(t, "b/report.html"), "the run has a step of 50 ms") {
		t.Errorf("the run of another version: %s", got)
	}

	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("empty/x", "")
	write("running/config.json", pageAt(t, "a/config.json"))
	write("odd.json", `{"format": "placer plan 1"}`)
	write("torn/config.json", pageAt(t, "a/config.json"))
	write("torn/machine.json", pageAt(t, "a/machine.json"))
	write("torn/plan.json", pageAt(t, "a/plan.json"))
	write("torn/result.json", pageAt(t, "a/result.json"))
	write("torn/progress.jsonl", "{\"seconds\":1}\nnonsense\n{")
	for _, c := range []struct{ args, want string }{
		{"report", "want one run folder, as runs/gnmt8-p100-1; got 0\nexit 2"},
		{"report a b", "want one run folder, as runs/gnmt8-p100-1; got 2\nexit 2"},
		{"report --compare a", "want two run folders, or one and a plan file, behind --compare; got 1\nexit 2"},
		{"report --compare a/plan.json b/plan.json", "one of the two must be a run folder"},
		{"report none", "none: no such file"},
		{"report empty", "empty: neither a search (config.json), nor a comparison (compare.json), nor a pretraining"},
		{"report running", "running: the search has no result yet; to continue: placer search --resume running\nexit 1"},
		{"report odd.json", "odd.json: format is"},
		{"report torn", "progress.jsonl: line 2: "},
	} {
		if got := command(t, strings.Fields(c.args)); !strings.Contains(got, c.want) || strings.Count(got, "! ") != 1 {
			t.Errorf("%s: %s", c.args, got)
		}
	}
}

// TestReportOfOthers: the folder of a comparison, that of a pretraining and the JSON of
// bench hw have pages, and compare writes its own.
func TestReportOfOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	got := command(t, []string{"compare", "--workload", smallGraph, "--gpus", "2", "--methods", "human,roundrobin", "--evaluations", "1", "--seeds", "1", "--out", "both", "--html", "first.html", "-q"})
	if strings.Contains(got, "exit") {
		t.Fatal(got)
	}
	if got := command(t, []string{"report", "both"}); strings.Contains(got, "exit") || pageAt(t, "both/report.html") != pageAt(t, "first.html") {
		t.Errorf("report writes another page than compare did: %s", got)
	}
	board, err := tfevents.Create("trained", "pretrain", 0, func() float64 { return 1 })
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		if err := board.Write(i, tfevents.Scalar("imitation/loss", float64(i))); err != nil {
			t.Fatal(err)
		}
	}
	board.Close()
	if got := command(t, []string{"report", "trained"}); strings.Contains(got, "exit") || !strings.Contains(pageAt(t, "trained/report.html"), "imitation/loss") {
		t.Errorf("no page of a pretraining: %s", got)
	}
	text, err := json.Marshal(hwbench.Result{Format: hwbench.Format, Date: "2026-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("card.json", text, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := command(t, []string{"report", "card.json"}); strings.Contains(got, "exit") || !strings.Contains(pageAt(t, "card.html"), "Measured hardware") {
		t.Errorf("no page of a card: %s", got)
	}
}
