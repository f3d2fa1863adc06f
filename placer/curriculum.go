package placer

import (
	"cmp"
	"slices"

	"placer/features"
	"placer/graph"
	"placer/graph/unit"
)

// stage is one granularity of the policy's training.
type stage struct {
	name  string
	part  *unit.Partition
	chain *unit.Partition // gives a unit its place among its like
	share float64         // of the budget, relative to the other stages
	// oneFusion has one choice of fusion for all units.
	oneFusion bool
	near      []uint8  // [N] placement to begin at where nothing is carried; nil: none
	class     *classes // that decide on fusion; nil: those of the environment
	settles   bool     // fusion is learnt by differences from the best plan
}

// curricula returns the ways to train a policy that decides at level l: lists of
// stages, coarse to fine.
//
// By layer: first a forward chain together with its gradients and the weights
// that nobody else reads, then chains, and so on down to l. It suits unrolled
// networks, whose layers run side by side.
//
// By position: first blocks of consecutive cells with their gradients and
// weights, then more and shorter ones with the three apart, then cells if l asks
// for them. It suits deep networks: a cut in the middle pays only when a whole
// half moves, which sampling single layers never finds.
//
// By module: first every forward cell together with its gradients and weights,
// from the first sample on, then cells, or chains if l is no finer. It suits
// networks of many branches, which the cuts of the others tie together.
//
// Units too small to matter belong to the neighbour that they exchange most bytes
// with.
func curricula(g *graph.Graph, h *unit.Hierarchy, l unit.Level, seconds []float64, devices int) [][]stage {
	coarse := newJoiner(g, h.Levels[unit.Chain], seconds)
	coarse.joinPartners(h, unit.Chain)
	coarse.absorb(1e-3)
	layers := coarse.partition()
	byLayer := []stage{{name: "layer", part: layers, chain: layers, share: 3, oneFusion: true}}
	grow := func(stages []stage, at unit.Level, share float64) []stage {
		j := newJoiner(g, h.Levels[at], seconds)
		if at > unit.Op {
			j.absorb(1e-4)
		}
		if p := j.partition(); p.NumUnits() > stages[len(stages)-1].part.NumUnits() {
			return append(stages, stage{name: at.String(), part: p, chain: stages[0].part, share: share})
		}
		return stages
	}
	for at := unit.Chain; ; at-- {
		byLayer = grow(byLayer, at, map[unit.Level]float64{unit.Chain: 4, unit.Segment: 2, unit.Cell: 1, unit.Op: 1}[at])
		if at == l {
			break
		}
	}
	blocks := positionBlocks(g, h, seconds, blocksPerDevice*devices, false)
	byPosition := []stage{{name: "block", part: blocks, chain: blocks, share: 2, oneFusion: true}}
	if p := positionBlocks(g, h, seconds, 4*blocksPerDevice*devices, true); p.NumUnits() > blocks.NumUnits() {
		byPosition = append(byPosition, stage{name: "stretch", part: p, chain: blocks, share: 4})
	}
	if l <= unit.Cell {
		byPosition = grow(byPosition, unit.Cell, 3)
	}
	if l == unit.Op {
		byPosition = grow(byPosition, unit.Op, 2)
	}
	fine := newJoiner(g, h.Levels[unit.Cell], seconds)
	fine.joinPartners(h, unit.Cell)
	fine.absorb(1e-3)
	modules := fine.partition()
	byModule := grow([]stage{{name: "module", part: modules, chain: layers, share: 3, oneFusion: true}}, max(l, unit.Cell), 4)
	if l == unit.Op {
		byModule = grow(byModule, unit.Op, 2)
	}
	return [][]stage{byLayer, byPosition, byModule}
}

// nearStages are stages with the ops of a unit apart that device, [N], puts on
// different ones of n devices; what begins with one of them begins at device.
func nearStages(stages []stage, device []uint8, n int) []stage {
	near := slices.Clone(stages)
	for k, s := range near {
		label := make([]int, len(device))
		for i, u := range s.part.Of {
			label[i] = int(u)*n + int(device[i])
		}
		near[k].name += " near"
		near[k].part = number(label, s.part.NumUnits()*n)
		near[k].near = device
	}
	return near
}

