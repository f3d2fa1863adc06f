package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"placer/plan"
)

// Remote is a plan.Evaluator whose placements are evaluated by workers. Its
// clones share the controller and may evaluate at once.
type Remote struct {
	x       *Controller
	kind    Kind
	problem string
	// local answers for what no worker does, by its clone own, nil before it is needed;
	// for measurements it gives op times alone.
	local *lockedEvaluator
	own   plan.Evaluator
	// given are the problem's ranks, nil for none, and givenName their object.
	given     []int32
	givenName string
	// failure is the last reason why a job could not be submitted.
	failure *atomic.Pointer[string]
}

// lockedEvaluator is cloned by several goroutines.
type lockedEvaluator struct {
	mu sync.Mutex
	of plan.Evaluator
}

func (x *lockedEvaluator) clone() plan.Evaluator {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.of.Clone()
}

// Remote returns the evaluator of a problem. local evaluates the same placements
// with the same scores; op times come from it.
func (x *Controller) Remote(of Problem, local plan.Evaluator) (*Remote, error) {
	p := problem{Kind: of.Kind, Settings: of.Settings}
	kind := of.Kind
	for _, o := range []struct {
		data []byte
		name *string
	}{{of.Graph, &p.Graph}, {of.Machine, &p.Machine}} {
		var err error
		if *o.name, err = x.store(o.data); err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	r := &Remote{x: x, kind: kind, local: &lockedEvaluator{of: local}, given: slices.Clone(of.Priority), failure: new(atomic.Pointer[string])}
	if r.problem, err = x.store(text); err != nil {
		return nil, fmt.Errorf("hub: problem: %w", err)
	}
	if r.given != nil {
		if r.givenName, err = x.store(encodeRanks(r.given)); err != nil {
			return nil, fmt.Errorf("hub: ranks: %w", err)
		}
	}
	if err := x.queue(kind); err != nil {
		return nil, fmt.Errorf("hub: queue %s: %w", kind, err)
	}
	return r, nil
}

// Parallel returns how many evaluations keep the workers busy: two for each of
// their slots, so that one is on its way while another runs.
func (r *Remote) Parallel() int {
	n := 0
	for _, w := range r.x.Workers(r.kind) {
		n += 2 * w.Slots
	}
	return max(n, 1)
}

// Clone is as plan.Evaluator says.
func (r *Remote) Clone() plan.Evaluator { return r.Rollouts() }

// Refine is as plan.Rollouts says: all scores are final.
func (r *Remote) Refine([]plan.Score, func(k int) plan.Decision) []bool { return nil }

// Rollouts returns a clone of r, for another policy.
func (r *Remote) Rollouts() plan.Rollouts {
	c := *r
	c.own = nil
	return &c
}

// OpSeconds is as plan.Evaluator says.
func (r *Remote) OpSeconds(d int) []float64 { return r.local.of.OpSeconds(d) }

// Failure returns why a job could last not be submitted, or empty.
func (r *Remote) Failure() string {
	if s := r.failure.Load(); s != nil {
		return *s
	}
	return ""
}

// Evaluate is as plan.Evaluator says, except that it allocates. It is for
// simulations; see Measure.
func (r *Remote) Evaluate(d plan.Decision) plan.Score {
	var s plan.Score
	ok := false
	if len(r.x.Workers(r.kind)) > 0 {
		var err error
		s, err = r.remote(r.x.ctx, d)
		ok = err == nil
	}
	if !ok {
		if r.own == nil {
			r.own = r.local.clone()
		}
		s = r.own.Evaluate(d)
	}
	r.count(ok)
	return s
}

// Measure has a worker measure d. It waits for one, but not for ever. It may be
// called at once from several goroutines.
func (r *Remote) Measure(ctx context.Context, d plan.Decision) (plan.Score, error) {
	s, err := r.remote(ctx, d)
	if err == nil {
		r.count(true)
	}
	return s, err
}

func (r *Remote) count(remote bool) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	if remote {
		r.x.stats.Remote++
	} else {
		r.x.stats.Local++
	}
}

// errNoAnswer says that a job was given up, for which there may be no fault.
var errNoAnswer = errors.New("no answer")

// remote has a worker evaluate d.
func (r *Remote) remote(ctx context.Context, d plan.Decision) (s plan.Score, err error) {
	defer func() {
		if err != nil && !errors.Is(err, errNoAnswer) && ctx.Err() == nil {
			text := err.Error()
			r.failure.Store(&text)
		}
	}()
	j := &job{Problem: r.problem, device: d.Device, fusion: d.Fusion}
	if d.Priority != nil && slices.Equal(r.given, d.Priority) {
		j.Priority = r.givenName
	} else {
		j.ranks = d.Priority
	}
	p, err := r.x.submit(r.kind, j)
	if err != nil {
		return s, err
	}
	x, err := r.wait(ctx, p)
	if err != nil {
		r.x.forget(p)
		return s, err
	}
	if x.Error != "" {
		return s, fmt.Errorf("worker %s: %s", x.Worker, x.Error)
	}
	return x.score(), nil
}

// wait waits for the answer of p, as long as the controller's configuration says.
func (r *Remote) wait(ctx context.Context, p *pending) (result, error) {
	tick := time.NewTicker(beatPeriod)
	defer tick.Stop()
	patience, absence := r.x.c.Patience, time.Duration(0)
	if r.kind.IsHardware() {
		patience, absence = r.x.c.Longest, r.x.c.Absence
	}
	seen := p.sent // when there was last a worker
	for {
		select {
		case x := <-p.answer:
			return x, nil
		case <-ctx.Done():
			return result{}, ctx.Err()
		case <-r.x.ctx.Done():
			return result{}, r.x.ctx.Err()
		case <-tick.C:
			now := r.x.c.Clock()
			if len(r.x.Workers(r.kind)) > 0 {
				seen = now
			}
			switch {
			case now-r.x.since(p) > patience.Seconds():
				return result{}, fmt.Errorf("%w in %v", errNoAnswer, patience)
			case seen != now && now-seen >= absence.Seconds():
				return result{}, fmt.Errorf("%w: no worker of kind %s for %v", errNoAnswer, r.kind, absence)
			}
		}
	}
}
