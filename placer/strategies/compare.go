package strategies

import (
	"context"
	"errors"
	"fmt"

	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
)

// Config says what is compared.
type Config struct {
	// Batch is the number of samples of a step, on all devices together.
	Batch int64
	// MicroBatches are those that each replica divides its share into; 0: the number among powers
	// of two, and the largest, that gives the shortest step that fits.
	MicroBatches int
	// Stages, if not nil, are blocks of the model for each stage of a pipeline that somebody
	// else cut: a row of its own, beside the exact cut.
	Stages []int
	// Strategy, if not nil, is simulated alone, as it is: its row is the only one.
	Strategy *strategy.Strategy
	// Budget is that of the search that places the micro-batched graph; zero leaves its
	// row out.
	Budget plan.Budget
	Seed   uint64
	// Eager runs every op as a kernel of its own, as a framework does without a compiler;
	// otherwise ops are fused by the default rules.
	Eager bool
	// OneShot says that the system has one-shot all-reduces (Judge.OneShot).
	OneShot bool
	// Clock returns seconds since some start.
	Clock func() float64
	// Room, if not nil, bounds the time of all comparisons that share it.
	Room *Room
}

// Validate reports every fault.
func (c Config) Validate() error {
	if c.Batch < 1 || c.MicroBatches < 0 {
		return fmt.Errorf("batch: %d, micro-batches: %d, want at least 1 and 0", c.Batch, c.MicroBatches)
	}
	if c.Clock == nil {
		return errors.New("strategies: no clock")
	}
	return nil
}

// Row is the answer of one way to run a step.
type Row struct {
	Name     string
	Strategy strategy.Strategy
	// Device places the ops of one micro-batch, [N], in the row of a placement; else nil:
	// the strategy's stages do.
	Device  []uint8
	*Result // nil where it cannot be done
	// Stream is the best of the row where steps of inference follow one another; nil where none
	// fits, for training and for placements.
	Stream *Stream
	Why    string // it cannot
	// Indivisible says that it cannot because the batch is too small, or no multiple.
	Indivisible bool
	Took        float64 // seconds to the answer
	Tried       int     // strategies simulated
}

// Names of rows.
const (
	NameSingle      = "one device"
	NameData        = "data-parallel"
	NameZero1       = "zero-1"
	NameZero2       = "zero-2"
	NameZero3       = "zero-3"
	NameGPipe       = "pipeline-gpipe"
	NamePipeline    = "pipeline-1f1b"
	NameInterleaved = "pipeline-interleaved"
	NameGiven       = "pipeline-given"
	NameTensor      = "tensor-parallel"
	NameExperts     = "expert-parallel"
	NameHybrid      = "hybrid"
	NameAsked       = "as asked"
)

// Comparison answers for every way to run one family's step on one machine.
type Comparison struct {
	judge  *Judge
	models *models
	ahead  *models // of two steps, for inference alone
	c      Config
	most   int // mostOps, but for tests
}

// mostOps is the size of a step beyond which a step of fewer micro-batches is the answer, by
// an estimate from above. Two million ops take about eight seconds and 2.4 GB to simulate, and each
// doubling takes twice that. Nothing else ends where devices lack more than activations: each
// number of micro-batches then lacks less than the last, and none fits.
const mostOps = 2_000_000

// mostOpsFull is the same for steps that cannot fit in any number of micro-batches: how much they
// lack is told within a second.
const mostOpsFull = 200_000

// NewComparison reports a machine, a source or a configuration that nothing can be said of.
func NewComparison(s problem.Source, f Family, m *hw.Machine, c Config) (*Comparison, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	j, err := NewJudge(s, m)
	if err != nil {
		return nil, err
	}
	j.Eager, j.OneShot = c.Eager, c.OneShot
	x := &Comparison{judge: j, models: newModels(f, c.Batch), c: c, most: mostOps}
	if s.Graph != nil && inference(s.Graph) {
		x.ahead = newModels(f, 2*c.Batch)
	}
	return x, nil
}

