package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"placer/hw/bench"
	"placer/hw/gpu"
	"placer/hw/gpu/fake"
	"placer/internal/compare"
	"placer/internal/report"
	"placer/internal/tfevents"
)

// measured is what bench hw says of a stand-in of a GPU.
func measured(t *testing.T) *bench.Result {
	t.Helper()
	cfg := bench.Default()
	cfg.Repeats, cfg.Target, cfg.Buffer, cfg.Types, cfg.Messages = 3, 1e-4, 64<<20, []gpu.DType{gpu.F32, gpu.BF16}, cfg.Messages[:4]
	d := fake.New(fake.Default())
	r, err := bench.Run(context.Background(), cfg, d, d.BLAS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// recorded is a comparison on record.
func recorded(t *testing.T) *compare.Comparison {
	t.Helper()
	text, err := os.ReadFile("../../../experiments/go-hdp/compare.json")
	if err != nil {
		t.Fatal(err)
	}
	var c compare.Comparison
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

func lossRecords() (all []tfevents.Record) {
	for i := range int64(3000) {
		all = append(all, tfevents.Record{Tag: "ppo/loss", Step: i, Value: math.Exp(-float64(i) / 500)}, tfevents.Record{Tag: "ppo/entropy <&>", Step: i, Value: 1})
	}
	return all
}

// TestComparisonPage: the page has the cells of both tables and the median of each row in
// its chart, and says the best of the totals.
func TestComparisonPage(t *testing.T) {
	c := recorded(t)
	page := write(t, func(w io.Writer) error { return WriteComparison(w, c) })
	rows := cellsOf(page)
	first, totals, _ := report.ComparisonCells(c)
	found := 0
	for _, want := range append(first.Rows, totals.Rows...) {
		for _, r := range rows {
			if strings.Join(r, "|") == strings.Join(want, "|") {
				found++
				break
			}
		}
	}
	if n := len(first.Rows) + len(totals.Rows); found != n {
		t.Errorf("%d of %d rows are on the page", found, n)
	}
	if n := strings.Count(page, "<circle "); n != len(c.Rows) {
		t.Errorf("%d medians are drawn, there are %d rows", n, len(c.Rows))
	}
	for _, want := range []string{"anneal comes out best: 21.7% shorter than hdp", "it wins 18, ties 0 and loses 0"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestComparisonPastTheReference: where the reference has no placement, the sentence is
// about the other cases, and says which method is best there.
func TestComparisonPastTheReference(t *testing.T) {
	for _, c := range []struct {
		name      string
		reference []float64 // by case; 0: does not fit
		ours      []float64
		want      string
	}{
		{"one case", []float64{4, 0}, []float64{3, 1}, "Over the 1 of 2 cases on which a has a placement b comes out best: 25.0% shorter than a in the geometric mean of medians; it wins 2, ties 0 and loses 0."},
		{"worse there", []float64{4, 0}, []float64{5, 1}, "b comes out best: 25.0% longer than a in the geometric mean of medians; it wins 1, ties 0 and loses 1."},
		{"no case", []float64{0, 0}, []float64{3, 1}, "a, against which the others are measured, has a placement on no case."},
		{"both fail", []float64{4, 0}, []float64{3, 0}, "No method has a placement on every case."},
	} {
		m := compare.Matrix{Format: compare.MatrixFormat, Methods: []string{"a", "b"}, Cases: []compare.Case{{Workload: "v", GPU: "p100"}, {Workload: "w", GPU: "p100"}}, Seeds: []uint64{1}, Against: "a", Evaluations: 1}
		var trials []compare.Trial
		for _, cell := range m.Cells() {
			times := c.reference
			if cell.Method == "b" {
				times = c.ours
			}
			x := compare.Trial{Cell: cell, StepTime: times[0]}
			if cell.Case == m.Cases[1].Name() {
				x.StepTime = times[1]
			}
			if x.StepTime == 0 {
				x.Overflow = 1
			}
			trials = append(trials, x)
		}
		if got := leader(compare.Summarise(m, trials)); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestComparisonWithoutFigures: cases on which nothing fits, and totals without a
// reduction, are said in words.
func TestComparisonWithoutFigures(t *testing.T) {
	m := compare.Matrix{Format: compare.MatrixFormat, Methods: []string{"a"}, Cases: []compare.Case{{Workload: "w", GPU: "p100"}}, Seeds: []uint64{1}, Against: "a", Evaluations: 1}
	c := compare.Summarise(m, []compare.Trial{{Cell: m.Cells()[0], Overflow: 5, StepTime: 1}})
	page := write(t, func(w io.Writer) error { return WriteComparison(w, c) })
	if !strings.Contains(page, "no method has a placement") || strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error(page)
	}
}

// TestRooflinePage: each product is a dot at its own intensity and rate.
func TestRooflinePage(t *testing.T) {
	r := measured(t)
	page := write(t, func(w io.Writer) error { return WriteHardware(w, r) })
	for _, p := range r.Devices[0].Products {
		if want := fmt.Sprintf("%s, %d x [%d,%d,%d]", p.Type, p.Batch, p.M, p.N, p.K); !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	// Of 2*64*64*64 operations on three matrices of 64*64 of 4 bytes.
	if got := intensity(&bench.Product{Type: "f32", Batch: 3, M: 64, N: 64, K: 64}); math.Abs(got-2.0*64/12) > 1e-12 {
		t.Errorf("intensity %g, want %g", got, 2.0*64/12)
	}
}

// TestPretrainingPage: a chart for each tag, no more dots than bounded.
func TestPretrainingPage(t *testing.T) {
	page := write(t, func(w io.Writer) error { return WritePretraining(w, "run", lossRecords()) })
	if n := strings.Count(page, "<figure>"); n != 2 {
		t.Errorf("%d charts", n)
	}
	if n := strings.Count(page, "<circle "); n > 2*(mostDots+1) || n < 1000 {
		t.Errorf("%d dots", n)
	}
	if !strings.Contains(page, "ppo/entropy &lt;&amp;&gt;") || strings.Contains(page, "NaN") {
		t.Error("a tag is not escaped, or a number is none")
	}
}

// TestTicks: round values within the scale, in order.
func TestTicks(t *testing.T) {
	for _, s := range []scale{{0, 1, false}, {0, 0.1316, false}, {-3, 7, false}, {0.01, 120, true}, {0.1, 0.13, true}, {5, 5, false}, {1e-9, 1e9, true}} {
		at := s.ticks(5)
		if len(at) == 0 || len(at) > 24 {
			t.Errorf("%+v: %d ticks", s, len(at))
		}
		for i, v := range at {
			if v < s.low-1e-9*math.Abs(s.high) || v > s.high*(1+1e-9) || i > 0 && v <= at[i-1] || math.Signbit(v) && v == 0 {
				t.Errorf("%+v: tick %g of %v", s, v, at)
			}
		}
	}
}
