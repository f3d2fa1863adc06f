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
	// Workers is the number of goroutines that simulate ways; 0 is one. Rows do not depend on it,
	// and the memory of as many steps is taken.
	Workers int
	// Room, if not nil, bounds the time of all comparisons that share it.
	Room *Room
}

// Validate reports every fault.
func (c Config) Validate() error {
	if c.Batch < 1 || c.MicroBatches < 0 || c.Workers < 0 {
		return fmt.Errorf("batch: %d, micro-batches: %d, workers: %d, want at least 1, 0 and 0", c.Batch, c.MicroBatches, c.Workers)
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
	NameContext     = "context-parallel"
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
	most   int      // mostOps, but for tests
	orders [][]int  // of devices, the machine's own first
	judges []*Judge // of the others, nil until they are asked
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
	x := &Comparison{judge: j, models: newModels(f, c.Batch), c: c, most: mostOps, orders: j.orders()}
	if s.Graph != nil && !strategy.Trains(s.Graph) {
		x.ahead = newModels(f, 2*c.Batch)
	}
	return x, nil
}

// Machine returns the devices that ranks go on.
func (x *Comparison) Machine() *hw.Machine { return x.judge.Machine }

// Trains reports whether the step has more than a forward pass.
func (x *Comparison) Trains() bool { return x.ahead == nil }

// Rows simulates every way, telling of each as it is known, in their order. Where ctx ends it
// returns what it has, at once: simulations under way end by themselves.
func (x *Comparison) Rows(ctx context.Context, tell func(*Row)) (rows []Row) {
	add := func(r Row) {
		rows = append(rows, r)
		if tell != nil {
			tell(&rows[len(rows)-1])
		}
	}
	if s := x.c.Strategy; s != nil {
		own := x.clone()
		if r, ok := unless(ctx, func() Row { return own.asked(*s) }); ok {
			add(r)
		}
		return rows
	}
	own := x.clone()
	ways, ok := unless(ctx, own.ways) // which builds models
	if !ok {
		return rows
	}
	under := x.begin(ctx, ways)
	defer under.leave()
	for k, w := range ways {
		r, ok := under.wait(ctx, x, k)
		if !ok {
			break
		}
		add(r)
		if w.name == NamePipeline && x.c.Stages != nil && ctx.Err() == nil {
			own, s := x.clone(), r.Strategy
			if g, ok := unless(ctx, func() Row { return own.given(s) }); ok {
				add(g)
			}
		}
	}
	if r := x.placement(ctx, rows); r != nil {
		add(*r)
	}
	return rows
}

// placement returns the row of the placement beside these, nil where there is nothing to begin
// with, or one device, or no search.
func (x *Comparison) placement(ctx context.Context, rows []Row) *Row {
	if x.c.Budget == (plan.Budget{}) || x.judge.Machine.NumDevices() == 1 || ctx.Err() != nil {
		return nil
	}
	var starts []*Row
	for k := range rows {
		if r := &rows[k]; r.Result != nil && isPlacement(r.Strategy) {
			starts = append(starts, r)
		}
	}
	if len(starts) == 0 {
		return nil
	}
	r, err := x.place(ctx, starts, x.c.Budget, x.c.Seed)
	if err != nil {
		r = &Row{Name: NamePlacement, Why: err.Error()}
	}
	return r
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
