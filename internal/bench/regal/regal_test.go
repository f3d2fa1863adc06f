package regal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/baselines/regal/rivals"
	"placer/graph"
	"placer/graph/formats/costgraph"
	"placer/internal/bench"
	"placer/internal/report"
	"placer/units"
)

// host stands still and writes progress to log.
func host(log *strings.Builder) bench.Host {
	still := func() float64 { return 0 }
	return bench.Host{Clock: still, Thread: still, Log: func(format string, a ...any) { fmt.Fprintf(log, format+"\n", a...) }}
}

// load reads a cost graph, with its own times.
func load(_, file, _ string) (*graph.Graph, []units.Seconds, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	x, err := costgraph.Import(data, file)
	if err != nil {
		return nil, nil, err
	}
	return x.Graph, x.Seconds, nil
}

// small is a comparison of one synthetic graph in few evaluations.
func small() Config {
	c := Default()
	c.Graphs, c.Evaluations, c.Workers, c.NoCPSAT, c.Load = 1, 500, 2, true, load
	return c
}

// ofFile is a comparison on a file and its copies.
func ofFile(task rivals.Task, file string, copies, evaluations int) Config {
	c := small()
	c.Task, c.Files, c.Copies, c.Evaluations = task, []string{file}, copies, evaluations
	return c
}

// table runs a comparison.
func table(t *testing.T, c Config) *report.Regal {
	t.Helper()
	doc, err := Compare(context.Background(), c, host(&strings.Builder{}))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func rowOf(t *testing.T, doc *report.Regal, method string) report.RegalRow {
	t.Helper()
	for _, r := range doc.Rows {
		if r.Method == method {
			return r
		}
	}
	t.Fatalf("no row %s", method)
	return report.RegalRow{}
}

func TestSynthetic(t *testing.T) {
	c := small()
	c.Seed, c.Workers = 3, 1
	doc := table(t, c)
	if r := rowOf(t, doc, "phases"); r.Improvement < 0.1 || r.BoundGap > 0.01 {
		t.Errorf("phases: %+v", r)
	}
	if r := rowOf(t, doc, "GP+DFS"); math.Abs(*r.PublishedImprovement+0.558) > 1e-9 || r.Improvement > 0 {
		t.Errorf("GP+DFS: %+v", r)
	}
	a, _ := json.Marshal(doc)
	c.Workers = 2
	b, _ := json.Marshal(table(t, c))
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
func TestFile(t *testing.T) {
	file := pathsFile(t)
	doc := table(t, ofFile(rivals.Time, file, 2, 200))
	if r := rowOf(t, doc, "phases"); doc.Graphs != 3 || doc.Memory != 16<<30 || r.Graphs != 3 || r.Gap > 1e-9 {
		t.Errorf("run time: %+v of %d graphs, memory %d", r, doc.Graphs, doc.Memory)
	}
	doc = table(t, ofFile(rivals.Memory, file, 1, 200))
	if r := rowOf(t, doc, "phases"); r.Graphs != 0 {
		t.Errorf("phases know no peak memory: %+v", r)
	}
	if r := rowOf(t, doc, "BRKGA 5K"); r.Graphs != 2 || r.Gap < 0 {
		t.Errorf("BRKGA: %+v", r)
	}
}

// What a kill left of a folder is kept, the rest computed, and the tables are
// those of a run that nothing stopped; other flags are refused.
func TestResumes(t *testing.T) {
	dir := t.TempDir()
	c := ofFile(rivals.Time, pathsFile(t), 2, 200)
	c.Workers, c.Out = 1, dir
	whole := table(t, c)
	file := filepath.Join(dir, graphsFile)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Two graphs and half of the third; the first is given a cost that no run gives.
	lines := bytes.SplitAfter(data, []byte("\n"))
	var first journalLine
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
	again := table(t, c)
	for i, r := range again.Rows[:len(again.Rows)-1] {
		if r.Improvement != whole.Rows[i].Improvement || r.Evaluations != whole.Rows[i].Evaluations {
			t.Errorf("%s: %+v, without the kill %+v", r.Method, r, whole.Rows[i])
		}
	}
	if r := again.Rows[len(again.Rows)-1]; r.BoundGap < 0.3 {
		t.Errorf("the journal's first graph was computed again: %+v", r)
	}
	table, err := os.ReadFile(filepath.Join(dir, graphsCSV))
	if err != nil || bytes.Count(table, []byte("\n")) != 1+3*len(whole.Rows) {
		t.Errorf("%v, table of graphs:\n%s", err, table)
	}
	c.Seed = 9
	var wrong bench.ConfigError
	if _, err := Compare(context.Background(), c, host(&strings.Builder{})); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "other flags") {
		t.Errorf("another seed: %v", err)
	}
}
