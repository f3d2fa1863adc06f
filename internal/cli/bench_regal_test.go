package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
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

// A graph file with its own times, by run time under a memory limit and by peak
// memory, with copies.
func TestBenchRegalFile(t *testing.T) {
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