// Machine returns the devices that ranks go on.
func (x *Comparison) Machine() *hw.Machine { return x.judge.Machine }

// Trains reports whether the step has more than a forward pass.
func (x *Comparison) Trains() bool { return x.ahead == nil }

// Rows simulates every way, telling of each as it is known. Where ctx ends it returns what
// it has.
func (x *Comparison) Rows(ctx context.Context, tell func(*Row)) (rows []Row) {
	n := x.judge.Machine.NumDevices()
	pure := func(mesh strategy.Mesh, sharding strategy.Sharding, schedule strategy.Schedule) []strategy.Strategy {
		chunks := []int{1}
		if schedule == strategy.Interleaved {
			chunks = []int{2, 4}
		}
		var all []strategy.Strategy
		for _, v := range chunks {
			all = append(all, x.divided(strategy.Strategy{Mesh: mesh, Sharding: sharding, Schedule: schedule, Chunks: v, Bucket: strategy.DefaultBucket})...)
		}
		return all
	}
	data, pipe, tensor := strategy.Mesh{Data: n, Pipeline: 1, Tensor: 1}, strategy.Mesh{Data: 1, Pipeline: n, Tensor: 1}, strategy.Mesh{Data: 1, Pipeline: 1, Tensor: n}
	add := func(name string, all []strategy.Strategy) {
		if ctx.Err() != nil {
			return
		}
		rows = append(rows, x.best(ctx, name, all))
		if tell != nil {
			tell(&rows[len(rows)-1])
		}
	}
	if s := x.c.Strategy; s != nil {
		rows = append(rows, x.asked(*s))
		if tell != nil {
			tell(&rows[0])
		}
		return rows
	}
	add(NameSingle, pure(strategy.Mesh{Data: 1, Pipeline: 1, Tensor: 1}, strategy.Replicated, strategy.OneFOneB))
	if n == 1 {
		return rows
	}
	add(NameData, pure(data, strategy.Replicated, strategy.OneFOneB))
	if x.ahead == nil { // inference has neither optimizer nor gradients
		add(NameZero1, pure(data, strategy.ShardOptimizer, strategy.OneFOneB))
		add(NameZero2, pure(data, strategy.ShardGradients, strategy.OneFOneB))
	}
	add(NameZero3, pure(data, strategy.ShardAll, strategy.OneFOneB))
	add(NameGPipe, pure(pipe, strategy.Replicated, strategy.GPipe))
	add(NamePipeline, pure(pipe, strategy.Replicated, strategy.OneFOneB))
	if x.c.Stages != nil && ctx.Err() == nil {
		rows = append(rows, x.given(rows[len(rows)-1].Strategy))
		if tell != nil {
			tell(&rows[len(rows)-1])
		}
	}
	add(NameInterleaved, pure(pipe, strategy.Replicated, strategy.Interleaved))
	add(NameTensor, pure(tensor, strategy.Replicated, strategy.OneFOneB))
	if x.experts() {
		all := pure(data, strategy.Replicated, strategy.OneFOneB)
		for k := range all {
			all[k].Experts = true
		}
		add(NameExperts, all)
	}
	add(NameHybrid, x.hybrids())
	if x.c.Budget == (plan.Budget{}) || ctx.Err() != nil {
		return rows
	}
	var starts []*Row
	pipelines := false
	for k := range rows {
		if r := &rows[k]; r.Result != nil && isPlacement(r.Strategy) {
			starts = append(starts, r)
			pipelines = pipelines || r.Strategy.Pipeline > 1
		}
	}
	if !pipelines { // nothing to cut anew
		return rows
	}
	r, err := x.place(ctx, starts, x.c.Budget, x.c.Seed)
	if err != nil {
		r = &Row{Name: NamePlacement, Why: err.Error()}
	}
	rows = append(rows, *r)
	if tell != nil {
		tell(r)
	}
	return rows
}

