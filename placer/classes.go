package placer

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/nn"
	"placer/ppo"
)

// classes sorts the ops that may be fused with their readers by what surrounds
// them: a graph repeats few such surroundings in all its layers and time steps,
// and what is good for one op of a class is good for the others.
type classes struct {
	of      []int32     // [N] class of each op, -1 where a fusion priority changes nothing
	ops     [][]int32   // [C] ops of each class, the class that takes most time first
	seconds []float64   // [N]
	rules   *fuse.Rules // whose takers are near
}

// split returns the classes of x apart by label, [N], or nil if they are more than
// most.
func (x *classes) split(label []int32, most int) *classes {
	y := &classes{of: slices.Repeat([]int32{-1}, len(x.of)), seconds: x.seconds, rules: x.rules}
	for _, ops := range x.ops {
		index := map[int32]int{}
		for _, i := range ops {
			k, known := index[label[i]]
			if !known {
				if len(y.ops) == most {
					return nil
				}
				k = len(y.ops)
				index[label[i]] = k
				y.ops = append(y.ops, nil)
			}
			y.ops[k] = append(y.ops[k], i)
		}
	}
	slices.SortStableFunc(y.ops, func(a, b []int32) int { return cmp.Compare(y.sum(b), y.sum(a)) })
	for c, ops := range y.ops {
		for _, i := range ops {
			y.of[i] = int32(c)
		}
	}
	return y
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

// apart returns the classes of x apart by label, [N], or x if they are more than
// most.
func (x *classes) apart(label []int32, most int) *classes {
	if y := x.split(label, most); y != nil {
		return y
	}
	return x
}

// single returns a class for each op that x has.
func (x *classes) single() *classes {
	label := make([]int32, len(x.of))
	for i := range label {
		label[i] = int32(i)
	}
	return x.split(label, len(label))
}

// classRounds is the most rounds of refinement: in each, an op's colour comes to
// tell what its inputs and its readers are.
const classRounds = 2

// newClasses sorts the ops of g into at most most classes: by kind, phase and
// sizes, refined by the colours of producers and readers as often as leaves no
// more classes. Where even kinds and sizes make more, the last class has the rest.
func newClasses(g *graph.Graph, seconds []float64, most int) *classes {
	r := fuse.NewRules(g)
	able := slices.Sorted(slices.Values(r.Able()))
	colour := plainColours(g)
	number, n := numberColours(colour, able)
	for range classRounds {
		colour = refineColours(g, colour)
		finer, m := numberColours(colour, able)
		if m > most {
			break
		}
		number, n = finer, m
	}
	x := &classes{of: slices.Repeat([]int32{-1}, g.NumOps()), ops: make([][]int32, n), seconds: seconds, rules: r}
	for k, i := range able {
		x.ops[number[k]] = append(x.ops[number[k]], i)
	}
	slices.SortStableFunc(x.ops, func(a, b []int32) int { return cmp.Compare(x.sum(b), x.sum(a)) })
	if n > most {
		x.ops[most-1] = slices.Concat(x.ops[most-1:]...)
		x.ops = x.ops[:most]
	}
	for c, ops := range x.ops {
		for _, i := range ops {
			x.of[i] = int32(c)
		}
	}
	return x
}

func (x *classes) sum(ops []int32) (s float64) {
	for _, i := range ops {
		s += x.seconds[i]
	}
	return s
}

// plainColours returns a number for each op, [N], by kind, phase and bytes.
func plainColours(g *graph.Graph) []uint64 {
	colour := make([]uint64, g.NumOps())
	for i := range colour {
		o := g.Op(graph.OpID(i))
		h := fnv.New64a()
		h.Write([]byte(o.Kind))
		first, end := g.Outputs(graph.OpID(i))
		words := []uint64{uint64(o.Phase), uint64(o.Bytes)}
		for t := first; t < end; t++ {
			words = append(words, uint64(g.Tensor(t).Bytes))
		}
		colour[i] = mixColours(h.Sum64(), words)
	}
	return colour
}

// refineColours returns colours that tell colour, those of the ops that make an
// op's inputs, in order, and the set of those of its readers.
func refineColours(g *graph.Graph, colour []uint64) []uint64 {
	finer := make([]uint64, len(colour))
	for i := range finer {
		id := graph.OpID(i)
		var in, out []uint64
		for _, t := range g.Inputs(id) {
			in = append(in, colour[g.Tensor(t).Producer])
		}
		first, end := g.Outputs(id)
		for t := first; t < end; t++ {
			for _, v := range g.Consumers(t) {
				out = append(out, colour[v])
			}
		}
		slices.Sort(out)
		finer[i] = mixColours(mixColours(colour[i], in), slices.Compact(out))
	}
	return finer
}

func mixColours(seed uint64, words []uint64) uint64 {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64(nil, seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(words)))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	h.Write(b)
	return h.Sum64()
}

// numberColours numbers the colours of ops in the order in which they appear.
func numberColours(colour []uint64, ops []int32) (number []int, n int) {
	index := map[uint64]int{}
	for _, i := range ops {
		k, known := index[colour[i]]
		if !known {
			k = len(index)
			index[colour[i]] = k
		}
		number = append(number, k)
	}
	return number, len(index)
}

