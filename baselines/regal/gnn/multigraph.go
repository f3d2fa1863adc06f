package gnn

import (
	"context"
	"math"
	"math/rand/v2"

	"placer/baselines/regal/columns"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
)

// EdgeFeatures is the number of columns of an edge: size of its tensor as a share
// of the graph's largest, whether it is control, and its tensor's number as a
// share of the number of tensors (A.2).
const EdgeFeatures = 3

// Multigraph is what the network reads of a problem.
type Multigraph struct {
	Ops      *columns.Table
	From, To []int32   // [M] ops
	Edges    []float32 // [M,EdgeFeatures]
	Pin      int32     // op held on the first device
}

// firstShare is the column of an op's share on the first device.
const firstShare = 8

// Read builds the multigraph of p. It spends columns.Evaluations evaluations,
// which are the only use of r. The shares on devices, which after so few
// evaluations differ little between ops, are brought to mean 0 and mean square 1
// over the graph; without that a policy learns nothing from them in our time.
func Read(ctx context.Context, p *sched.Problem, o sched.Objective, r *rand.Rand) *Multigraph {
	pin := propose.Heaviest(p, o)
	g := &Multigraph{Ops: columns.Build(ctx, p, o, pin, columns.Evaluations, r), Pin: pin}
	for d := range p.D() {
		standardize(g.Ops, firstShare+d)
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
			g.From, g.To = append(g.From, p.Producer(t)), append(g.To, v)
			g.Edges = append(g.Edges, float32(float64(p.Size(t))/float64(largest)), control, float32(t)/float32(p.T()))
		}
	}
	return g
}

// standardize brings column c of t to mean 0 and mean square 1.
func standardize(t *columns.Table, c int) {
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
