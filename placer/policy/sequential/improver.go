package sequential

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"placer/baselines/search/anneal"
	"placer/plan"
)

// improverConfig bounds the work of shortening placements on the coarsened graph of cells,
// whose step is nearer to the simulated one than the end of the policy's own schedule is
// (docs/adr/0056-zero-shot-on-the-coarsened-graph.md).
type improverConfig struct {
	share   float64 // of the samples that are improvements of others, at most
	parents int     // those that are improved, by turns
	steps   int     // coarsened steps for each cell, at most
	fewest  int     // steps with which a placement is improved at all
	work    int     // nodes of coarsened steps in all at most, which leaves large graphs fewer
}

func defaultImprover() improverConfig {
	return improverConfig{share: 0.375, parents: 3, steps: 20, fewest: 500, work: 12_000_000}
}

// placements returns how many of k samples of s there is work to improve.
func (c improverConfig) placements(s *instance, k int) int {
	if s.d < 2 || s.part.NumUnits() < 2 {
		return 0
	}
	return min(int(c.share*float64(k)), c.work/(c.fewest*max(1, s.nodes.Graph.NumOps())))
}

// stepsOf returns how many coarsened steps each of n placements of s is given.
func (c improverConfig) stepsOf(s *instance, n int) int {
	return min(c.steps*s.part.NumUnits(), c.work/(max(1, n)*max(1, s.nodes.Graph.NumOps())))
}

// shortest returns the first of drafts and, of the others, those whose coarsened steps are
// shortest, n in all at most; of steps that differ by no more than alike, one. When ctx ends,
// it is the first alone.
func shortest(ctx context.Context, x *anneal.Sketch, drafts []Sample, n int, alike float64) []Sample {
	for i := range drafts {
		if ctx.Err() != nil {
			return drafts[:1]
		}
		drafts[i].clock = x.Seconds(drafts[i].Device)
	}
	out, rest := drafts[:1:1], slices.Clone(drafts[1:])
	slices.SortStableFunc(rest, func(a, b Sample) int { return cmp.Compare(a.clock, b.clock) })
	for _, y := range rest {
		if len(out) < n && !slices.ContainsFunc(out, func(z Sample) bool { return math.Abs(z.clock-y.clock) <= alike*y.clock }) {
			out = append(out, y)
		}
	}
	return out
}

// improve adds up to n samples to those judged: what annealing on the coarsened graph makes
// of the best of them, each by turns. One that comes to nothing new is not judged again.
func (p *Policy) improve(ctx context.Context, f *Features, judged []Sample, n int, c improverConfig, random *rand.Rand) []Sample {
	parents := slices.Clone(judged)
	slices.SortStableFunc(parents, func(a, b Sample) int { return a.Score.Compare(b.Score) })
	parents = parents[:min(len(parents), c.parents)]
	for i := range n {
		parent := parents[i%len(parents)]
		device := f.sketch.Shorten(ctx, parent.Device, c.stepsOf(f.instance(atCells), n), rand.NewPCG(random.Uint64(), random.Uint64()))
		if ctx.Err() != nil {
			break
		}
		if slices.Equal(device, parent.Device) {
			continue
		}
		y := Sample{Decision: plan.Decision{Device: device}}
		f.complete(p, &y)
		judged = append(judged, y)
	}
	return judged
}