// Best returns the row of the shortest step that fits, or of the one that lacks least;
// nil where nothing can be done at all.
func Best(rows []Row) (best *Row) {
	for k := range rows {
		r := &rows[k]
		if r.Result != nil && (best == nil || r.Score().Better(best.Score())) {
			best = r
		}
	}
	return best
}

// next returns the number of micro-batches behind m that a share is divided into: the next power
// of two, and behind those the share itself.
func next(m, share int64) int64 {
	if m < share && 2*m > share {
		return share
	}
	return 2 * m
}

// divided returns s with every number of micro-batches that is worth a try.
func (x *Comparison) divided(s strategy.Strategy) (all []strategy.Strategy) {
	share := x.c.Batch / int64(s.Data)
	if x.c.Batch%int64(s.Data) != 0 {
		share = 0
	}
	for m := int64(1); m <= share; m = next(m, share) {
		if share%m != 0 || x.c.MicroBatches > 0 && int64(x.c.MicroBatches) != m {
			continue
		}
		if s.Pipeline > 1 && m < int64(s.Pipeline) && share%(2*m) == 0 && x.c.MicroBatches == 0 {
			continue // a pipeline is filled where it can be
		}
		s.MicroBatches = int(m)
		if s.Validate() == nil {
			all = append(all, s)
		}
	}
	if len(all) == 0 && share > 0 && x.c.MicroBatches > 0 && share%int64(x.c.MicroBatches) == 0 {
		s.MicroBatches = x.c.MicroBatches
		if s.Validate() == nil {
			all = append(all, s)
		}
	}
	return all
}

// experts reports whether replicas can share experts out.
func (x *Comparison) experts() bool {
	if x.ahead == nil {
		return false
	}
	m, _, _, err := x.models.of(x.judge, variant{x.c.Batch, strategy.RecomputeNothing})
	return err == nil && strategy.FindMixtures(m).Experts > 0
}

// hybrids are the meshes that divide more than one axis.
func (x *Comparison) hybrids() (all []strategy.Strategy) {
	n := x.judge.Machine.NumDevices()
	experts := x.experts()
	for d := 1; d <= n; d++ {
		for p := 1; d*p <= n; p++ {
			t := n / (d * p)
			if d*p*t != n || severalAxes(d, p, t) < 2 {
				continue
			}
			for _, sharding := range []strategy.Sharding{strategy.Replicated, strategy.ShardOptimizer} {
				if sharding != strategy.Replicated && (d == 1 || x.ahead != nil) {
					continue
				}
				s := strategy.Strategy{Mesh: strategy.Mesh{Data: d, Pipeline: p, Tensor: t}, Sharding: sharding, Schedule: strategy.OneFOneB, Chunks: 1, Bucket: strategy.DefaultBucket}
				all = append(all, x.divided(s)...)
				if experts && d > 1 {
					s.Experts = true
					all = append(all, x.divided(s)...)
				}
			}
		}
	}
	return all
}

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
	most := x.most
	for k, s := range all {
		if !x.c.Room.left() || ctx.Err() != nil && row.Result != nil {
			row.Why = "no time is left"
			break
		}
		same := s
		same.MicroBatches = 0
		if k == 0 || same != family {
			family, ended, last, most = same, false, nil, x.most
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
		} else if r.Overflow > 0 {
			s, r = x.recomputed(s, r, &row.Tried)
		}
		x.streams(&row, s, r)
		r.Step = nil // large; made again where it is asked for
		if row.Result == nil || r.Score().Better(row.Score()) {
			row.Strategy, row.Result = s, r
		}
		// More micro-batches than fit cost kernels; more than fill a pipeline too.
		score := r.Score()
		ended = r.Overflow == 0 && (s.Pipeline == 1 || last != nil && last.Better(score))
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

// isPrime reports whether n devices, 1 too, form no mesh of two axes.
func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
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

// severalAxes counts the axes that are divided.
func severalAxes(sizes ...int) (n int) {
	for _, s := range sizes {
		if s > 1 {
			n++
		}
	}
	return n
}
