package serving

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/internal/faults"
	"placer/internal/parallel"
	"placer/units"
)

// Config says on what the load is served.
type Config struct {
	Load
	// Machine runs prompts, whose kernels the host launches one by one; Captured decodes, by replayed
	// graphs. They have the same devices.
	Machine, Captured *hw.Machine
	Sequences         int64 // most that a replica has at once
	// Strategy, if not nil, is the only division of a replica that is tried.
	Strategy *strategy.Strategy
	Workers  int // divisions simulated at once; 0 is one
}

// Validate reports every fault.
func (c Config) Validate() error {
	errs := faults.List{c.Load.Validate()}
	errs.If(c.Sequences < 1 || c.Sequences > MostSequences, "%d sequences of a replica at once, want 1 to %d", c.Sequences, MostSequences)
	errs.If(c.Workers < 0, "%d workers, want at least 0", c.Workers)
	return errors.Join(errs...)
}

// MostSequences bounds those of a replica at once.
const MostSequences = 1 << 16

// Row is what a replica divided in one way comes to, with the batch that serves the most.
type Row struct {
	Strategy strategy.Strategy
	Devices  int // of a replica
	Batch    int64
	Prompts  int64 // of a step that reads prompts
	Decode   float64
	Prefill  float64
	TTFT     float64 // of a request that need not wait for others, seconds
	TPOT     float64
	Rate     float64 // requests a second
	Fullest  units.Bytes
	Limit    Limit  // what keeps the batch from being larger
	Why      string // nothing can be served so
}

// Limit is what keeps a batch from being larger.
type Limit string

// Limits.
const (
	ByMemory Limit = "memory"
	ByTPOT   Limit = "TPOT"
	ByTTFT   Limit = "TTFT"
	ByGain   Limit = "no gain"
	ByServer Limit = "--sequences"
	ByTokens Limit = "tokens of a step"
)

// gain is by how much twice the batch has to raise the rate, or a row that of those before it.
const gain = 1.02

// Planner makes rows. It serves any number of goroutines.
type Planner struct {
	Config
	model Model
	tried []strategy.Strategy // divisions
	known steps
}

// NewPlanner returns the planner of a model under c.
func NewPlanner(model Model, c Config) (*Planner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Planner{Config: c, model: oneByOne(model)}
	var err error
	p.tried, err = p.divisions()
	return p, err
}

// Rows returns a row for each division of a replica among the machine's devices, telling of each as it
// is known, in their order. Where ctx ends it returns those that it has.
func (p *Planner) Rows(ctx context.Context, tell func(*Row)) []Row {
	return p.search(ctx, judge{p.batch, p.sequences, ByServer}, tell)
}

// judge says what replicas come to.
type judge struct {
	// batch returns what a replica divided by s comes to with a batch, or a *tooLarge.
	batch func(ctx context.Context, s strategy.Strategy, batch int64) (Row, error)
	sizes func(s strategy.Strategy) sizes // of its batches
	limit Limit                           // what a batch of the most is limited by
}

// sequences returns the sizes of batches of sequences under s.
func (p *Planner) sequences(s strategy.Strategy) sizes { return sizes{unit(s), p.Sequences} }

// sizes are multiples of a unit up to the most.
type sizes struct{ unit, most int64 }

// search returns a row for each division, of the batch that is best by a judge. It tells of each as it is
// known, in their order, and where ctx ends returns those that it has.
func (p *Planner) search(ctx context.Context, by judge, tell func(*Row)) (rows []Row) {
	answers, next := make([]chan Row, len(p.tried)), make(chan int, len(p.tried))
	for k := range p.tried {
		answers[k] = make(chan Row, 1)
		next <- k
	}
	close(next)
	var group parallel.Group
	for range max(1, p.Workers) {
		group.Go(func() {
			for k := range next {
				func() {
					defer close(answers[k]) // a panic's too, which Wait hands on
					if ctx.Err() == nil {
						answers[k] <- by.row(ctx, p.tried[k])
					}
				}()
			}
		})
	}
	for k := range p.tried {
		select {
		case <-ctx.Done(): // what is under way ends by itself
			return rows
		case r, ok := <-answers[k]:
			if ctx.Err() != nil {
				return rows
			}
			if !ok {
				group.Wait()
			}
			rows = append(rows, r)
			if tell != nil {
				tell(&rows[k])
			}
		}
	}
	return rows
}

// oneByOne is m for goroutines that share it.
func oneByOne(m Model) Model {
	var building sync.Mutex
	return func(batch, seq, past int64) (*graph.Graph, error) {
		building.Lock()
		defer building.Unlock()
		return m(batch, seq, past)
	}
}

// divisions returns those that are tried.
func (p *Planner) divisions() ([]strategy.Strategy, error) {
	ranks := p.Machine.Ranks()
	for _, k := range ranks { // replicas on other devices would serve otherwise
		if a, b := &p.Machine.Devices[ranks[0]], &p.Machine.Devices[k]; !a.SameFigures(b) {
			return nil, fmt.Errorf("machine %s: serving wants devices that are alike, %s is a %s and %s a %s", p.Machine.Name, a.Name, a.Model, b.Name, b.Model)
		}
	}
	g, err := p.model(1, 1, p.past())
	if err != nil {
		return nil, err
	}
	x, err := p.comparison(g, p.Machine, 1, 1, p.past(), nil)
	switch {
	case err != nil:
		return nil, err
	case x.Trains():
		return nil, errors.New("the step trains, serving wants a decoder's step of inference")
	}
	n := len(ranks)
	if s := p.Strategy; s != nil {
		if s.Ranks() > n {
			return nil, fmt.Errorf("%v is for %d devices, the machine has %d", *s, s.Ranks(), n)
		}
		alone := *s
		alone.MicroBatches = alone.Pipeline // a server divides no batch but among stages
		return []strategy.Strategy{alone}, nil
	}
	return divisions(n, x.Mixture()), nil
}

