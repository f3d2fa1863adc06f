package strategies

import (
	"context"
	"fmt"

	"placer/graph/strategy"
	"placer/internal/words"
	"placer/plan"
)

// best simulates strategies and keeps the best.
func (x *Comparison) best(ctx context.Context, name string, all []strategy.Strategy) Row {
	row := Row{Name: name}
	for k, f := range families(all) {
		if k > 0 && ctx.Err() != nil && row.Result != nil {
			break
		}
		row.absorb(x.family(ctx, f))
	}
	x.finish(ctx, &row)
	return row
}

// families cuts strategies where more than the number of micro-batches changes.
func families(all []strategy.Strategy) (cut [][]strategy.Strategy) {
	begin := 0
	for k := range all {
		a, b := all[begin], all[k]
		if a.MicroBatches = b.MicroBatches; a != b {
			cut = append(cut, all[begin:k])
			begin = k
		}
	}
	if len(all) > 0 {
		cut = append(cut, all[begin:])
	}
	return cut
}

// absorb adds what a family of the row came to.
func (r *Row) absorb(f Row) {
	r.Took += f.Took
	r.Tried += f.Tried
	if f.Why != "" {
		r.Why = f.Why
	}
	if f.Result != nil && (r.Result == nil || f.Score().Better(r.Score())) {
		r.Strategy, r.Result = f.Strategy, f.Result
	}
	if f.Stream != nil && (r.Stream == nil || f.Stream.Every < r.Stream.Every) {
		r.Stream = f.Stream
	}
}

