package rivals

import (
	"fmt"
	"math"
)

// Row is a method's line of the table: means over the graphs where its schedule
// and the base's keep the memory limit.
type Row struct {
	Method string
	// Improvement is the mean of 1 - cost/base's cost, Improvements those of the
	// graphs.
	Improvement  float64
	Improvements []float64
	// Gap is the mean of cost/best - 1, best being the least cost of any method.
	Gap float64
	// BoundGap and WorstBoundGap are mean and maximum of cost/bound - 1; the bound
	// is proven.
	BoundGap, WorstBoundGap float64
	// AtBound counts graphs whose cost meets the bound: optima.
	AtBound               int
	Wins, Ties, Losses    int // against the base
	Graphs                int // that the means are over
	Infeasible            int
	Evaluations           float64
	Seconds, WorstSeconds float64 // processor time
}

// Table returns a row for each of the methods, by their order in the runs. base is
// the index of the method that others are compared with.
func Table(names []string, graphs []Graph, base int) []Row {
	rows := make([]Row, len(names))
	for m, name := range names {
		rows[m] = row(name, graphs, m, base)
	}
	return rows
}

func row(name string, graphs []Graph, m, base int) Row {
	x := Row{Method: name}
	for _, g := range graphs {
		if len(g.Runs) <= max(m, base) {
			panic(fmt.Sprintf("rivals: graph %s has %d runs, want more than %d", g.Name, len(g.Runs), max(m, base)))
		}
		run, ref := g.Runs[m], g.Runs[base]
		if run.Skipped {
			continue
		}
		if !run.Feasible() {
			x.Infeasible++
			continue
		}
		if !ref.Feasible() {
			continue
		}
		best := math.Inf(1)
		for _, r := range g.Runs {
			if r.Feasible() {
				best = min(best, r.Cost)
			}
		}
		x.Graphs++
		x.Improvements = append(x.Improvements, 1-ratio(run.Cost, ref.Cost))
		x.Improvement += 1 - ratio(run.Cost, ref.Cost)
		x.Gap += ratio(run.Cost, best) - 1
		gap := ratio(run.Cost, g.Bound) - 1
		x.BoundGap += gap
		x.WorstBoundGap = max(x.WorstBoundGap, gap)
		if run.Cost <= g.Bound {
			x.AtBound++
		}
		switch {
		case run.Cost < ref.Cost:
			x.Wins++
		case run.Cost > ref.Cost:
			x.Losses++
		default:
			x.Ties++
		}
		x.Evaluations += float64(run.Evaluations)
		x.Seconds += run.Seconds
		x.WorstSeconds = max(x.WorstSeconds, run.Seconds)
	}
	if n := float64(x.Graphs); n > 0 {
		x.Improvement, x.Gap, x.BoundGap = x.Improvement/n, x.Gap/n, x.BoundGap/n
		x.Evaluations, x.Seconds = x.Evaluations/n, x.Seconds/n
	}
	return x
}

// ratio is a/b, and 1 where both are 0.
func ratio(a, b float64) float64 {
	if a == b {
		return 1
	}
	return a / b
}
