package fusion

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
)

// classes sorts the ops that may be fused with their readers by what surrounds
// them, as Weisfeiler and Lehman's test of isomorphism does: a graph repeats few such surroundings in all its layers and time steps,
// and what is good for one op of a class is good for the others.
type classes struct {
	of      []int32   // [N] class of each op, -1 where a fusion priority changes nothing
	ops     [][]int32 // [C] ops of each class, the class that takes most time first
	seconds []float64 // [N]
}

// split returns the classes of x apart by label, [N].
func (x *classes) split(label []int32) *classes {
	y := &classes{of: slices.Repeat([]int32{-1}, len(x.of)), seconds: x.seconds}
	for _, ops := range x.ops {
		index := map[int32]int{}
		for _, i := range ops {
			k, known := index[label[i]]
			if !known {
				k = len(y.ops)
				index[label[i]] = k
				y.ops = append(y.ops, nil)
			}
			y.ops[k] = append(y.ops[k], i)
		}
	}
	y.number()
	return y
}

// number puts the classes in order and tells every op its own.
func (x *classes) number() {
	slices.SortStableFunc(x.ops, func(a, b []int32) int { return cmp.Compare(x.sum(b), x.sum(a)) })
	for c, ops := range x.ops {
		for _, i := range ops {
			x.of[i] = int32(c)
		}
	}
}

// times tells, for each op, the how manyth segment of its chain it is in, [N].
func times(h *unit.Hierarchy) []int32 {
	segments, chains := h.Levels[unit.Segment], h.Levels[unit.Chain]
	time := make([]int32, len(segments.Of))
	next := make([]int32, chains.NumUnits())
	for _, ops := range segments.Ops {
		c := chains.Of[ops[0]]
		for _, i := range ops {
			time[i] = next[c]
		}
		next[c]++
	}
	return time
}

// single returns a class for each op that x has.
func (x *classes) single() *classes {
	label := make([]int32, len(x.of))
	for i := range label {
		label[i] = int32(i)
	}
	return x.split(label)
}

// classRounds is the most rounds of refinement: in each, an op's label comes to
// tell what its inputs and its readers are.
const classRounds = 2

// newClasses sorts the ops of g into at most most classes: by kind, phase and
// sizes, refined by the labels of producers and readers as often as leaves no
// more classes. Where even kinds and sizes make more, the last class has the rest.
func newClasses(g *graph.Graph, seconds []float64, most int) *classes {
	fusible := slices.Sorted(slices.Values(fuse.NewRules(g).Fusible()))
	label := plainLabels(g)
	number, n := numberLabels(label, fusible)
	for range classRounds {
		label = refineLabels(g, label)
		finer, m := numberLabels(label, fusible)
		if m > most {
			break
		}
		number, n = finer, m
	}
	x := &classes{of: slices.Repeat([]int32{-1}, g.NumOps()), ops: make([][]int32, n), seconds: seconds}
	for k, i := range fusible {
		x.ops[number[k]] = append(x.ops[number[k]], i)
	}
	x.number()
	if n > most {
		x.ops[most-1] = slices.Concat(x.ops[most-1:]...)
		x.ops = x.ops[:most]
		x.number()
	}
	return x
}

func (x *classes) sum(ops []int32) (s float64) {
	for _, i := range ops {
		s += x.seconds[i]
	}
	return s
}

// plainLabels returns a number for each op, [N], by kind, phase and bytes.
func plainLabels(g *graph.Graph) []uint64 {
	label := make([]uint64, g.NumOps())
	for i := range label {
		o := g.Op(graph.OpID(i))
		h := fnv.New64a()
		h.Write([]byte(o.Kind))
		first, end := g.Outputs(graph.OpID(i))
		words := []uint64{uint64(o.Phase), uint64(o.Bytes)}
		for t := first; t < end; t++ {
			words = append(words, uint64(g.Tensor(t).Bytes))
		}
		label[i] = mixLabels(h.Sum64(), words)
	}
	return label
}

// refineLabels returns labels that tell label, those of the ops that make an
// op's inputs, in order, and the set of those of its readers.
func refineLabels(g *graph.Graph, label []uint64) []uint64 {
	finer := make([]uint64, len(label))
	for i := range finer {
		id := graph.OpID(i)
		var in, out []uint64
		for _, t := range g.Inputs(id) {
			in = append(in, label[g.Tensor(t).Producer])
		}
		first, end := g.Outputs(id)
		for t := first; t < end; t++ {
			for _, v := range g.Consumers(t) {
				out = append(out, label[v])
			}
		}
		slices.Sort(out)
		finer[i] = mixLabels(mixLabels(label[i], in), slices.Compact(out))
	}
	return finer
}

func mixLabels(seed uint64, words []uint64) uint64 {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64(nil, seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(words)))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	h.Write(b)
	return h.Sum64()
}

// numberLabels numbers the labels of ops in the order in which they appear.
func numberLabels(label []uint64, ops []int32) (number []int, n int) {
	index := map[uint64]int{}
	for _, i := range ops {
		k, known := index[label[i]]
		if !known {
			k = len(index)
			index[label[i]] = k
		}
		number = append(number, k)
	}
	return number, len(index)
}

// decode writes the levels of classes, [C], into fusion, [N].
func (x *classes) decode(level []int32, fusion []uint8) {
	for i, c := range x.of {
		if c >= 0 {
			fusion[i] = uint8(level[c])
		}
	}
}