// slots gives each class a choice of its own among the kinds choices of each unit
// of part, [C]: of the unit in which it takes most time and that has one left, or
// else of the first that has.
func (x *classes) slots(part *unit.Partition, kinds int) []int32 {
	slot := make([]int32, len(x.ops))
	used := make([]int, part.NumUnits())
	for c, ops := range x.ops {
		time := map[int32]float64{}
		var units []int32
		for _, i := range ops {
			u := part.Of[i]
			if _, known := time[u]; !known {
				units = append(units, u)
			}
			time[u] += x.seconds[i]
		}
		slices.SortFunc(units, func(a, b int32) int { return cmp.Or(cmp.Compare(time[b], time[a]), cmp.Compare(a, b)) })
		at := slices.IndexFunc(units, func(u int32) bool { return used[u] < kinds })
		var u int
		if at >= 0 {
			u = int(units[at])
		} else {
			u = slices.IndexFunc(used, func(n int) bool { return n < kinds })
		}
		slot[c] = int32(u*kinds + used[u])
		used[u]++
	}
	return slot
}

// carry moves logits of the choices of the units of coarse to those that the same
// classes have among the units of fine, softened as carryOver does.
func (x *classes) carry(rows [][]float32, kinds, levels int, coarse, fine *unit.Partition, soft float32) [][]float32 {
	return x.move(x, rows, kinds, levels, coarse, fine, func(_ int, from, to []float32) {
		top := slices.Max(from)
		for a, z := range from {
			to[a] = max(z-top, -soft)
		}
	})
}

// leave moves logits as carry does to classes of y, parts of those of x, so that
// each has the level that fusion, [N], gives it, and with chance leave those of the
// class that it was part of.
func (x *classes) leave(y *classes, rows [][]float32, kinds, levels int, coarse, fine *unit.Partition, fusion []uint8, leave float64) [][]float32 {
	chance := make([]float64, levels)
	return x.move(y, rows, kinds, levels, coarse, fine, func(c int, from, to []float32) {
		nn.SoftmaxRow(chance, from)
		for a, q := range chance {
			q *= leave
			if a == int(fusion[y.ops[c][0]]) {
				q += 1 - leave
			}
			to[a] = float32(math.Log(max(q, leastChance)))
		}
	})
}

// move makes logits of the choices that the classes of y have among the units of
// fine, [U][kinds levels], each by one from those of the class of x that it is part
// of, rows, among the units of coarse.
func (x *classes) move(y *classes, rows [][]float32, kinds, levels int, coarse, fine *unit.Partition, one func(c int, from, to []float32)) [][]float32 {
	from, to := x.slots(coarse, kinds), y.slots(fine, kinds)
	down := make([][]float32, fine.NumUnits())
	for u := range down {
		down[u] = make([]float32, kinds*levels)
	}
	for c := range to {
		at := from[x.of[y.ops[c][0]]]
		u, k := int(at)/kinds, int(at)%kinds
		v, l := int(to[c])/kinds, int(to[c])%kinds
		one(c, rows[u][k*levels:(k+1)*levels], down[v][l*levels:(l+1)*levels])
	}
	return down
}

// nearSteps is how many steps from producer to reader ops are near.
const nearSteps = 2

// near lists for each class the ops whose kernels its choice may change, [C].
func (x *classes) near() [][]int32 {
	n := len(x.of)
	beside := make([][]int32, n)
	for u := range int32(n) {
		if x.of[u] < 0 {
			continue
		}
		for _, v := range x.rules.Takers(u) {
			beside[u] = append(beside[u], v)
			beside[v] = append(beside[v], u)
		}
	}
	mark := slices.Repeat([]int32{-1}, n)
	all := make([][]int32, len(x.ops))
	for c, ops := range x.ops {
		list := slices.Clone(ops)
		for _, i := range list {
			mark[i] = int32(c)
		}
		for begin, step := 0, 0; step < nearSteps; step++ {
			end := len(list)
			for _, i := range list[begin:end] {
				for _, v := range beside[i] {
					if mark[v] != int32(c) {
						mark[v] = int32(c)
						list = append(list, v)
					}
				}
			}
			begin = end
		}
		all[c] = list
	}
	return all
}

// fit makes the choices of a unit as many as the stages with the fewest units
// need for all classes.
func (e *environment) fit(curricula [][]stage, least int) {
	if e.class == nil {
		return
	}
	e.kinds = least
	for _, stages := range curricula {
		for _, s := range stages {
			u := s.part.NumUnits()
			e.kinds = max(e.kinds, (len(e.classesOf(s).ops)+u-1)/u)
		}
	}
}

// classesOf returns the classes that are decided in stage s.
func (e *environment) classesOf(s stage) *classes {
	if s.class != nil {
		return s.class
	}
	return e.plain
}

// credit mixes into the advantages of what classes choose, [K][M], share of the
// standardised advantage by the seconds near them in the last evaluation; in
// groups of group decisions, which have one placement, by what sets these apart.
func (e *environment) credit(perChoice [][]float32, share float64, group int) {
	if e.near == nil || share == 0 {
		return
	}
	k := len(perChoice)
	a := make([]float32, k)
	for c, slot := range e.slot {
		for j := range k {
			a[j] = -float32(e.local[j][c])
		}
		for lo := 0; group > 1 && lo < k; lo += group {
			mean := float32(0)
			for _, y := range a[lo : lo+group] {
				mean += y / float32(group)
			}
			for j := range group {
				a[lo+j] -= mean
			}
		}
		scale := float32(0)
		for _, y := range a {
			scale = max(scale, y, -y)
		}
		if scale == 0 {
			continue
		}
		for j := range a { // Standardise adds to deviations what is much to a second
			a[j] /= scale
		}
		ppo.Standardise(a, a)
		for j := range perChoice {
			at := len(perChoice[j]) - e.part.NumUnits()*e.kinds + int(slot)
			perChoice[j][at] = float32(1-share)*perChoice[j][at] + float32(share)*a[j]
		}
	}
}
