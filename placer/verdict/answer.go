package verdict

import (
	"cmp"
	"slices"

	"placer/hw"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/units"
)

// Answer is the best plan found for the first devices of a machine.
type Answer struct {
	Machine int // index of the machine that was judged
	Devices int // taken
	Used    int // of those: that run an op
	// On is the machine of the devices taken, which Decision is for.
	On *hw.Machine
	plan.Decision
	Method string // that found the plan; for one seeded by another answer, what found that
	Score  plan.Score
	Peak   []units.Bytes // [Devices]
	// AtLeast is how many bytes every plan lacks, proven; Score.Overflow is what this
	// plan does.
	AtLeast units.Bytes
	Bound   float64 // proven lower bound of the step, seconds; 0 where nothing fits
	// AtPeak is the step if every device did nothing but arithmetic at its peak.
	AtPeak      units.Seconds
	Evaluations int
	// Seen are the plans that the methods came to, for the trade between time, memory
	// and devices.
	Seen []Point
}

// Point is a plan as a trade: less is better of all three.
type Point struct {
	Machine int
	Devices int // that run an op
	Step    float64
	Memory  units.Bytes // of the fullest device
	Method  string
}

// take keeps the row r if it is better, and its trade.
func (a *Answer) take(r *search.Row) {
	a.see(r.Decision, r.Score, r.Peak, r.Method)
	if a.Device == nil || r.Score.Better(a.Score) {
		a.Decision, a.Score, a.Peak, a.Used, a.Method = r.Decision, r.Score, r.Peak, plan.DevicesOf(r.Device), r.Method
	}
}

// consider judges d, a plan that method found, and keeps it if it is better.
func (a *Answer) consider(p *problem.Problem, d plan.Decision, method string) {
	score := p.Evaluator.Clone().Evaluate(d)
	peak := p.Peak(d)
	a.see(d, score, peak, method)
	if a.Device == nil || score.Better(a.Score) {
		a.Decision, a.Score, a.Peak, a.Used, a.Method = d.Clone(), score, peak, plan.DevicesOf(d.Device), method
	}
}

// see remembers what a plan trades, if it fits.
func (a *Answer) see(d plan.Decision, score plan.Score, peak []units.Bytes, method string) {
	if score.Feasible() {
		a.Seen = append(a.Seen, Point{a.Machine, plan.DevicesOf(d.Device), score.Value, slices.Max(peak), method})
	}
}

// sortPoints sorts by devices, then by step.
func sortPoints(ps []Point) {
	slices.SortStableFunc(ps, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Devices, b.Devices), cmp.Compare(a.Step, b.Step))
	})
}
