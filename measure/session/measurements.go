package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"placer/plan"
	"placer/units"
)

// Measurements are those of one search: each placement is measured once. It serves any number of
// goroutines.
type Measurements struct {
	ctx      context.Context
	measurer Measurer
	cache    *Cache
	key      Key // without Plan
	stop     func(error)

	mu     sync.Mutex
	counts counts
	inRow  int              // failures
	failed map[string]error // by plan
}

// counts says what became of the placements that were to be measured.
type counts struct {
	Measured   int `json:"measured"`      // run
	Known      int `json:"known"`         // taken from the cache
	OverMemory int `json:"out_of_memory"` // of those run: ran out of memory
	Failed     int `json:"failed"`        // not measured for another reason
}

// mostFailures is how many failures in a row end a search.
const mostFailures = 3

// NewMeasurements returns none yet. key has everything but the plan's hash. It measures
// until ctx ends. stop is called when measurements cannot go on: several in a row
// have failed, or the cache cannot be written.
func NewMeasurements(ctx context.Context, m Measurer, cache *Cache, key Key, stop func(error)) *Measurements {
	return &Measurements{ctx: ctx, measurer: m, cache: cache, key: key, stop: stop, failed: map[string]error{}}
}

// Counts returns the counts so far.
func (j *Measurements) Counts() counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts
}

// Measure returns the measured score of d. predicted is the simulator's: where it
// says that d does not fit, that is the answer. An error says why there is no
// measurement.
func (j *Measurements) Measure(d plan.Decision, predicted plan.Score) (plan.Score, error) {
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
	s, known, err := j.cache.Do(j.ctx, key, predicted.Value, func() (plan.Score, error) { return j.measurer.Measure(j.ctx, d) })
	var unwritten *writeError
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
	return plan.Score{Value: predicted.Value, Overflow: units.Bytes(1) << 50}
}
