package contiguous

import (
	"context"
	"errors"
	"fmt"
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
}

// ErrNothingFits says that no split was found that the memories hold.
var ErrNothingFits = errors.New("no contiguous split fits the devices' memories")

// Solve returns the best contiguous split of s. It is an error if there is none,
// or if ctx ends before the first is found.
func Solve(ctx context.Context, s throughput.Source, c Config) (*Result, error) {
	r := &Result{Seconds: math.Inf(1)}
	for _, force := range []bool{false, true} {
		b, err := arrange(s, force)
		if err != nil {
			return nil, err
		}
		if r.Blocks > 0 && !b.merged {
			break // nothing more can be joined
		}
		r.Blocks = b.NumBlocks()
		for _, order := range orders(b) {
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
	p, ok := newProgram(b, l, r.Seconds)
	if !ok {
		return fmt.Errorf("contiguous splits: %d devices of %d kinds are too many different ones", b.NumDevices(), len(b.Classes))
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
func orders(b *blocks) [][]int32 {
	var out [][]int32
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
		out = append(out, order)
	}
	return out
}
