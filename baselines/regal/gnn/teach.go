package gnn

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
)

// Rule proposes without a network what Teach says. It is no part of REGAL: it
// tells how much of a policy's figure its warm start explains.
type Rule struct{ Actions propose.Space }

// Propose implements propose.Proposer.
func (x Rule) Propose(ctx context.Context, p *sched.Problem, o sched.Objective, r *rand.Rand) (*propose.Proposal, error) {
	g := readGraph(ctx, p, o, r)
	return &propose.Proposal{Distributions: x.Actions.Distributions(teach(p, g, x.Actions)), Pin: g.pin, Evaluations: g.ops.Evaluations}, nil
}

// teach returns the decisions that a warm start imitates, [N*2(D+1)], a rule of
// ours for two devices and the run time. Ops that exchange data should share a
// device, but which is open: the rule smooths what the features' search thinks of
// each op along data edges, which grows its chance agreements into clusters, and
// takes its mean over the graph away, which balances the devices. Priorities fall
// with the length of the longest path that leads to an op.
func teach(p *sched.Problem, g *multigraph, a propose.Space) []uint8 {
	x := preference(g)
	place := before(p)
	all := make([]uint8, 0, g.ops.N*a.Decisions())
	level := func(v float64, k int) uint8 { return uint8(min(max(int(v*float64(k)), 0), k-1)) }
	for i := range g.ops.N {
		// The larger affinity wins: one device has it large where the other has it small.
		second := level(0.5+0.3*x[i], a.PlaceLevels)
		v := uint8(a.PlaceLevels / 8)
		all = append(all, uint8(a.PlaceLevels-1)-second, v, second, v)
		for range a.Devices - 2 {
			all = append(all, 0, v)
		}
		all = append(all, level(1-place[i], a.OrderLevels), uint8(a.OrderLevels/16))
	}
	return all
}

// preference returns how much the features prefer the second device for each op, [N]: mean 0,
// mean square 1.
func preference(g *multigraph) []float64 {
	const rounds = 8
	n, f := g.ops.N, g.ops.F
	x, sum, count := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = float64(g.ops.V[i*f+firstShare+1])
	}
	for e := range g.from {
		if g.edges[e*EdgeFeatures+1] == 0 { // no control
			count[g.from[e]]++
			count[g.to[e]]++
		}
	}
	for range rounds {
		clear(sum)
		for e, u := range g.from {
			if v := g.to[e]; g.edges[e*EdgeFeatures+1] == 0 {
				sum[u] += x[v]
				sum[v] += x[u]
			}
		}
		for i := range x {
			x[i] += sum[i] / max(count[i], 1)
		}
	}
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(n)
	}
	for i := range x {
		x[i] -= mean
		square += x[i] * x[i] / float64(n)
	}
	for i := range x {
		x[i] /= max(math.Sqrt(square), 1e-9)
	}
	return x
}

// before returns the place of each op in the order of the longest paths that lead
// to it, [N] in [0,1).
func before(p *sched.Problem) []float64 {
	n := p.N()
	start := make([]float64, n)
	for _, i := range p.Order() {
		for _, t := range p.Inputs(i) {
			u := p.Producer(t)
			start[i] = max(start[i], start[u]+p.Time()[u])
		}
	}
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(start[a], start[b]) })
	place := make([]float64, n)
	for k, i := range order {
		place[i] = float64(k) / float64(n)
	}
	return place
}
