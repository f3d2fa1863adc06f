package session

import (
	"context"

	"placer/plan"
)

// Measurer measures placements.
type Measurer interface {
	// Measure returns the step time of d, or by how much d ran out of memory. An
	// error says that there is no measurement. It may be called at once from several
	// goroutines.
	Measure(ctx context.Context, d plan.Decision) (plan.Score, error)
	// Parallel returns how many measurements may usefully be under way.
	Parallel() int
}
