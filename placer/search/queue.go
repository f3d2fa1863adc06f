package search

import (
	"cmp"
	"context"
	"slices"

	"placer/plan"
)

// queue is a list of methods that run one after another.
type queue struct {
	methods []int   // indices, in the order they run
	weight  float64 // sum
	// end is when the queue's share of the budget ends, on the host's clock; 0: no
	// limit in seconds.
	end float64
}

// queues divides the methods of a stage that take part and are still to run among at most
// Workers queues, heaviest first onto the lightest queue. Baselines keep their
// order; other queues run light methods first, so that what they leave of their
// share goes to the heavy ones.
func (s *searcher) queues(stage Stage, part func(*Method) bool, end float64) []*queue {
	todo, weight, later := s.toRun(stage, part)
	queues := make([]*queue, min(s.c.Workers, len(todo)))
	for i := range queues {
		queues[i] = &queue{}
	}
	byWeight := slices.Clone(todo)
	slices.SortStableFunc(byWeight, func(a, b int) int { return cmp.Compare(s.methods[b].Weight, s.methods[a].Weight) })
	for n, k := range byWeight {
		l := queues[0]
		for _, x := range queues {
			if x.weight < l.weight {
				l = x
			}
		}
		if stage == StageBaseline {
			l = queues[n%len(queues)]
		}
		l.methods = append(l.methods, k)
		l.weight += s.methods[k].Weight
	}
	for _, l := range queues {
		if stage != StageBaseline {
			slices.Reverse(l.methods)
		}
		if s.c.Budget.Seconds > 0 {
			l.end = end
			if stage != StageBaseline && later > 0 {
				// The later stage runs alone, so a queue's worth of its weight is what it
				// gets.
				now := s.host.Clock()
				l.end = now + (end-now)*weight/(weight+later*float64(len(queues)))
			}
		}
	}
	return queues
}

// toRun returns the methods of a stage that take part and are still to run, with their weight
// and that of later stages. Those that had ended in an earlier run become rows.
func (s *searcher) toRun(stage Stage, part func(*Method) bool) (todo []int, weight, later float64) {
	for k := range s.methods {
		m := &s.methods[k]
		if m.Stage == stage && !part(m) {
			continue
		}
		if r, ok := s.host.Memory.Ended[m.Name]; ok {
			if m.Stage == stage {
				s.recall(k, r)
			}
			continue
		}
		switch {
		case m.Stage == stage:
			todo = append(todo, k)
			weight += m.Weight
		case m.Stage > stage:
			later += m.Weight
		}
	}
	return todo, weight, later
}

// run runs the queue's methods until ctx ends; those it does not come to are
// skipped.
func (l *queue) run(ctx context.Context, s *searcher) {
	left := l.weight
	for _, k := range l.methods {
		m := &s.methods[k]
		b, ok := s.budgetOf(m, l.end, left)
		left -= m.Weight
		before := s.host.Memory.Running[m.Name]
		switch {
		case (ctx.Err() != nil || !ok) && before.Outcome != nil:
			s.recall(k, before)
		case (ctx.Err() != nil || !ok) && s.late(m):
			s.placeLate(k)
		case ctx.Err() != nil || !ok:
			s.skip(k, "no time was left for it")
		default:
			s.place(ctx, k, b)
		}
	}
}

// late reports whether m runs though the time is over: reading a large graph may take
// the whole budget, and the first rules, which take a moment, still give an answer. Where
// that does not fit, others have until the grace is over.
func (s *searcher) late(m *Method) bool {
	if m.Stage != StageBaseline || m.Slow || s.ctx.Err() != nil {
		return false
	}
	best := s.best()
	return best == nil || !best.Score.Feasible() && s.host.Clock() < s.grace
}

// placeLate runs method k, a late one.
func (s *searcher) placeLate(k int) {
	ctx := s.ctx
	if s.best() != nil {
		limit, stop := s.host.until(ctx, s.grace)
		defer stop()
		ctx = limit
	}
	s.place(ctx, k, plan.Budget{})
}

// graceAfter returns until when late rules run under a budget of so many seconds, of which
// began had passed before the first method: a tenth of the budget longer, or a second.
func graceAfter(budget, began float64) float64 { return max(budget, began) + max(1, budget/10) }

// budgetOf returns the budget of method m, which runs now in a queue that ends at
// end and whose methods still to run weigh left. ok is false when the time is
// up.
func (s *searcher) budgetOf(m *Method, end, left float64) (b plan.Budget, ok bool) {
	total := s.c.Budget
	share := 1.0
	if m.Stage != StageBaseline && left > 0 {
		share = m.Weight / left
	}
	if end > 0 {
		b.Seconds = (end - s.host.Clock()) * share
		if b.Seconds <= 0 {
			return b, false
		}
	}
	if total.Evaluations > 0 && m.Stage != StageBaseline {
		var all float64
		for k := range s.methods {
			if s.methods[k].Stage != StageBaseline {
				all += s.methods[k].Weight
			}
		}
		b.Evaluations = max(1, int(float64(total.Evaluations)*m.Weight/all))
	}
	return b, true
}

// recall makes the row of a method from what an earlier run has left of it.
func (s *searcher) recall(k int, r Remembered) {
	if r.Outcome == nil {
		s.skip(k, r.Reason)
		return
	}
	s.mu.Lock()
	e := s.problem.Evaluator.Clone()
	s.mu.Unlock()
	s.finish(k, ended{what: Recalled, outcome: r.Outcome, cpuBefore: r.CPUSeconds, evaluator: e})
}