// row returns what s comes to with the batch that serves most.
func (j judge) row(ctx context.Context, s strategy.Strategy) Row {
	best, of := Row{Strategy: s, Devices: s.Ranks()}, j.sizes(s)
	if of.unit > of.most {
		best.Why = fmt.Sprintf("has %d sequences at once at least", of.unit)
		return best
	}
	limit, refused := j.limit, int64(0) // what refused the smallest batch that is too large
	batch := of.unit
	for {
		row, err := j.batch(ctx, s, batch)
		var large *tooLarge
		switch {
		case err == nil && refused == 0 && best.Batch > 0 && row.Rate < gain*best.Rate:
			best.Limit = ByGain
			return best
		case err == nil:
			best = row
		case errors.As(err, &large) && best.Batch > 0:
			limit, refused = large.limit, batch
		default:
			best.Why = err.Error()
			if large != nil && large.limit != ByMemory {
				best.Why += fmt.Sprintf(" with a batch of %d", batch)
			}
			return best
		}
		if batch = of.next(best.Batch, refused); batch == 0 {
			best.Limit = limit
			return best
		}
	}
}

// next returns the batch to try behind one that is served and one that is too large, 0 where none is
// known; 0 where they are close.
func (x sizes) next(served, refused int64) int64 {
	if refused == 0 {
		if 2*served <= x.most {
			return 2 * served
		}
		if more := x.most / x.unit * x.unit; more > served {
			return more
		}
		return 0
	}
	middle := (served + refused) / 2 / x.unit * x.unit
	if middle <= served || refused-served <= served/16 {
		return 0
	}
	return middle
}

// tooLarge says that a batch is not served.
type tooLarge struct {
	limit Limit
	text  string
}

func (e *tooLarge) Error() string { return e.text }

// batch returns what s comes to with so many sequences.
func (p *Planner) batch(ctx context.Context, s strategy.Strategy, batch int64) (Row, error) {
	c := cycle{load: p.Load, batch: batch, prompts: p.together(batch, s)}
	read, err := p.simulate(ctx, false, s, c.prompts, p.Prompt-p.Cached, p.Cached)
	if err != nil {
		return Row{}, err
	}
	c.prefill, c.latency = read.every, read.seconds
	r := Row{Strategy: s, Devices: s.Ranks(), Batch: batch, Prompts: c.prompts, Prefill: c.latency}
	decode := read
	if p.Output > 1 {
		if decode, err = p.simulate(ctx, true, s, batch, 1, p.past()); err != nil {
			return Row{}, err
		}
		c.decode = decode.every
	}
	r.Decode, r.TTFT, r.TPOT, r.Rate = c.decode, c.ttft(), c.tpot(), c.rate()
	return p.within(r, func(d int) units.Bytes {
		if p.Output == 1 {
			return read.peak[d]
		}
		return decode.peak[d] + read.peak[d] - read.held[d] // activations of prompts beside all keys and values
	})
}

// within returns r, of which device d needs so much memory, or a *tooLarge where it keeps to no limit.
func (p *Planner) within(r Row, need func(d int) units.Bytes) (Row, error) {
	short := units.Bytes(0)
	for d, rank := range p.Machine.Ranks()[:r.Devices] {
		b := need(d)
		r.Fullest, short = max(r.Fullest, b), max(short, b-p.Machine.Devices[rank].Memory)
	}
	switch {
	case short > 0:
		return r, &tooLarge{ByMemory, "lacks " + short.String()}
	case p.TPOT > 0 && r.TPOT > p.TPOT:
		return r, &tooLarge{ByTPOT, "takes " + units.Seconds(r.TPOT).String() + " between two tokens of a sequence"}
	case p.TTFT > 0 && r.TTFT > p.TTFT:
		return r, &tooLarge{ByTTFT, "takes " + units.Seconds(r.TTFT).String() + " to the first token"}
	}
	return r, nil
}

// Best returns the row of the most answers for each device, of rows that are close the first, or where rate
// requests a second are asked for that of the fewest devices that serve them; nil where nothing can be
// served.
func Best(rows []Row, rate float64) (best *Row) {
	for k := range rows {
		r := &rows[k]
		if r.Why == "" && (best == nil || better(r, best, rate)) {
			best = r
		}
	}
	return best
}

func better(a, b *Row, rate float64) bool {
	if rate > 0 {
		if x, y := a.needed(rate), b.needed(rate); x != y {
			return x < y
		}
	}
	return a.Rate/float64(a.Devices) > gain*b.Rate/float64(b.Devices)
}

// needed returns how many devices serve rate requests a second.
func (r *Row) needed(rate float64) int { return int(math.Ceil(rate/r.Rate)) * r.Devices }
