package contiguous

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"placer/sim/throughput"
)

// Config bounds the program.
type Config struct {
	// Downsets is the most there may be; where there are more, the best split along
	// topological orders is the answer.
	Downsets int
	// Linear looks at topological orders alone.
	Linear bool
}

// Default stops at a million downsets.
func Default() Config { return Config{Downsets: 1 << 20} }

// Result is a contiguous split.
type Result struct {
	Device  []uint8 // [N]
	Seconds float64 // its maximum load
	// Optimal says that no contiguous split has a lower maximum load.
	Optimal  bool
	Downsets int   // 0 where they were too many
	Pairs    int64 // differences of downsets looked at
	Blocks   int   // that the program decides on
	// Allowance is the share of outputs that room was held for; see Solve.
	Allowance float64
}

// ErrNothingFits says that no split was found that the memories hold.
var ErrNothingFits = errors.New("no contiguous split fits the devices' memories")

// leastAllowance is the first share of the outputs that room is held for, where
// holding none does not do.
const leastAllowance = 1.0 / 1024

// Solve returns the best contiguous split of s. It is an error if there is none,
// or if ctx ends before the first is found.
//
// The program adds up sizes, a peak is no sum. So the first split is the best of those
// whose resident bytes fit. Where its peaks do not, room is held for a share of the
// outputs, twice as much every time, and topological orders are cut until the peaks
// fit.
func Solve(ctx context.Context, s throughput.Source, c Config) (*Result, error) {
	r, err := solve(ctx, s, c)
	if err != nil || r.fits(ctx, s) {
		return r, err
	}
	c.Linear = true
	for s.Allowance = leastAllowance; s.Allowance <= 1; s.Allowance *= 2 {
		if r, err = solve(ctx, s, c); err != nil {
			return nil, err
		}
		if r.Optimal, r.Allowance = false, s.Allowance; r.fits(ctx, s) {
			return r, nil
		}
	}
	return nil, ErrNothingFits
}

// fits reports whether the split's peaks fit, of which the program knows nothing but
// sums. When ctx ends they do not.
func (r *Result) fits(ctx context.Context, s throughput.Source) bool {
	x, err := throughput.New(ctx, s)
	return err == nil && (x.Sums || x.Evaluate(x.Gather(r.Device)).Overflow == 0)
}

// solve is Solve by sizes alone.
func solve(ctx context.Context, s throughput.Source, c Config) (*Result, error) {
	r := &Result{Seconds: math.Inf(1)}
	for _, force := range []bool{false, true} {
		if ctx.Err() != nil {
			break
		}
		b, err := arrange(ctx, s, force)
		if err != nil && ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		if r.Blocks > 0 && !b.merged {
			break // nothing more can be joined
		}
		r.Blocks = b.NumBlocks()
		for order := range orders(b) {
			if ctx.Err() != nil {
				break
			}
			if err := r.improve(ctx, b, chain(order)); err != nil {
				return nil, err
			}
		}
		if c.Linear || ctx.Err() != nil {
			continue
		}
		l := downsets(ctx, b, c.Downsets)
		if l == nil {
			continue
		}
		r.Downsets = l.size()
		if err := r.improve(ctx, b, l); err != nil {
			return nil, err
		}
		r.Optimal = ctx.Err() == nil && !b.merged
		break
	}
	switch {
	case r.Device != nil:
		return r, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, ErrNothingFits
}

// improve runs the program on one lattice and keeps what is better.
func (r *Result) improve(ctx context.Context, b *blocks, l *lattice) error {
	p, err := newProgram(b, l, r.Seconds)
	if err != nil {
		return err
	}
	done := p.run(ctx)
	r.Pairs += p.pairs
	if !done {
		return nil
	}
	if seconds, block, ok := p.answer(); ok {
		r.Seconds, r.Device = seconds, b.Spread(block)
	}
	return nil
}

// orders returns topological orders to cut: first come first served, depth
// first, and depth first from the other end of each list.
func orders(b *blocks) iter.Seq[[]int32] {
	return func(yield func([]int32) bool) {
		for _, how := range []func(ready []int32) int{
			func([]int32) int { return 0 },
			func(ready []int32) int { return len(ready) - 1 },
			func(ready []int32) int { return slices.Index(ready, slices.Min(ready)) },
		} {
			wait := make([]int, b.NumBlocks())
			var ready, order []int32
			for v := range wait {
				if wait[v] = len(b.before[v]); wait[v] == 0 {
					ready = append(ready, int32(v))
				}
			}
			for len(ready) > 0 {
				k := how(ready)
				v := ready[k]
				ready = slices.Delete(ready, k, k+1)
				order = append(order, v)
				for _, w := range b.after[v] {
					if wait[w]--; wait[w] == 0 {
						ready = append(ready, w)
					}
				}
			}
			if !yield(order) {
				return
			}
		}
	}
}
