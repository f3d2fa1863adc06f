package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"placer/compare"
	"placer/plan"
)

// WriteComparison writes c as tables: the rows, then the totals.
func WriteComparison(w io.Writer, c *compare.Comparison) error {
	if _, err := fmt.Fprintf(w, "%s\n", describe(c)); err != nil {
		return err
	}
	for _, t := range []*table{comparisonRows(c), comparisonTotals(c)} {
		if err := t.write(w); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return comparisonNotes(w, c, "")
}

// WriteComparisonMarkdown writes c for a report.
func WriteComparisonMarkdown(w io.Writer, c *compare.Comparison) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", describe(c)); err != nil {
		return err
	}
	for _, t := range []*table{comparisonRows(c), comparisonTotals(c)} {
		if err := t.writeMarkdown(w); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return comparisonNotes(w, c, "- ")
}

// describe says in a line what was compared.
func describe(c *compare.Comparison) string {
	var budget []string
	if n := c.Matrix.Evaluations; n > 0 {
		budget = append(budget, fmt.Sprintf("%d evaluations", n))
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
	return fmt.Sprintf("%d methods on %d cases, %d seeds, %s each; %s; reductions are 1 - ours/theirs against %s, of medians",
		len(c.Matrix.Methods), len(c.Matrix.Cases), len(c.Matrix.Seeds), strings.Join(budget, " or "), how, c.Matrix.Against)
}

func comparisonRows(c *compare.Comparison) *table {
	o := c.Matrix.Objective.Normal()
	column := "median " + valueNames[o]
	if o == plan.Step {
		column = "median step"
	}
	t := newTable("case", "method", "kind", column, "interval (95%)", "reduction", "gap", "evaluations", "seconds", "search time")
	t.right(3, 4, 5, 6, 7, 8, 9)
	last := ""
	for i := range c.Rows {
		r := &c.Rows[i]
		name := r.Case
		if name == last {
			name = ""
		}
		last = r.Case
		median := judged(o, r.Median)
		if r.Failed > 0 && r.Trials > 0 {
			median += fmt.Sprintf(" (%d of %d failed)", r.Failed, r.Failed+r.Trials)
		}
		interval := "-"
		if r.Low != nil {
			interval = judged(o, r.Low) + " to " + judged(o, r.High)
		}
		t.row(name, r.Method, string(r.Kind), median, interval, Percent(r.Reduction), Percent(r.Gap), fmt.Sprintf("%.0f", r.Evaluations), fmt.Sprintf("%.1f", r.Seconds), times(r.SearchRatio))
	}
	return t
}

func comparisonTotals(c *compare.Comparison) *table {
	t := newTable("method", "cases", "failed", "reduction", "win", "tie", "loss", "worst regression", "on", "mean gap", "search time", "evaluations")
	t.right(1, 2, 3, 4, 5, 6, 7, 9, 10, 11)
	for i := range c.Totals {
		r := &c.Totals[i]
		worst, on := "none", ""
		if r.Worst > 0 {
			worst, on = Share(r.Worst), r.WorstCase
		}
		t.row(r.Method, strconv.Itoa(r.Cases), strconv.Itoa(r.Failed), Percent(r.Reduction), strconv.Itoa(r.Wins), strconv.Itoa(r.Ties), strconv.Itoa(r.Losses),
			worst, on, Percent(r.Gap), times(r.SearchRatio), times(r.EvaluationRatio))
	}
	return t
}

// comparisonNotes writes what the tables leave out, from the first trial of each
// method on each case that has something to say.
func comparisonNotes(w io.Writer, c *compare.Comparison, mark string) error {
	told := map[string]bool{}
	for i := range c.Trials {
		r := c.Trials[i] // a copy
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
			if _, err := fmt.Fprintf(w, "%s%s: %s\n", mark, key, n); err != nil {
				return err
			}
		}
	}
	text := "search time, evaluations: how many times sooner than the reference a method had what the reference ended with"
	if c.Interrupted {
		text += "; interrupted, trials are missing"
	}
	_, err := fmt.Fprintf(w, "%s%s\n", mark, text)
	return err
}

// csvNames are what the columns of an objective's values end with.
var csvNames = map[plan.Objective]string{plan.Step: "step_time_s", plan.Throughput: "max_load_s", plan.Memory: "max_peak_bytes"}

// WriteComparisonCSV writes the rows of c, times in seconds, memory in bytes and
// shares as fractions, empty where there is no figure.
func WriteComparisonCSV(w io.Writer, c *compare.Comparison) error {
	out := csv.NewWriter(w)
	name := csvNames[c.Matrix.Objective.Normal()]
	_ = out.Write([]string{"case", "method", "kind", "trials", "failed", "median_" + name, "low_" + name, "high_" + name, "best_" + name, "reduction", "gap",
		"median_evaluations", "median_seconds", "search_time_ratio", "evaluation_ratio"})
	for i := range c.Rows {
		r := &c.Rows[i]
		_ = out.Write([]string{r.Case, r.Method, string(r.Kind), strconv.Itoa(r.Trials), strconv.Itoa(r.Failed), number(r.Median), number(r.Low), number(r.High), number(r.Best),
			number(r.Reduction), number(r.Gap), number(&r.Evaluations), number(&r.Seconds), number(r.SearchRatio), number(r.EvaluationRatio)})
	}
	out.Flush()
	return out.Error() // the writer keeps the first error
}

func number(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', -1, 64)
}

// judged prints what objective o judges by in its unit.
func judged(o plan.Objective, x *float64) string {
	if x == nil {
		return "does not fit"
	}
	return Value(o, *x)
}

func times(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.2gx", *x)
}
