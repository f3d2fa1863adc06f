package report

import (
	"fmt"
	"io"
	"strings"

	"placer/internal/words"
	"placer/units"
)

// WriteText writes v: sentences first, then tables.
func (v *Verdict) WriteText(w io.Writer) error {
	pg := newPage(w)
	for _, s := range v.Headline {
		pg.prose(s)
	}
	batch := ""
	if v.Batch > 0 {
		batch = fmt.Sprintf(", %g samples a step", v.Batch)
	}
	pg.prosef("\n%s: %s%s\n", v.Graph.Name, words.Count(v.Graph.Ops, "op", "ops"), batch)
	v.writeRows(pg)
	pg.printf("\n")
	v.writeBeside(pg)
	v.writePareto(pg)
	v.writeDivided(pg)
	pg.printf("\n")
	for _, m := range v.Machines {
		pg.prose(fmt.Sprintf("model's error on %s: %.1f%% (%s).", m.Name, 100*m.Error, m.ErrorSource))
	}
	for _, n := range v.Notes {
		pg.prose(n)
	}
	return pg.err
}

// writeRows writes the answers.
func (v *Verdict) writeRows(pg *page) {
	rate, priced := ">samples/s", false
	if v.Batch == 0 {
		rate = ">steps/s"
	}
	for _, r := range v.Rows {
		priced = priced || r.PerMillion != nil
	}
	t := newTable("", "machine", ">n", ">step", rate, ">effic.", ">memory", ">full")
	if priced {
		t.column(">cost/M")
	}
	t.column("")
	for _, r := range v.Rows {
		fullest, share := r.fullest()
		mark := ""
		switch {
		case r.best:
			mark = "best"
		case r.fewest:
			mark = "enough"
		case r.tied:
			mark = "tie"
		}
		if r.fewest && r.best {
			mark = "best"
		}
		if r.Used < r.Devices && r.Feasible {
			mark = strings.TrimSpace(fmt.Sprintf("%s uses %d", mark, r.Used))
		}
		cells := []any{r.Key, clip(r.Machine, 10), r.Devices, "-", "-", "-", units.Bytes(fullest), fmt.Sprintf("%.0f%%", 100*share)}
		if r.Feasible {
			per := r.Rate
			if v.Batch == 0 {
				per = 1 / r.StepTime
			}
			cells[3], cells[4] = seconds(r.StepTime), fmt.Sprintf("%.4g", per)
			if r.Efficiency != nil {
				cells[5] = fmt.Sprintf("%.0f%%", 100**r.Efficiency)
			}
		} else {
			mark = "no fit"
		}
		if priced {
			cells = append(cells, orDash(r.PerMillion, money))
		}
		t.row(append(cells, mark)...)
	}
	pg.table(t)
}

// fullest returns the peak of the device with the largest share of its memory in use,
// and that share.
func (r *verdictRow) fullest() (peak int64, share float64) {
	for d, b := range r.Peak {
		if x := float64(b) / float64(r.Memory[d]); x > share {
			peak, share = b, x
		}
	}
	return peak, share
}

// writeBeside writes what to check the answers by.
func (v *Verdict) writeBeside(pg *page) {
	pg.prosef("limits: no plan is below the proven bound; FLOPs at peak is arithmetic alone\n")
	t := newTable("", ">step", ">proven bound", ">above", ">FLOPs at peak", ">of peak", ">missing")
	for _, r := range v.Rows {
		step, bound, above, of, missing := "-", "-", "-", "-", "-"
		if r.LowerBound > 0 {
			bound = seconds(r.LowerBound).String()
		}
		if r.Feasible {
			step, of = seconds(r.StepTime).String(), percent(r.AtPeak, r.StepTime)
			if r.LowerBound > 0 {
				above = percentOf(r.StepTime/r.LowerBound - 1)
			}
		} else {
			missing = units.Bytes(r.Missing).String()
		}
		t.row(r.Key, step, bound, above, seconds(r.AtPeak), of, missing)
	}
	pg.table(t)
}

// longestFront is how many plans of the front the text form shows.
const longestFront = 12

// writePareto writes the plans that no other beats, and plots the rows.
func (v *Verdict) writePareto(pg *page) {
	if len(v.Pareto) == 0 {
		return
	}
	pg.prosef("\nPareto-optimal plans found, by devices used, step and memory\n")
	t := newTable(">devices", "machine", ">step", ">memory", "method")
	for _, p := range v.Pareto[:min(len(v.Pareto), longestFront)] {
		t.row(p.Devices, clip(p.Machine, 24), seconds(p.StepTime), units.Bytes(p.Memory), p.Method)
	}
	pg.table(t)
	if n := len(v.Pareto) - longestFront; n > 0 {
		pg.printf("and %d more, --json has them\n", n)
	}
	var ps []mark
	for _, r := range v.Rows {
		if r.Feasible {
			peak, _ := r.fullest()
			ps = append(ps, mark{r.Key, float64(peak), r.StepTime})
		}
	}
	if len(ps) > 1 {
		pg.printf("\n")
		plot(pg, ps, "memory of the fullest device", "step", func(x float64) string { return units.Bytes(x).String() }, func(y float64) string { return seconds(y).String() })
	}
}

// clip shortens s to n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "~"
	}
	return s
}
