package web

import (
	"fmt"

	"placer/internal/report"
	"placer/units"
)

// oneDevice is the method that runs everything on one device.
const oneDevice = "single"

// verdict says in a few sentences what a search has found.
func verdict(s *report.Search) (sentences []string) {
	best := objective(&s.Best)
	value := func(x float64) string { return report.Value(s.Objective, x) }
	if !s.Best.Feasible {
		return []string{fmt.Sprintf("No plan was found that fits: that of %s comes nearest and needs %s more memory than the devices have.", s.Best.Method, units.Bytes(s.Best.Overflow))}
	}
	what := fmt.Sprintf("The best plan, by %s, takes %s a step on %s.", s.Best.Method, value(best), deviceCount(s.Machine.Devices))
	if s.Best.Value != nil {
		what = fmt.Sprintf("The best plan by %s, of %s, comes to %s on %s.", s.Objective, s.Best.Method, value(best), deviceCount(s.Machine.Devices))
	}
	sentences = append(sentences, what)
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Method != oneDevice {
			continue
		}
		switch one := objective(r); {
		case !r.Feasible:
			sentences = append(sentences, "On one device the step does not fit.")
		case best < one:
			sentences = append(sentences, fmt.Sprintf("On one device, unfused, it takes %s: several devices are worth a factor of %.2f.", value(one), one/best))
		default:
			sentences = append(sentences, fmt.Sprintf("On one device it takes %s: several are not worth it.", value(one)))
		}
	}
	if s.Best.Gap != nil {
		sentences = append(sentences, fmt.Sprintf("No plan comes below %s, which is proven; this one is %.1f%% above it.", value(s.LowerBound), 100**s.Best.Gap))
	}
	return sentences
}

// compared says how two plans differ.
func compared(a, b *Plan) []string {
	x, y := float64(a.Result.Makespan), float64(b.Result.Makespan)
	first, second := fmt.Sprintf("%s takes %s a step", a.Title, units.Seconds(x)), fmt.Sprintf("%s %s", b.Title, units.Seconds(y))
	switch {
	case x == y:
		return []string{first + ", as does " + b.Title + "."}
	case y < x:
		return []string{fmt.Sprintf("%s, %s: %.1f%% shorter.", first, second, 100*(1-y/x))}
	}
	return []string{fmt.Sprintf("%s, %s: %.1f%% longer.", first, second, 100*(y/x-1))}
}

// objective returns what a row is judged by.
func objective(r *report.Row) float64 {
	if r.Value != nil {
		return *r.Value
	}
	return r.StepTime
}

func deviceCount(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}