// fusionStages are the stages in which fusion alone is learnt on the units of
// stages: classes of like surroundings, then apart by place in time, then by
// segment, then, where the evaluator tells what kernels take, single ops.
func (c FusionConfig) fusionStages(stages []stage, x *classes, h *unit.Hierarchy, tells bool) []stage {
	first, last := stages[0], stages[len(stages)-1]
	segments, cells := h.Levels[unit.Segment], h.Levels[unit.Cell]
	timed := x.apart(times(h), c.Finest)
	all := []stage{
		{name: "classes", part: first.part, chain: first.chain, share: c.Timed, class: x},
		{name: "classes in time", part: last.part, chain: last.chain, share: c.Segmented - c.Timed, class: timed},
	}
	bySegment := stage{name: "classes by segment", part: last.part, chain: last.chain, share: 1 - c.Segmented, class: timed.apart(segments.Of, c.Finest)}
	if !tells {
		return append(all, bySegment)
	}
	// Many choices divided among few units would widen the network for all stages.
	bySegment.share, bySegment.settles = c.Single-c.Segmented, true
	if bySegment.class = timed.split(segments.Of, len(x.of)); len(bySegment.class.ops) > c.Finest {
		bySegment.part = segments
	}
	return append(all, bySegment,
		stage{name: "ops", part: cells, chain: last.chain, share: 1 - c.Single, class: bySegment.class.single(), settles: true})
}

// blocksPerDevice blocks a device are few enough to sample all cuts, and enough
// to balance them.
const blocksPerDevice = 4

// positionBlocks cuts the cells of h into about n blocks of equal time by their
// place along the forward pass: a forward cell's is the longest path to its
// heaviest op, gradients have their forward cell's, weights that of their first
// reader. With split, forward cells, gradients and weights of a block are units
// of their own.
func positionBlocks(g *graph.Graph, h *unit.Hierarchy, seconds []float64, n int, split bool) *unit.Partition {
	cells, partners, roles := h.Levels[unit.Cell], h.Partners[unit.Cell], h.Roles[unit.Cell]
	place := make([]float64, cells.NumUnits())
	known := make([]bool, cells.NumUnits())
	top := features.TopLevels(g, seconds)
	for u, ops := range cells.Ops {
		if roles[u] == unit.Forward {
			heaviest := ops[0]
			for _, i := range ops {
				if seconds[i] > seconds[heaviest] {
					heaviest = i
				}
			}
			place[u], known[u] = top[heaviest], true
		}
	}
	for u, v := range partners {
		if roles[u] == unit.Backward && v >= 0 {
			place[u], known[u] = place[v], known[v]
		}
	}
	for u, ws := range h.Reads[unit.Cell] {
		for _, w := range ws {
			if known[u] && (!known[w] || place[u] < place[w]) {
				place[w], known[w] = place[u], true
			}
		}
	}
	last := 0.0
	total, time := 0.0, make([]float64, len(place))
	for u, ops := range cells.Ops {
		for _, i := range ops {
			time[u] += seconds[i]
		}
		total += time[u]
		if known[u] {
			last = max(last, place[u])
		}
	}
	order := make([]int, len(place))
	for u := range order {
		order[u] = u
		if !known[u] {
			place[u] = last
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(place[a], place[b]) })
	block := make([]int, len(place))
	sum := 0.0
	for k, u := range order {
		if k > 0 && place[u] == place[order[k-1]] { // a cell, its gradients and weights stay together
			block[u] = block[order[k-1]]
		} else {
			block[u] = min(n-1, int((sum+time[u]/2)/total*float64(n)))
		}
		sum += time[u]
	}
	kinds := 1
	if split {
		kinds = 3
	}
	label := make([]int, g.NumOps())
	for i, u := range cells.Of {
		label[i] = block[u]*kinds + int(roles[u])%kinds
	}
	return number(label, n*kinds)
}

