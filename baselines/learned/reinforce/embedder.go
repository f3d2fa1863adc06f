package reinforce

import (
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/nn"
	"placer/nn/vec"
)

// slots is the number of outputs of an op that are told apart: the length of the
// zero-padded list of output sizes.
const slots = 5

// Embedder describes groups of entities, which are ops or co-location groups.
type Embedder struct {
	kinds  int
	counts [][]kindCount // [E]
	sizes  []float32     // [E,slots] bytes of the outputs by their place
	ops    []float32     // [E]
	edges  [][2]int32    // between different entities, each pair and tensor once
}

type kindCount struct {
	kind  int32
	count float32
}

// NewEmbedder reads the ops of the units of entities.
func NewEmbedder(g *graph.Graph, entities *unit.Partition) *Embedder {
	n := entities.NumUnits()
	e := &Embedder{counts: make([][]kindCount, n), sizes: make([]float32, n*slots), ops: make([]float32, n)}
	numbers := map[graph.Kind]int32{}
	for i := range g.NumOps() {
		id := graph.OpID(i)
		u := entities.Of[i]
		kind, ok := numbers[g.Op(id).Kind]
		if !ok { // numbered in the order of the ops
			kind = int32(len(numbers))
			numbers[g.Op(id).Kind] = kind
		}
		e.count(u, kind)
		e.ops[u]++
		first, end := g.Outputs(id)
		for t := first; t < end; t++ {
			e.sizes[int(u)*slots+min(int(t-first), slots-1)] += float32(g.Tensor(t).Bytes)
		}
		for _, t := range g.Inputs(id) {
			e.edge(entities.Of[g.Tensor(t).Producer], u)
		}
		for _, c := range g.Control(id) {
			e.edge(entities.Of[c], u)
		}
	}
	e.kinds = len(numbers)
	return e
}

func (e *Embedder) count(u, kind int32) {
	for i := range e.counts[u] {
		if e.counts[u][i].kind == kind {
			e.counts[u][i].count++
			return
		}
	}
	e.counts[u] = append(e.counts[u], kindCount{kind, 1})
}

func (e *Embedder) edge(a, b int32) {
	if a != b {
		e.edges = append(e.edges, [2]int32{a, b})
	}
}

// Edges returns the pairs of different entities, producer first, that exchange
// something; a pair comes once for every time.
func (e *Embedder) Edges() [][2]int32 { return e.edges }

// Columns returns F for groups groups: a share for every kind of op, from which
// the network's first layer makes the mean of learned type embeddings; the sizes
// of the outputs; and one column for each group that reads this one, and each
// that this one reads.
func (e *Embedder) Columns(groups int) int { return e.kinds + slots + 2*groups }

// Embed writes the rows of the groups into x, [T,F], given the group of every
// entity, [E]. A group without entities gets zeros.
func (e *Embedder) Embed(group []int32, x nn.Mat) {
	if len(group) != len(e.counts) || x.D != e.Columns(x.N) {
		panic(fmt.Sprintf("reinforce: groups of %d entities into %v, there are %d with %d columns", len(group), x, len(e.counts), e.Columns(x.N)))
	}
	clear(x.V)
	adjacent := e.kinds + slots
	for u, t := range group {
		row := x.Row(int(t))
		for _, c := range e.counts[u] {
			row[c.kind] += c.count
		}
		for s, b := range e.sizes[u*slots : u*slots+slots] {
			row[e.kinds+s] += b
		}
	}
	for _, p := range e.edges {
		if a, b := group[p[0]], group[p[1]]; a != b {
			x.Row(int(a))[adjacent+int(b)]++
			x.Row(int(b))[adjacent+x.N+int(a)]++
		}
	}
	for t := range x.N {
		row := x.Row(t)
		scale(row[:e.kinds], vec.Sum(row[:e.kinds]))
		for s, b := range row[e.kinds:adjacent] {
			row[e.kinds+s] = float32(math.Log1p(float64(b))) / 16
		}
		scale(row[adjacent:], slices.Max(row[adjacent:])+1)
	}
}

// scale divides row by x, unless that is 0.
func scale(row []float32, x float32) {
	if x > 0 {
		vec.Scale(row, 1/x)
	}
}
