package exact

import (
	"fmt"

	"placer/plan"
)

// gap says how far a score is above a bound.
func gap(s plan.Score, bound float64) string {
	if !s.Feasible() {
		return fmt.Sprintf("it does not fit; bound %.6g s", bound)
	}
	if bound <= 0 {
		return "no bound"
	}
	return fmt.Sprintf("bound %.6g s, gap %.2f%%", bound, 100*(s.Value/bound-1))
}
