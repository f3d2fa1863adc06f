package report

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"placer/internal/compare"
	"placer/internal/jsonx"
)

// benchOf makes a comparison of one seed from step times by case and method.
func benchOf(methods []string, against string, times map[string][]float64) *compare.Comparison {
	m := compare.Matrix{Format: compare.MatrixFormat, Methods: methods, Against: against, Seeds: []uint64{1}, Evaluations: 10}
	var trials []compare.Trial
	for _, name := range []string{"a", "b"} {
		x := compare.Case{Workload: name, GPU: "v100", GPUs: 2}
		m.Cases = append(m.Cases, x)
		for k, seconds := range times[name] {
			t := compare.Trial{Cell: compare.Cell{Case: x.Name(), Method: methods[k], Seed: 1}, StepTime: math.Abs(seconds), Evaluations: 10}
			if seconds < 0 { // does not fit
				t.Overflow = 1
			}
			trials = append(trials, t)
		}
	}
	return compare.Summarise(m, trials)
}

// TestUnavailable: a method that was unavailable in every trial is no placement that does not fit.
func TestUnavailable(t *testing.T) {
	c := benchOf([]string{"metis", "heft"}, "heft", map[string][]float64{"a": {1, -2}, "b": {1, 2}})
	for k := range c.Trials {
		if c.Trials[k].Method == "metis" {
			c.Trials[k].Skipped = "gpmetis not found"
		}
	}
	c = compare.Summarise(c.Matrix, c.Trials)
	var b strings.Builder
	if err := WriteComparison(&b, c); err != nil {
		t.Fatal(err)
	}
	rows, _, _ := strings.Cut(b.String(), "\n\n")
	if n := strings.Count(rows, "unavailable"); n != 2 || strings.Count(rows, "does not fit") != 1 || !strings.Contains(b.String(), "metis: unavailable: gpmetis not found") {
		t.Error(b.String())
	}
}

// TestFigure6Claims: means are geometric, over the cases where both fit; pairs
// are beaten only if the best of them is.
func TestFigure6Claims(t *testing.T) {
	methods := []string{TFDefault, Human, "place+schedule", "schedule+fuse", Separate, joint}
	c := benchOf(methods, TFDefault, map[string][]float64{
		"a": {8, 6, 3, 2.5, 4, 2},
		"b": {-100, 4, 0.9, 3, 1, 1},
	})
	want := []struct {
		reached float64
		holds   bool
		cases   int
		worst   string
	}{
		{1 - 2./8, true, 1, "a on v100x2"},
		{1 - math.Sqrt(2./6*1./4), true, 2, "a on v100x2"},
		{1 - math.Sqrt(2./4*1), true, 2, "b on v100x2"},
		{1 - 1/0.9, false, 2, "b on v100x2"},
	}
	got := Figure6Claims(c)
	if len(got) != len(want) {
		t.Fatalf("%d claims, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Reached == nil || math.Abs(*g.Reached-w.reached) > 1e-12 || g.Holds != w.holds || g.Cases != w.cases || g.Worst != w.worst {
			t.Errorf("%s: %+v with %v, want %+v", g.Text, g, *g.Reached, w)
		}
	}
}

// TestTable3Claims: the smallest reduction over the rows counts; what is missing
// holds nothing.
func TestTable3Claims(t *testing.T) {
	methods := []string{NoFusion, TFDefault, Annealed, Learned}
	c := benchOf(methods, NoFusion, map[string][]float64{"a": {10, 9, 8, 8}, "b": {10, 9, 8, 8.8}})
	got := Table3Claims(c)
	if *got[0].Reached != compare.Reduction(8.8, 8) || got[0].Holds || got[0].Worst != "b on v100x2" {
		t.Errorf("against annealing: %+v", got[0])
	}
	if !got[1].Holds || !got[2].Holds {
		t.Errorf("against the rest: %+v", got[1:])
	}
	for _, x := range Table3Claims(benchOf(methods, NoFusion, nil)) {
		if x.Reached != nil || x.Holds || x.Cases != 0 {
			t.Errorf("without trials: %+v", x)
		}
	}
	doc := &Bench{Format: BenchFormat, Bench: "go-table3", Claims: got, Comparison: c}
	var text, markdown, document bytes.Buffer
	for _, err := range []error{doc.WriteText(&text), doc.WriteMarkdown(&markdown), jsonx.Write(&document, doc)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(text.String(), "smallest reduction") || !strings.Contains(text.String(), "8.8 s") || !strings.Contains(markdown.String(), "| -10.0% |") {
		t.Errorf("text\n%s\nmarkdown\n%s", &text, &markdown)
	}
	var back Bench
	if err := json.Unmarshal(document.Bytes(), &back); err != nil || len(back.Claims) != 3 || back.Comparison.Rows[0].Case != "a on v100x2" {
		t.Errorf("the document reads back as %+v, %v", back, err)
	}
}

func TestFigure6Methods(t *testing.T) {
	all := Figure6Methods()
	if len(all) != 10 || !slices.Contains(all, joint) {
		t.Errorf("methods %v", all)
	}
	for _, m := range all[2:] {
		if _, err := TasksOf(m); (err != nil) != (m == Separate) {
			t.Errorf("%s: %v", m, err)
		}
	}
}