// family simulates strategies that differ in their numbers of micro-batches, fewest first, and
// keeps the best.
func (x *Comparison) family(ctx context.Context, all []strategy.Strategy) (row Row) {
	begin := x.c.Clock()
	var more strategy.Strategy // what the first splits beside products
	last := (*plan.Score)(nil) // of the step before
	ended, again, most := false, false, x.most
	x.undivided(&row, all[0])
	for _, s := range all {
		if !x.c.Room.left() || ctx.Err() != nil && row.Result != nil {
			row.Why = "no time is left"
			break
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
			s, r = x.splitMore(ctx, s, r, &row.Tried)
			more = s
		}
		if r.Full {
			most = min(most, mostOpsFull)
		} else if r.Overflow > 0 && !again {
			s, r = x.recomputed(ctx, s, r, &row.Tried)
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
	row.Took = x.c.Clock() - begin
	return row
}

// finish says why a row has no result, or splits more of the best.
func (x *Comparison) finish(ctx context.Context, row *Row) {
	begin := x.c.Clock()
	switch {
	case row.Result != nil:
		row.Why = ""
		if ctx.Err() == nil {
			row.Strategy, row.Result = x.splitMore(ctx, row.Strategy, row.Result, &row.Tried)
			if row.Name == NameHybrid {
				row.Strategy, row.Result = x.interleaved(ctx, row.Strategy, row.Result, &row.Tried)
			}
			row.Result.Step = nil
		}
	case row.Why == "": // there was nothing to try
		row.Why, row.Indivisible = x.nothing(row.Name)
	}
	row.Took += x.c.Clock() - begin
}

// nothing says why the row of that name has no strategy to try, and whether another batch would have.
func (x *Comparison) nothing(name string) (why string, indivisible bool) {
	n, pipeline := x.judge.Machine.NumDevices(), name == NameGPipe || name == NamePipeline || name == NameInterleaved
	switch {
	case name == NameHybrid && isPrime(n):
		return fmt.Sprintf("%s form no mesh of two axes", words.Count(n, "device", "devices")), false
	case pipeline && x.judge.streamed == nil:
		return tooManyStages(n), false
	case name == NameInterleaved && x.c.MicroBatches == 0:
		return fmt.Sprintf("a batch of %d cannot be divided into micro-batches whose number is a multiple of the %d stages", x.c.Batch, n), true
	}
	return fmt.Sprintf("a batch of %d cannot be divided so among %s", x.c.Batch, words.Count(n, "device", "devices")), true
}

// splitMore returns the best of s, which comes to r, with and without vocabularies and sequences
// split, where products are; tried counts.
func (x *Comparison) splitMore(ctx context.Context, s strategy.Strategy, r *Result, tried *int) (strategy.Strategy, *Result) {
	if s.Tensor == 1 {
		return s, r
	}
	for _, flip := range []func(*strategy.Strategy){
		func(s *strategy.Strategy) { s.Vocabulary = !s.Vocabulary },
		func(s *strategy.Strategy) { s.Sequence = !s.Sequence },
	} {
		other := s
		flip(&other)
		if !x.c.Room.left() || ctx.Err() != nil {
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

// interleaved returns the best of s, which comes to r, and of it with several stages a rank, where it has
// a pipeline; tried counts. Every mesh of several axes with such stages would be twice as many
// as there are to simulate.
func (x *Comparison) interleaved(ctx context.Context, s strategy.Strategy, r *Result, tried *int) (strategy.Strategy, *Result) {
	if s.Pipeline == 1 {
		return s, r
	}
	for _, chunks := range severalChunks {
		other := s
		other.Schedule, other.Chunks = strategy.Interleaved, chunks
		if other.Validate() != nil || !x.c.Room.left() || ctx.Err() != nil {
			continue
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
func (x *Comparison) recomputed(ctx context.Context, s strategy.Strategy, r *Result, tried *int) (strategy.Strategy, *Result) {
	for _, how := range []strategy.Recompute{strategy.RecomputeLayers, strategy.RecomputeSelective} {
		again := s
		again.Recompute = how
		hopeless := how == strategy.RecomputeSelective && s.Recompute == strategy.RecomputeLayers && r.Overflow > 0
		if hopeless || !x.c.Room.left() || ctx.Err() != nil {
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

// Folded returns the model of a row that is no placement, and the step of replica 0 and part 0 of
// its strategy.
func (x *Comparison) Folded(r *Row) (*strategy.Model, *strategy.Step, error) {
	s := r.Strategy
	m, blocks, _, err := x.models.of(x.judge, x.models.variant(s))
	if err != nil {
		return nil, nil, err
	}
	j, err := x.on(r.Result)
	if err != nil {
		return nil, nil, err
	}
	step, err := x.models.emit(j, m, blocks, s, r.Bounds, true)
	return m, step, err
}

// Layers returns how many of the model's layers each chunk of a row's stages has, in the order of chunks;
// nil where stages are not cut between layers.
func (x *Comparison) Layers(r *Row) []int {
	_, blocks, _, err := x.models.of(x.judge, x.models.variant(r.Strategy))
	if err != nil || !blocks.AreLayers() {
		return nil
	}
	count := make([]int, len(r.Result.Bounds))
	for k, from := range r.Result.Bounds {
		to := blocks.Len()
		if k+1 < len(count) {
			to = r.Result.Bounds[k+1]
		}
		count[k] = to - from
	}
	return count
}

// asked simulates s as it is, whether it fits or not. One device is the first of several, as in the
// row of that name.
func (x *Comparison) asked(s strategy.Strategy) Row {
	row := Row{Name: NameAsked, Strategy: s}
	begin := x.c.Clock()
	if n := x.judge.Machine.NumDevices(); s.Ranks() != n && s.Ranks() != 1 {
		row.Why = fmt.Sprintf("%v is for %d devices, the machine has %d", s, s.Ranks(), n)
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
		return nil, fmt.Errorf("%d stages are given for %s", len(x.c.Stages), words.Count(x.judge.Machine.NumDevices(), "device", "devices"))
	}
	m, blocks, _, err := x.models.of(x.judge, x.models.variant(s))
	if err != nil {
		return nil, err
	}
	bounds, sum := make([]int, len(x.c.Stages)), 0
	for k, n := range x.c.Stages {
		if bounds[k] = sum; n < 1 {
			return nil, fmt.Errorf("stage %d is given %s, want at least 1", k, words.Count(n, "layer", "layers"))
		}
		sum += n
	}
	if sum != blocks.Len() {
		return nil, fmt.Errorf("the stages given have %s, the model has %d", words.Count(sum, "layer", "layers"), blocks.Len())
	}
	step, err := strategy.Derive(m, blocks, s, strategy.Options{Bounds: bounds})
	if err != nil {
		return nil, err
	}
	return x.judge.Run(step)
}

// Simulate returns what s comes to, in the best order of unequal devices that is tried (see orders).
func (x *Comparison) Simulate(s strategy.Strategy) (*Result, error) {
	begin := x.c.Room.begin()
	defer func() { x.c.Room.ended(begin) }()
	best, err := x.simulate(x.judge, s)
	if err != nil || len(x.orders) == 1 {
		return best, err
	}
	ks, err := x.promising(s)
	if err != nil {
		return nil, err
	}
	for _, k := range ks {
		j, err := x.under(k)
		if err != nil {
			return nil, err
		}
		r, err := x.simulate(j, s)
		if err != nil {
			return nil, err
		}
		if r.Score().Better(best.Score()) {
			best = r
		}
	}
	return best, nil
}

// simulate returns what s comes to on the devices of j, its stages cut so that they fit by estimate,
// or by time alone where that is better.
func (x *Comparison) simulate(j *Judge, s strategy.Strategy) (*Result, error) {
	step, err := x.models.step(j, s)
	if err != nil {
		return nil, err
	}
	r, err := j.Run(step)
	if err != nil {
		return nil, err
	}
	if step, err = x.models.roomy(j, s); err != nil || step == nil {
		return r, err
	}
	o, err := j.Run(step)
	if err == nil && o.Score().Better(r.Score()) {
		r = o
	}
	return r, err
}
