package measured

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"placer/plan"
	"placer/units"
)

// Judge measures placements and remembers them. It serves any number of
// goroutines.
type Judge struct {
	ctx   context.Context
	meter Meter
	memo  *Memo
	key   Key // without Plan
	stop  func(error)

	mu     sync.Mutex
	counts Counts
	inRow  int              // failures
	failed map[string]error // by plan
}

// Counts says what became of the placements that were to be measured.
type Counts struct {
	Measured   int `json:"measured"`      // run
	Known      int `json:"known"`         // taken from the memo
	OverMemory int `json:"out_of_memory"` // of those run: ran out of memory
	Failed     int `json:"failed"`        // not measured for another reason
}

// mostFailures is how many failures in a row end a search.
const mostFailures = 3

// NewJudge returns a judge. key has everything but the plan's hash. It measures
// until ctx ends. stop is called when measurements cannot go on: several in a row
// have failed, or the memo cannot be written.
func NewJudge(ctx context.Context, m Meter, memo *Memo, key Key, stop func(error)) *Judge {
	return &Judge{ctx: ctx, meter: m, memo: memo, key: key, stop: stop, failed: map[string]error{}}
}

// Counts returns the counts so far.
func (j *Judge) Counts() Counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts
}

// Measure returns the measured score of d. predicted is the simulator's: where it
// says that d does not fit, that is the answer. An error says why there is no
// measurement.
func (j *Judge) Measure(d plan.Decision, predicted plan.Score) (plan.Score, error) {
	if !predicted.Feasible() {
		return predicted, nil
	}
	key := j.key
	key.Plan = PlanHash(d)
	j.mu.Lock()
	err := j.failed[key.Plan]
	j.mu.Unlock()
	if err != nil {
		return plan.Score{}, err
	}
	s, known, err := j.memo.Do(j.ctx, key, predicted.Seconds, func() (plan.Score, error) { return j.meter.Measure(j.ctx, d) })
	var unwritten *WriteError
	switch {
	case errors.As(err, &unwritten):
		j.stop(fmt.Errorf("measurements: %w", err))
		err = nil
	case err != nil && j.ctx.Err() != nil: // interrupted
		return plan.Score{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err != nil:
		j.counts.Failed++
		j.failed[key.Plan] = err
		if j.inRow++; j.inRow == mostFailures {
			j.stop(fmt.Errorf("%d measurements in a row failed, the last: %w", mostFailures, err))
		}
		return plan.Score{}, err
	case known:
		j.counts.Known++
	default:
		j.counts.Measured++
		j.inRow = 0
		if !s.Feasible() {
			j.counts.OverMemory++
		}
	}
	return s, nil
}

// unmeasured is the score of a placement that could not be measured: infeasible,
// and worse than any that was.
func unmeasured(predicted plan.Score) plan.Score {
	return plan.Score{Seconds: predicted.Seconds, Overflow: units.Bytes(1) << 50}
}
