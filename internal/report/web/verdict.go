package web

import (
	"fmt"

	"placer/internal/report"
	"placer/internal/words"
	"placer/units"
)

// verdict says in a few sentences what a search has found; used is how many devices run
// something under its best plan.
func verdict(s *report.Search, used int) (sentences []string) {
	best := objective(&s.Best)
	value := func(x float64) string { return report.Value(s.Objective, x) }
	if !s.Best.Feasible {
		return []string{fmt.Sprintf("No plan was found that fits: that of %s comes nearest and needs %s more memory than the devices have.", s.Best.Method, units.Bytes(s.Best.Overflow))}
	}
	where := deviceCount(s.Machine.Devices)
	if used < s.Machine.Devices {
		where = fmt.Sprintf("%d of %s", used, where)
	}
	if s.Best.Value != nil {
		sentences = append(sentences, fmt.Sprintf("The best plan by %s, of %s, comes to %s on %s.", s.Objective, s.Best.Method, value(best), where))
	} else {
		sentences = append(sentences, fmt.Sprintf("The best plan, by %s, takes %s a step on %s.", s.Best.Method, value(best), where))
	}
	if s.Robust != nil {
		sentences = append(sentences, fmt.Sprintf("Step times are %v; the timeline is of the machine as it is.", s.Robust))
	}
	if x := s.OneDevice; x != nil {
		switch {
		case !x.Feasible:
			sentences = append(sentences, "No plan on one device fits.")
		case x.Reduction > tie:
			sentences = append(sentences, fmt.Sprintf("The best plan on one device comes to %s: several devices are worth a factor of %.2f.", value(x.Value), x.Value/best))
		default:
			sentences = append(sentences, fmt.Sprintf("The best plan on one device comes to %s: several devices are not worth it.", value(x.Value)))
		}
	}
	if x := s.BestRule; x != nil && x.Feasible && x.Reduction > tie {
		sentences = append(sentences, fmt.Sprintf("The best rule, %s, comes to %s, of which the best plan saves %.1f%%.", x.Method, value(x.Value), 100*x.Reduction))
	}
	if x := s.Given; x != nil && s.Robust == nil && x.Feasible && x.Reduction > tie {
		sentences = append(sentences, fmt.Sprintf("The plan given comes to %s, of which the best plan saves %.1f%%.", value(x.Value), 100*x.Reduction))
	}
	if s.Best.Gap != nil {
		sentences = append(sentences, fmt.Sprintf("No plan comes below %s, which is proven; this one is %.1f%% above it.", value(s.LowerBound), 100**s.Best.Gap))
	}
	return sentences
}

// tie is the share below which two plans are as good as each other.
const tie = 1e-3

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

func deviceCount(n int) string { return words.Count(n, "device", "devices") }
