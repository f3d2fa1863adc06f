package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/report"
)

// benchRegal runs "placer bench regal" and returns its document.
func benchRegal(t *testing.T, args ...string) report.Regal {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(append([]string{"bench", "regal", "-q", "--json", "--no-cpsat"}, args...), nil, &out, &errs); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, errs.String())
	}
	var doc report.Regal
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for i := range doc.Rows { // processor time differs between runs
		doc.Rows[i].Seconds, doc.Rows[i].WorstSeconds = 0, 0
	}
	return doc
}

func rowOf(t *testing.T, doc report.Regal, method string) report.RegalRow {
	t.Helper()
	for _, r := range doc.Rows {
		if r.Method == method {
			return r
		}
	}
	t.Fatalf("no row %s", method)
	return report.RegalRow{}
}

func TestBenchRegalSynthetic(t *testing.T) {
	args := []string{"--graphs", "1", "--evaluations", "500", "--seed", "3"}
	doc := benchRegal(t, append(args, "--workers", "1")...)
	if r := rowOf(t, doc, "phases"); r.Improvement < 0.1 || r.BoundGap > 0.01 {
		t.Errorf("phases: %+v", r)
	}
	if r := rowOf(t, doc, "GP+DFS"); math.Abs(*r.PublishedImprovement+0.558) > 1e-9 || r.Improvement > 0 {
		t.Errorf("GP+DFS: %+v", r)
	}
	a, _ := json.Marshal(doc)
	b, _ := json.Marshal(benchRegal(t, append(args, "--workers", "2")...))
	if !bytes.Equal(a, b) {
		t.Error("two workers give another table")
	}
}

// pathsFile returns a graph file of six ops side by side, with their own times.
func pathsFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "g.pbtxt")
	var text strings.Builder
	text.WriteString("node { name: \"s\" output_info { size: 8 } compute_cost: 1 }\n")
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		text.WriteString("node { name: \"n" + id + "\" id: " + id + " input_info { } output_info { size: 100 } compute_cost: 1" + id + " }\n")
	}
	text.WriteString("node { name: \"t\" id: 7 input_info { preceding_node: 1 } input_info { preceding_node: 6 } compute_cost: 1 }\n")
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// A graph file with its own times, by run time under a memory limit and by peak
// memory, with copies.
func TestBenchRegalFile(t *testing.T) {
	file := pathsFile(t)
	doc := benchRegal(t, "--task", "time", "--graph", file, "--copies", "2", "--evaluations", "200")
	if r := rowOf(t, doc, "phases"); doc.Graphs != 3 || doc.Memory != 16<<30 || r.Graphs != 3 || r.Gap > 1e-9 {
		t.Errorf("run time: %+v of %d graphs, memory %d", r, doc.Graphs, doc.Memory)
	}
	doc = benchRegal(t, "--task", "memory", "--graph", file, "--copies", "1", "--evaluations", "200")
	if r := rowOf(t, doc, "phases"); r.Graphs != 0 {
		t.Errorf("phases know no peak memory: %+v", r)
	}
	if r := rowOf(t, doc, "BRKGA 5K"); r.Graphs != 2 || r.Gap < 0 {
		t.Errorf("BRKGA: %+v", r)
	}
}

// What a kill left of a folder is kept, the rest computed, and the tables are
// those of a run that nothing stopped; other flags are refused.
func TestBenchRegalResumes(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--task", "time", "--graph", pathsFile(t), "--copies", "2", "--evaluations", "200", "--workers", "1", "--out", dir}
	whole := benchRegal(t, args...)
	file := filepath.Join(dir, regalGraphsFile)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Two graphs and half of the third; the first is given a cost that no run gives.
	lines := bytes.SplitAfter(data, []byte("\n"))
	var first regalLine
	if err := json.Unmarshal(lines[0], &first); err != nil {
		t.Fatal(err)
	}
	first.Runs[len(first.Runs)-1].Cost *= 2
	changed, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	cut := slices.Concat(changed, []byte("\n"), lines[1], lines[2][:len(lines[2])/2])
	if err := os.WriteFile(file, cut, 0o644); err != nil {
		t.Fatal(err)
	}
	again := benchRegal(t, args...)
	for i, r := range again.Rows[:len(again.Rows)-1] {
		if r.Improvement != whole.Rows[i].Improvement || r.Evaluations != whole.Rows[i].Evaluations {
			t.Errorf("%s: %+v, without the kill %+v", r.Method, r, whole.Rows[i])
		}
	}
	if r := again.Rows[len(again.Rows)-1]; r.BoundGap < 0.3 {
		t.Errorf("the journal's first graph was computed again: %+v", r)
	}
	table, err := os.ReadFile(filepath.Join(dir, regalGraphsCSV))
	if err != nil || bytes.Count(table, []byte("\n")) != 1+3*len(whole.Rows) {
		t.Errorf("%v, table of graphs:\n%s", err, table)
	}
	var out, errs bytes.Buffer
	if code := Main(append([]string{"bench", "regal", "--no-cpsat", "--seed", "9"}, args...), nil, &out, &errs); code != 2 || !strings.Contains(errs.String(), "other flags") {
		t.Errorf("another seed: exit %d: %s", code, errs.String())
	}
}
