package hdp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"placer/graph"
	"placer/graph/unit"
	"placer/nn"
)

// grouper is the feed-forward policy that gives each entity, a unit of ops,
// one of the groups.
type grouper struct {
	graph  *nn.Graph
	groups int
	sums   []float64 // [E,T] probabilities added up, of the last run
}

// newGrouper adds the grouper's parameters to ps.
func newGrouper(c Config, ps *nn.Params, r *rand.Rand, b *nn.Backend, x nn.Mat, groups int) (*grouper, error) {
	w1, b1 := ps.Glorot("group.w1", r, x.D, c.Hidden), ps.Constant("group.b1", 0, c.Hidden)
	w2, b2 := ps.Glorot("group.w2", r, c.Hidden, groups), ps.Constant("group.b2", 0, groups)
	if c.Sharpness > 0 {
		ordered(c.Sharpness, w1, w2, b2)
	}
	g := nn.NewGraph(b)
	in := g.Input("ops", x.N, x.D)
	g.SetInput(in, x)
	h := g.Linear(nn.Relu, []*nn.Node{in}, []*nn.Param{w1}, b1)
	if err := g.Compile(true, g.Linear(nn.Identity, []*nn.Node{h}, []*nn.Param{w2}, b2)); err != nil {
		return nil, err
	}
	return &grouper{graph: g, groups: groups, sums: make([]float64, x.N*groups)}, nil
}

// ordered makes the logit of group t at place p, a number of [0,1], fall with the
// square of the distance from the middle m of t's share of the places: but for
// what all groups have in common, -s (p - m)² is 2 s m p - s m². Unit 0 of the
// hidden layer carries p, which is column 0 of the input; the other units start
// with small weights.
func ordered(sharpness float64, w1, w2, b2 *nn.Param) {
	hidden, groups := w2.Shape[0], w2.Shape[1]
	for i := range w1.Shape[0] {
		w1.Value[i*hidden] = 0
	}
	w1.Value[0] = 1
	for i := range w2.Value {
		w2.Value[i] *= 0.1
	}
	s := sharpness * float64(groups) * float64(groups)
	for t := range groups {
		m := (float64(t) + 0.5) / float64(groups)
		w2.Value[t] = float32(2 * s * m)
		b2.Value[t] = float32(-s * m * m)
	}
}

// sample draws a group for every entity, K times, and writes groups and the
// logarithms of their probabilities, [K][E].
func (g *grouper) sample(r *rand.Rand, groups [][]int32, logProb [][]float32) error {
	if _, err := g.graph.Run(nil); err != nil {
		return err
	}
	logits := g.graph.Output(0)
	for u := range logits.N {
		sums := g.sums[u*g.groups : (u+1)*g.groups]
		nn.SoftmaxRow(sums, logits.Row(u))
		for t := 1; t < len(sums); t++ {
			sums[t] += sums[t-1]
		}
	}
	for k := range groups {
		for u := range logits.N {
			sums := g.sums[u*g.groups : (u+1)*g.groups]
			last := sums[len(sums)-1] // 1, but for rounding
			if math.IsNaN(last) {
				return fmt.Errorf("the logits of op %d are not finite", u)
			}
			// The first sum above the number drawn: never a group of probability 0.
			x := r.Float64() * last
			t := min(sort.Search(len(sums), func(i int) bool { return sums[i] > x }), len(sums)-1)
			p := sums[t]
			if t > 0 {
				p -= sums[t-1]
			}
			groups[k][u], logProb[k][u] = int32(t), float32(math.Log(p))
		}
	}
	return nil
}

// describe returns what the grouper is told of each entity, [E,F]: its place in
// topological order, cosines of it, the mean places of the entities it reads and
// of those that read it, the sizes of its outputs, and which kinds of ops it
// holds. The published controller lists up to 20 neighbours by their place, a
// number each; their means say where an op belongs at a fixed width.
func describe(g *graph.Graph, entities *unit.Partition, edges [][2]int32) nn.Mat {
	const harmonics = 6
	n := entities.NumUnits()
	kinds := map[graph.Kind]int{}
	for i := range g.NumOps() {
		k := g.Op(graph.OpID(i)).Kind
		if _, ok := kinds[k]; !ok {
			kinds[k] = len(kinds)
		}
	}
	const place, reads, readers, size, cosines = 0, 1, 2, 3, 4
	x := nn.NewMat(n, cosines+harmonics+len(kinds))
	for u, ops := range entities.Ops {
		row := x.Row(u)
		at := (float64(ops[0]) + 0.5) / float64(g.NumOps())
		row[place], row[reads], row[readers] = float32(at), float32(at), float32(at)
		var bytes float64
		for _, i := range ops {
			first, end := g.Outputs(i)
			for t := first; t < end; t++ {
				bytes += float64(g.Tensor(t).Bytes)
			}
			row[cosines+harmonics+kinds[g.Op(i).Kind]] += 1 / float32(len(ops))
		}
		row[size] = float32(math.Log1p(bytes)) / 16
		for k := range harmonics {
			row[cosines+k] = float32(math.Cos(math.Pi * float64(k+1) * at))
		}
	}
	mean := func(column int, of, at func([2]int32) int32) {
		sum, count := make([]float32, n), make([]float32, n)
		for _, e := range edges {
			sum[of(e)] += x.Row(int(at(e)))[place]
			count[of(e)]++
		}
		for u := range n {
			if count[u] > 0 {
				x.Row(u)[column] = sum[u] / count[u]
			}
		}
	}
	from := func(e [2]int32) int32 { return e[0] }
	to := func(e [2]int32) int32 { return e[1] }
	mean(reads, to, from)
	mean(readers, from, to)
	return x
}
