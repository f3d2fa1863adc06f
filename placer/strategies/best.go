package strategies

import (
	"context"
	"fmt"

	"placer/graph/strategy"
	"placer/plan"
)

// best simulates strategies and keeps the best.
func (x *Comparison) best(ctx context.Context, name string, all []strategy.Strategy) Row {
	begin := x.c.Clock()
	row := Row{Name: name}
	if len(all) == 0 {
		n := x.judge.Machine.NumDevices()
		row.Why, row.Indivisible = fmt.Sprintf("a batch of %d cannot be divided so among %d devices", x.c.Batch, n), true
		if name == NameHybrid && isPrime(n) {
			row.Why, row.Indivisible = fmt.Sprintf("%d devices form no mesh of two axes", n), false
		}
	}
	var family strategy.Strategy             // of the numbers of micro-batches under way, fewest first
	var more strategy.Strategy               // what that splits beside products
	ended, last := false, (*plan.Score)(nil) // of the step before
	again := false                           // fewer micro-batches fit by recomputation
	most := x.most
	for k, s := range all {
		if !x.c.Room.left() || ctx.Err() != nil && row.Result != nil {
			row.Why = "no time is left"
			break
		}
		same := s
		same.MicroBatches = 0
		if k == 0 || same != family {
			family, ended, last, most, again = same, false, nil, x.most, false
			x.undivided(&row, s)
		}
		if ended || last != nil && x.models.opsOf(x.judge, s) > most {
			continue
		}
		given := s
		if last != nil {
			s.Vocabulary, s.Sequence = more.Vocabulary, more.Sequence
		}
		r, err := x.Simulate(s)
		if err != nil && s != given { // micro-batches whose rows cannot be shared
			s = given
			r, err = x.Simulate(s)
		}
		if err != nil {
			row.Why = err.Error()
			continue
		}
		row.Tried++
		if last == nil {
			s, r = x.splitMore(s, r, &row.Tried)
			more = s
		}
		if r.Full {
			most = min(most, mostOpsFull)
		} else if r.Overflow > 0 && !again {
			s, r = x.recomputed(s, r, &row.Tried)
			again = s.Pipeline == 1 && r.Overflow == 0
		}
		x.streams(&row, s, r)
		r.Step = nil // large; made again where it is asked for
		if row.Result == nil || r.Score().Better(row.Score()) {
			row.Strategy, row.Result = s, r
		}
		// More micro-batches than fit cost kernels; more than fill a pipeline too. Those that fit
		// only by computing layers again cost a third of the step: more may fit without.
		score := r.Score()
		ended = r.Overflow == 0 && (s.Pipeline == 1 && s.Recompute == strategy.RecomputeNothing || s.Pipeline > 1 && last != nil && last.Better(score))
		last = &score
	}
	if row.Result != nil {
		row.Why = ""
		if ctx.Err() == nil {
			row.Strategy, row.Result = x.splitMore(row.Strategy, row.Result, &row.Tried)
			row.Result.Step = nil
		}
	}
	row.Took = x.c.Clock() - begin
	return row
}

// splitMore returns the best of s, which comes to r, with and without vocabularies and sequences
// split, where products are; tried counts.
func (x *Comparison) splitMore(s strategy.Strategy, r *Result, tried *int) (strategy.Strategy, *Result) {
	if s.Tensor == 1 {
		return s, r
	}
	for _, flip := range []func(*strategy.Strategy){
		func(s *strategy.Strategy) { s.Vocabulary = !s.Vocabulary },
		func(s *strategy.Strategy) { s.Sequence = !s.Sequence },
	} {
		other := s
		flip(&other)
		if !x.c.Room.left() {
			break
		}
		if o, err := x.Simulate(other); err == nil {
			if *tried++; o.Score().Better(r.Score()) {
				s, r = other, o
			}
		}
	}
	return s, r
}

// recomputed returns what s, which comes to r and does not fit, becomes by recomputation: all
// layers first, which need least, and where these fit the cores of attention alone, which take
// less time; tried counts.
func (x *Comparison) recomputed(s strategy.Strategy, r *Result, tried *int) (strategy.Strategy, *Result) {
	for _, how := range []strategy.Recompute{strategy.RecomputeLayers, strategy.RecomputeSelective} {
		again := s
		again.Recompute = how
		hopeless := how == strategy.RecomputeSelective && s.Recompute == strategy.RecomputeLayers && r.Overflow > 0
		if hopeless || !x.c.Room.left() {
			continue
		}
		o, err := x.Simulate(again)
		if err != nil {
			continue
		}
		if *tried++; o.Score().Better(r.Score()) {
			s, r = again, o
		}
	}
	return s, r
}

// asked simulates s as it is, whether it fits or not.
func (x *Comparison) asked(s strategy.Strategy) Row {
	row := Row{Name: NameAsked, Strategy: s}
	begin := x.c.Clock()
	if n := x.judge.Machine.NumDevices(); s.Ranks() != n {
		row.Why = fmt.Sprintf("%v has %d ranks, the machine %d devices", s, s.Ranks(), n)
	} else if r, err := x.Simulate(s); err != nil {
		row.Why = err.Error()
	} else {
		x.streams(&row, s, r)
		r.Step = nil
		row.Result, row.Tried = r, 1
	}
	row.Took = x.c.Clock() - begin
	return row
}

// given simulates a 1F1B pipeline of the stages of the configuration.
func (x *Comparison) given(s strategy.Strategy) Row {
	row := Row{Name: NameGiven, Strategy: s}
	begin := x.c.Clock()
	r, err := x.runGiven(s)
	if err != nil {
		row.Why = err.Error()
	} else {
		r.Step = nil
		row.Result, row.Tried = r, 1
	}
	row.Took = x.c.Clock() - begin
	return row
}

func (x *Comparison) runGiven(s strategy.Strategy) (*Result, error) {
	if s.Pipeline != len(x.c.Stages) {
		return nil, fmt.Errorf("%d stages are given for %d devices", len(x.c.Stages), x.judge.Machine.NumDevices())
	}
	m, blocks, _, err := x.models.of(x.judge, variant{x.c.Batch / int64(s.MicroBatches), s.Recompute})
	if err != nil {
		return nil, err
	}
	bounds, sum := make([]int, len(x.c.Stages)), 0
	for k, n := range x.c.Stages {
		if bounds[k] = sum; n < 1 {
			return nil, fmt.Errorf("stage %d is given %d layers, want at least 1", k, n)
		}
		sum += n
	}
	if sum != blocks.Len() {
		return nil, fmt.Errorf("the stages given have %d layers, the model has %d", sum, blocks.Len())
	}
	step, err := strategy.Derive(m, blocks, s, strategy.Options{Bounds: bounds})
	if err != nil {
		return nil, err
	}
	return x.judge.Run(step)
}

// Simulate returns what s comes to, its stages cut so that they fit by estimate, or by time
// alone where that is better.
func (x *Comparison) Simulate(s strategy.Strategy) (*Result, error) {
	begin := x.c.Room.begin()
	defer func() { x.c.Room.ended(begin) }()
	step, err := x.models.step(x.judge, s)
	if err != nil {
		return nil, err
	}
	r, err := x.judge.Run(step)
	if err != nil {
		return nil, err
	}
	if step, err = x.models.roomy(x.judge, s); err != nil || step == nil {
		return r, err
	}
	o, err := x.judge.Run(step)
	if err == nil && o.Score().Better(r.Score()) {
		r = o
	}
	return r, err
}
