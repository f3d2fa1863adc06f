package problem

import (
	"fmt"

	"placer/plan"
	"placer/sim/robust"
)

// Scheduler is the order in which a device runs its ready ops where no method
// decides it.
type Scheduler string

// Schedulers. The zero value is CriticalPath.
const (
	CriticalPath Scheduler = "critical-path" // the op with the longest path to the end first
	FIFO         Scheduler = "fifo"          // the op ready first
)

// ParseScheduler reads a name.
func ParseScheduler(s string) (Scheduler, error) {
	switch x := Scheduler(s); x {
	case CriticalPath, FIFO:
		return x, nil
	}
	return "", fmt.Errorf("unknown scheduler %q, want %s or %s", s, CriticalPath, FIFO)
}

// Options say how plans are judged and what is decided. The zero value stands for
// placement alone, by step time under critical-path scheduling.
type Options struct {
	Scheduler Scheduler
	Objective plan.Objective
	// Contention names how transfers share links ("fifo", "fair-share", "none");
	// empty: as the graph's file implies, or fifo.
	Contention string
	// Robust, if not nil, judges steps by a quantile over machines that deviate from the
	// one named; for the step objective.
	Robust *robust.Config
	// BoundSeconds is what the bound of the largest load may take, by an estimate of its effort
	// that reads no clock; more than a second counts as one, and so does 0.
	BoundSeconds float64
	// Tasks are the decisions asked for; none stands for plan.Place.
	Tasks plan.Tasks
}

// boundShare returns the share of its effort that the bound of the largest load may take.
func (o *Options) boundShare() float64 {
	if o.BoundSeconds == 0 {
		return 1
	}
	return min(1, o.BoundSeconds)
}
