package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"placer/plan"
	"placer/units"
)

// Remote is a plan.Evaluator whose placements are evaluated by workers. Its
// clones share the controller and may evaluate at once.
type Remote struct {
	x       *Controller
	kind    Kind
	problem string
	// local answers for what no worker does; for measurements it gives op times
	// alone.
	local plan.Evaluator
	// ranks are the last scheduler's, and rankName their object.
	ranks    []int32
	rankName string
	// failure is the last reason why a job could not be submitted.
	failure *atomic.Pointer[string]
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
	r := &Remote{x: x, kind: kind, local: local, failure: new(atomic.Pointer[string])}
	if r.problem, err = x.store(text); err != nil {
		return nil, fmt.Errorf("hub: problem: %w", err)
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
func (r *Remote) Clone() plan.Evaluator {
	c := *r
	c.local = r.local.Clone()
	c.ranks, c.rankName = nil, ""
	return &c
}

// OpSeconds is as plan.Evaluator says.
func (r *Remote) OpSeconds(d int) []float64 { return r.local.OpSeconds(d) }

// Failure returns why a job could last not be submitted, or empty.
func (r *Remote) Failure() string {
	if s := r.failure.Load(); s != nil {
		return *s
	}
	return ""
}

// Evaluate is as plan.Evaluator says, except that it allocates.
func (r *Remote) Evaluate(device []uint8, priority []int32) plan.Score {
	return r.EvaluateFused(device, priority, nil)
}

// EvaluateFused is as plan.Evaluator says, except that it allocates.
func (r *Remote) EvaluateFused(device []uint8, priority []int32, fusion []uint8) plan.Score {
	s, ok := r.remote(&job{Problem: r.problem, device: device, fusion: fusion}, priority)
	if !ok {
		if s, ok = r.missing(); !ok {
			s = r.local.EvaluateFused(device, priority, fusion)
		}
	}
	r.count(ok)
	return s
}

// missing is the score of a placement that could not be measured: one that does
// not fit. ok is false for simulations, which the controller can do itself.
func (r *Remote) missing() (s plan.Score, ok bool) {
	return plan.Score{Overflow: 1 << 50}, r.kind.IsHardware()
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

// remote has a worker evaluate j; ok is false where none does.
func (r *Remote) remote(j *job, priority []int32) (s plan.Score, ok bool) {
	if !r.kind.IsHardware() && len(r.x.Workers(r.kind)) == 0 {
		return s, false
	}
	if priority != nil {
		if r.rankName == "" || !slices.Equal(r.ranks, priority) {
			name, err := r.x.store(encodeRanks(priority))
			if err != nil {
				r.fail(err)
				return s, false
			}
			r.ranks, r.rankName = append(r.ranks[:0], priority...), name
		}
		j.Priority = r.rankName
	}
	for r.x.ctx.Err() == nil {
		answer, forget, err := r.x.submit(r.kind, j)
		if err != nil {
			r.fail(err)
			return s, false
		}
		x, waited := r.wait(answer)
		switch {
		case !waited:
			forget()
		case x.Error == "":
			return plan.Score{Seconds: x.Seconds, Overflow: units.Bytes(x.Overflow)}, true
		default:
			r.fail(fmt.Errorf("worker %s: %s", x.Worker, x.Error))
		}
		if !r.kind.IsHardware() {
			return s, false
		}
	}
	return s, false
}

// wait waits for an answer: while there are workers and patience for a
// simulation, to the end of the search for a measurement.
func (r *Remote) wait(answer <-chan result) (result, bool) {
	tick := time.NewTicker(beatPeriod)
	defer tick.Stop()
	start := r.x.c.Clock()
	for {
		select {
		case x := <-answer:
			return x, true
		case <-r.x.ctx.Done():
			return result{}, false
		case <-tick.C:
			if r.kind.IsHardware() {
				continue
			}
			if r.x.c.Clock()-start > r.x.c.Patience.Seconds() || len(r.x.Workers(r.kind)) == 0 {
				return result{}, false
			}
		}
	}
}

func (r *Remote) fail(err error) {
	text := err.Error()
	r.failure.Store(&text)
}