// number makes a partition of labels below n, ordered by first op.
func number(label []int, n int) *unit.Partition {
	unitOf := make([]int32, n)
	for k := range unitOf {
		unitOf[k] = -1
	}
	p := &unit.Partition{Of: make([]int32, len(label))}
	for i, k := range label {
		if unitOf[k] < 0 {
			unitOf[k] = int32(len(p.Ops))
			p.Ops = append(p.Ops, nil)
		}
		p.Of[i] = unitOf[k]
		p.Ops[unitOf[k]] = append(p.Ops[unitOf[k]], graph.OpID(i))
	}
	return p
}

// joiner merges units of a partition.
type joiner struct {
	graph   *graph.Graph
	base    *unit.Partition
	parent  []int32 // union-find over the units of base
	seconds []float64
	total   float64
}

func newJoiner(g *graph.Graph, p *unit.Partition, seconds []float64) *joiner {
	j := &joiner{graph: g, base: p, parent: make([]int32, p.NumUnits()), seconds: make([]float64, p.NumUnits())}
	for u, ops := range p.Ops {
		j.parent[u] = int32(u)
		for _, i := range ops {
			j.seconds[u] += seconds[i]
		}
		j.total += j.seconds[u]
	}
	return j
}

func (j *joiner) find(u int32) int32 {
	for j.parent[u] != u {
		j.parent[u] = j.parent[j.parent[u]]
		u = j.parent[u]
	}
	return u
}

// join merges the units of u and v; the lower one leads.
func (j *joiner) join(u, v int32) {
	u, v = j.find(u), j.find(v)
	if u == v {
		return
	}
	if v < u {
		u, v = v, u
	}
	j.parent[v] = u
	j.seconds[u] += j.seconds[v]
}

// joinPartners merges each unit of level l, the joiner's, with the unit of its
// gradients and with the weights that only the two read.
func (j *joiner) joinPartners(h *unit.Hierarchy, l unit.Level) {
	for u, v := range h.Partners[l] {
		if v >= 0 {
			j.join(int32(u), v)
		}
	}
	readers := make([][]int32, len(j.parent))
	for u, ws := range h.Reads[l] {
		for _, w := range ws {
			if r := j.find(int32(u)); !slices.Contains(readers[w], r) {
				readers[w] = append(readers[w], r)
			}
		}
	}
	for w, rs := range readers {
		if len(rs) == 1 {
			j.join(int32(w), rs[0])
		}
	}
}

// absorb merges every unit that takes less than share of the whole time into
// the neighbour it exchanges most bytes with, the lower of equals, until none is
// left that has a neighbour.
func (j *joiner) absorb(share float64) {
	type edge struct {
		a, b  int32
		bytes int64
	}
	for {
		var edges []edge
		link := func(p, q graph.OpID, bytes int64) {
			a, b := j.find(j.base.Of[p]), j.find(j.base.Of[q])
			if a == b {
				return
			}
			edges = append(edges, edge{a, b, bytes}, edge{b, a, bytes})
		}
		for i := range j.graph.NumOps() {
			for _, t := range j.graph.Inputs(graph.OpID(i)) {
				x := j.graph.Tensor(t)
				link(x.Producer, graph.OpID(i), int64(x.Bytes)+1)
			}
			for _, c := range j.graph.Control(graph.OpID(i)) {
				link(c, graph.OpID(i), 1)
			}
		}
		slices.SortFunc(edges, func(x, y edge) int {
			if x.a != y.a {
				return int(x.a - y.a)
			}
			return int(x.b - y.b)
		})
		merged := false
		for lo := 0; lo < len(edges); {
			a, hi := edges[lo].a, lo
			best, most := int32(-1), int64(-1)
			for hi < len(edges) && edges[hi].a == a {
				b, sum := edges[hi].b, int64(0)
				for ; hi < len(edges) && edges[hi].a == a && edges[hi].b == b; hi++ {
					sum += edges[hi].bytes
				}
				if sum > most {
					best, most = b, sum
				}
			}
			if j.seconds[j.find(a)] < share*j.total {
				j.join(a, best)
				merged = true
			}
			lo = hi
		}
		if !merged {
			return
		}
	}
}

// partition returns the merged units, ordered by their first op.
func (j *joiner) partition() *unit.Partition {
	label := make([]int, len(j.base.Of))
	for i, u := range j.base.Of {
		label[i] = int(j.find(u))
	}
	return number(label, len(j.parent))
}
