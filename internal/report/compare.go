package report

import (
	"fmt"
	"io"
	"strings"

	"placer/internal/compare"
	"placer/internal/words"
	"placer/plan"
)

// WriteComparison writes c as tables: the rows, then the totals.
func WriteComparison(w io.Writer, c *compare.Comparison) error {
	pg := newPage(w)
	pg.comparison(c, "", "")
	return pg.err
}

// WriteComparisonMarkdown writes c for a report.
func WriteComparisonMarkdown(w io.Writer, c *compare.Comparison) error {
	pg := newMarkdown(w)
	pg.comparison(c, "\n", "- ")
	return pg.err
}

// comparison writes c; mark stands before each note.
func (p *page) comparison(c *compare.Comparison, behindTitle, mark string) {
	p.folded("", describe(c))
	p.printf("%s", behindTitle)
	for _, t := range []*table{comparisonRows(c), comparisonTotals(c)} {
		p.table(t)
		p.printf("\n")
	}
	for _, n := range comparisonNotes(c) {
		p.folded(mark, n)
	}
}

// describe says in a line what was compared.
func describe(c *compare.Comparison) string {
	var budget []string
	if n := c.Matrix.Evaluations; n > 0 {
		budget = append(budget, words.Count(n, "evaluation", "evaluations"))
	}
	if s := c.Matrix.Seconds; s > 0 {
		budget = append(budget, fmt.Sprintf("%g s", s))
	}
	how := ""
	if o := c.Matrix.Objective.Normal(); o != plan.Step {
		how = fmt.Sprintf("judged by %s (%s); ", o, valueNames[o])
	}
	how += c.Matrix.Scheduler + " scheduler"
	if k := c.Matrix.Contention; k != "" {
		how += ", contention " + k
	}
	return fmt.Sprintf("%s on %s, %s, %s each; %s; reductions are 1 - ours/theirs against %s, of medians",
		words.Count(len(c.Matrix.Methods), "method", "methods"), words.Count(len(c.Matrix.Cases), "case", "cases"), words.Count(len(c.Matrix.Seeds), "seed", "seeds"), strings.Join(budget, " or "), how, c.Matrix.Against)
}

func comparisonRows(c *compare.Comparison) *table {
	o := c.Matrix.Objective.Normal()
	column := "median " + valueNames[o]
	if o == plan.Step {
		column = "median step"
	}
	t := newTable("case", "method", "kind", ">"+column, ">interval (95%)", ">reduction", ">gap", ">evaluations", ">seconds", ">search time").fitting("kind", "seconds", "interval (95%)", "gap", "search time")
	last := ""
	for i := range c.Rows {
		r := &c.Rows[i]
		name := r.Case
		if name == last {
			name = ""
		}
		last = r.Case
		median := c.WhyNone(i)
		if r.Median != nil {
			median = Value(o, *r.Median)
		}
		if r.Failed > 0 && r.Trials > 0 {
			median += fmt.Sprintf(" (%d of %d failed)", r.Failed, r.Failed+r.Trials)
		}
		interval := "-"
		if r.Low != nil {
			interval = Value(o, *r.Low) + " to does not fit"
			if r.High != nil {
				interval = Value(o, *r.Low) + " to " + Value(o, *r.High)
			}
		}
		t.row(name, r.Method, string(r.Kind), median, interval, share(r.Reduction), share(r.Gap), fmt.Sprintf("%.0f", r.Evaluations), fmt.Sprintf("%.1f", r.Seconds), times(r.SearchRatio))
	}
	return t
}

func comparisonTotals(c *compare.Comparison) *table {
	t := newTable("method", ">cases", ">failed", ">reduction", ">win", ">tie", ">loss", ">worst regression", "on", ">mean gap", ">search time", ">evaluations").fitting("search time", "evaluations", "failed", "cases", "mean gap")
	for i := range c.Totals {
		r := &c.Totals[i]
		worst, on := "none", ""
		if r.Worst > 0 {
			worst, on = percentOf(r.Worst), r.WorstCase
		}
		t.row(r.Method, r.Cases, r.Failed, share(r.Reduction), r.Wins, r.Ties, r.Losses,
			worst, on, share(r.Gap), times(r.SearchRatio), times(r.EvaluationRatio))
	}
	return t
}

// comparisonNotes are what the tables leave out, from the first trial of each
// method on each case that has something to say.
func comparisonNotes(c *compare.Comparison) (notes []string) {
	told := map[string]bool{}
	for _, r := range c.Trials {
		key := r.Method + " on " + r.Case
		switch {
		case r.Skipped != "":
			key = r.Method // the reason is rarely the case's
			r.Notes = []string{"unavailable: " + r.Skipped}
		case r.Overflow > 0:
			r.Notes = append([]string{"does not fit"}, r.Notes...)
		}
		if told[key] || len(r.Notes) == 0 {
			continue
		}
		told[key] = true
		for _, n := range r.Notes {
			notes = append(notes, key+": "+n)
		}
	}
	text := "search time, evaluations: how many times sooner than the reference a method had what the reference ended with"
	if c.Interrupted {
		text += "; interrupted, trials are missing"
	}
	return append(notes, text)
}

// csvNames are what the columns of an objective's values end with.
var csvNames = map[plan.Objective]string{plan.Step: "step_time_s", plan.Throughput: "max_load_s", plan.Memory: "max_peak_bytes"}

// WriteComparisonCSV writes the rows of c, times in seconds, memory in bytes and
// shares as fractions, empty where there is no figure.
func WriteComparisonCSV(w io.Writer, c *compare.Comparison) error {
	name := csvNames[c.Matrix.Objective.Normal()]
	rows := [][]any{{"case", "method", "kind", "trials", "failed", "median_" + name, "low_" + name, "high_" + name, "best_" + name, "reduction", "gap",
		"median_evaluations", "median_seconds", "search_time_ratio", "evaluation_ratio"}}
	for _, r := range c.Rows {
		rows = append(rows, []any{r.Case, r.Method, r.Kind, r.Trials, r.Failed, r.Median, r.Low, r.High, r.Best, r.Reduction, r.Gap, r.Evaluations, r.Seconds, r.SearchRatio, r.EvaluationRatio})
	}
	return writeCSV(w, rows)
}

func times(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.2gx", *x)
}
