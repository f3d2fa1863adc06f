package report

import (
	"fmt"
	"io"
	"strconv"

	"placer/internal/words"
)

// RegalFormat names the version of Regal as a JSON document.
const RegalFormat = "placer bench regal 1"

// Regal is table 1 of REGAL (Paliwal et al., ICLR 2020) for one task.
type Regal struct {
	Format      string     `json:"format"`
	Task        string     `json:"task"`
	Graphs      int        `json:"graphs"`
	MeanOps     float64    `json:"mean_ops"`
	Devices     int        `json:"devices"`
	Memory      int64      `json:"memory"` // of each device; 0: no limit
	Evaluations int        `json:"evaluations"`
	Seed        uint64     `json:"seed"`
	Rows        []RegalRow `json:"rows"`
	Notes       []string   `json:"notes"`
}

// RegalRow is a method's line. Shares, not percent; means over graphs.
type RegalRow struct {
	Method string `json:"method"`
	// Improvement is 1 - cost / BRKGA-5K's. Median is that of the graphs; Low and
	// High bound it with a confidence of at least 95%, and are nil for fewer than
	// six graphs.
	Improvement float64  `json:"improvement"`
	Median      float64  `json:"median_improvement"`
	Low         *float64 `json:"low_improvement,omitempty"`
	High        *float64 `json:"high_improvement,omitempty"`
	Gap         float64  `json:"gap"` // from the best known
	// BoundGap and WorstBoundGap are over a proven lower bound; Optimal counts the
	// graphs that meet it.
	BoundGap      float64 `json:"bound_gap"`
	WorstBoundGap float64 `json:"worst_bound_gap"`
	Optimal       int     `json:"optimal"`
	Wins          int     `json:"wins"`
	Ties          int     `json:"ties"`
	Losses        int     `json:"losses"`
	Graphs        int     `json:"graphs"`     // that the means are over
	Infeasible    int     `json:"infeasible"` // schedules above the memory limit
	Evaluations   float64 `json:"evaluations"`
	Seconds       float64 `json:"seconds"` // processor time
	WorstSeconds  float64 `json:"worst_seconds"`
	// The paper's figures, in shares; absent where it has none.
	PublishedImprovement *float64 `json:"published_improvement,omitempty"`
	PublishedGap         *float64 `json:"published_gap,omitempty"`
}

// WriteText writes r as a table.
func (r *Regal) WriteText(w io.Writer) error {
	pg := newPage(w)
	memory := "no memory limit"
	if r.Memory > 0 {
		memory = fmt.Sprintf("%d bytes each", r.Memory)
	}
	pg.prosef("REGAL table 1, %s: %s of %.0f ops on average, %s, %s, %s, seed %d\n", r.Task, words.Count(r.Graphs, "graph", "graphs"), r.MeanOps, words.Count(r.Devices, "device", "devices"), memory, words.Count(r.Evaluations, "evaluation", "evaluations"), r.Seed)
	t := newTable("method", ">over BRKGA 5K", ">(paper)", ">median", ">95% interval", ">gap", ">(paper)", ">gap to bound", ">worst", ">optimal", ">win/tie/loss", ">cpu ms", ">worst")
	for _, x := range r.Rows {
		if x.Graphs == 0 && x.Infeasible > 0 {
			t.row(x.Method, fmt.Sprintf("fits on none of %d", x.Infeasible))
			continue
		}
		if x.Graphs == 0 {
			t.row(x.Method, "does not apply")
			continue
		}
		percent := func(v float64, digits int) string { return strconv.FormatFloat(100*v, 'f', digits, 64) + "%" }
		paper := func(v *float64) string {
			if v == nil {
				return ""
			}
			return percent(*v, 2)
		}
		interval := ""
		if x.Low != nil {
			interval = percent(*x.Low, 2) + " to " + percent(*x.High, 2)
		}
		name := x.Method
		if x.Infeasible > 0 {
			name += fmt.Sprintf(" (%d do not fit)", x.Infeasible)
		}
		t.row(name, percent(x.Improvement, 2), paper(x.PublishedImprovement), percent(x.Median, 2), interval, percent(x.Gap, 2), paper(x.PublishedGap), percent(x.BoundGap, 4), percent(x.WorstBoundGap, 4),
			x.Optimal, fmt.Sprintf("%d/%d/%d", x.Wins, x.Ties, x.Losses), fmt.Sprintf("%.1f", 1e3*x.Seconds), fmt.Sprintf("%.1f", 1e3*x.WorstSeconds))
	}
	pg.table(t)
	pg.notes("", r.Notes...)
	return pg.err
}

// WriteCSV writes the rows, a header first.
func (r *Regal) WriteCSV(w io.Writer) error {
	rows := [][]any{{"task", "method", "improvement", "published_improvement", "median_improvement", "low_improvement", "high_improvement", "gap", "published_gap", "bound_gap", "worst_bound_gap",
		"optimal", "wins", "ties", "losses", "graphs", "infeasible", "evaluations", "seconds", "worst_seconds"}}
	for _, x := range r.Rows {
		rows = append(rows, []any{r.Task, x.Method, x.Improvement, x.PublishedImprovement, x.Median, x.Low, x.High, x.Gap, x.PublishedGap, x.BoundGap, x.WorstBoundGap,
			x.Optimal, x.Wins, x.Ties, x.Losses, x.Graphs, x.Infeasible, x.Evaluations, x.Seconds, x.WorstSeconds})
	}
	return writeCSV(w, rows)
}
