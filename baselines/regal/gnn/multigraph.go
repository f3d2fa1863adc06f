package gnn

import (
	"context"
	"math"
	"math/rand/v2"

	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
)

// EdgeFeatures is the number of columns of an edge: size of its tensor as a share
// of the graph's largest, whether it is control, and its tensor's number as a
// share of the number of tensors (A.2).
const EdgeFeatures = 3

// multigraph is what the network reads of a problem.
type multigraph struct {
	ops      *propose.Features
	from, to []int32   // [M] ops
	edges    []float32 // [M,EdgeFeatures]
	pin      int32     // op held on the first device
}

// firstShare is the column of an op's share on the first device.
const firstShare = 8

// readGraph builds the multigraph of p. It spends propose.FeatureEvaluations evaluations,
// which are the only use of r. The shares on devices, which after so few
// evaluations differ little between ops, are brought to mean 0 and mean square 1
// over the graph; without that a policy learns nothing from them in our time.
func readGraph(ctx context.Context, p *sched.Problem, o sched.Objective, r *rand.Rand) *multigraph {
	pin := propose.Heaviest(p, o)
	g := &multigraph{ops: propose.NewFeatures(ctx, p, o, pin, propose.FeatureEvaluations, r), pin: pin}
	for d := range p.D() {
		standardize(g.ops, firstShare+d)
	}
	largest := int64(1)
	for t := range int32(p.T()) {
		largest = max(largest, p.Size(t))
	}
	for t := range int32(p.T()) {
		control := float32(0)
		if p.Control(t) {
			control = 1
		}
		for _, v := range p.Consumers(t) {
			g.from, g.to = append(g.from, p.Producer(t)), append(g.to, v)
			g.edges = append(g.edges, float32(float64(p.Size(t))/float64(largest)), control, float32(t)/float32(p.T()))
		}
	}
	return g
}

// standardize brings column c of t to mean 0 and mean square 1.
func standardize(t *propose.Features, c int) {
	sum, squares := 0.0, 0.0
	for i := range t.N {
		v := float64(t.V[i*t.F+c])
		sum += v
		squares += v * v
	}
	mean := sum / float64(t.N)
	deviation := max(math.Sqrt(max(squares/float64(t.N)-mean*mean, 0)), 1e-6)
	for i := range t.N {
		v := &t.V[i*t.F+c]
		*v = float32((float64(*v) - mean) / deviation)
	}
}
