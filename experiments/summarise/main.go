// Command summarise prints a Markdown table of the search results that it is
// given as files: per graph the step times of the human expert, METIS, the best
// search and the policy, and the reductions against the human expert with their
// geometric means.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"placer/internal/report"
	"placer/plan"
	"placer/units"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "summarise:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, files []string) error {
	var search, policy ratios
	fmt.Fprintln(w, "| graph | GPUs | human | METIS | annealing | best | reduction | policy | reduction | lower bound | seconds |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var s report.Search
		if err := json.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		h := row(&s, func(r *report.Row) bool { return r.Method == "human" })
		if h == nil || !h.Feasible || !s.Best.Feasible {
			return fmt.Errorf("%s: no human row, or nothing fits", f)
		}
		p := bestPolicy(&s)
		search.add(&s.Best, h)
		policy.add(p, h)
		fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %.0f |\n", s.Graph.Name, s.Machine.Devices, step(h),
			step(row(&s, func(r *report.Row) bool { return r.Method == "metis" })), step(row(&s, func(r *report.Row) bool { return r.Method == "anneal" })),
			step(&s.Best), reduction(&s.Best, h), step(p), reduction(p, h), units.Seconds(s.LowerBound), s.Seconds)
	}
	fmt.Fprintf(w, "| geometric mean | | | | | | %s | | %s | | |\n", search.mean(), policy.mean())
	return nil
}

// row returns the first row that is wanted, or nil.
func row(s *report.Search, want func(*report.Row) bool) *report.Row {
	for i := range s.Rows {
		if want(&s.Rows[i]) {
			return &s.Rows[i]
		}
	}
	return nil
}

// bestPolicy returns the row of the policy that came furthest, or nil.
func bestPolicy(s *report.Search) (best *report.Row) {
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Kind == plan.Policy && (best == nil || r.Feasible && (!best.Feasible || r.StepTime < best.StepTime)) {
			best = r
		}
	}
	return best
}

func step(r *report.Row) string {
	switch {
	case r == nil:
		return "-"
	case !r.Feasible:
		return "does not fit"
	}
	return units.Seconds(r.StepTime).String()
}

func reduction(r, human *report.Row) string {
	if r == nil || !r.Feasible {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*(1-r.StepTime/human.StepTime))
}

// ratios collects step times relative to the human expert's.
type ratios struct {
	log  float64
	n    int
	lost int // rows without a placement that fits
}

func (x *ratios) add(r, human *report.Row) {
	if r == nil || !r.Feasible {
		x.lost++
		return
	}
	x.log += math.Log(r.StepTime / human.StepTime)
	x.n++
}

// mean returns the reduction of the geometric mean, with what it leaves out.
func (x *ratios) mean() string {
	if x.n == 0 {
		return "-"
	}
	s := fmt.Sprintf("%.1f%%", 100*(1-math.Exp(x.log/float64(x.n))))
	if x.lost > 0 {
		s += fmt.Sprintf(" (without %d rows)", x.lost)
	}
	return s
}
