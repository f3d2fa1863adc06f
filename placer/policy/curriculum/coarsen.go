package curriculum

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/internal/unionfind"
	"placer/schedule"
)

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
	sets    unionfind.Sets // of the units of base
	seconds []float64
	total   float64
}

func newJoiner(g *graph.Graph, p *unit.Partition, seconds []float64) *joiner {
	j := &joiner{graph: g, base: p, sets: unionfind.New(p.NumUnits()), seconds: make([]float64, p.NumUnits())}
	for u, ops := range p.Ops {
		for _, i := range ops {
			j.seconds[u] += seconds[i]
		}
		j.total += j.seconds[u]
	}
	return j
}

// join merges the units of u and v; the lower one leads.
func (j *joiner) join(u, v int32) {
	if u, v = j.sets.Join(u, v); u != v {
		j.seconds[u] += j.seconds[v]
	}
}

// joinCounterparts merges each unit of level l, the joiner's, with the unit of its
// gradients and with the weights that only the two read.
func (j *joiner) joinCounterparts(h *unit.Hierarchy, l unit.Level) {
	for u, v := range h.Counterparts[l] {
		if v >= 0 {
			j.join(int32(u), v)
		}
	}
	readers := make([][]int32, len(j.sets))
	for u, ws := range h.Reads[l] {
		for _, w := range ws {
			if r := j.sets.Root(int32(u)); !slices.Contains(readers[w], r) {
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
	for j.absorbOnce(share) {
	}
}

// absorbOnce is a pass of absorb over all units, by the neighbours that they have as it
// begins. It reports whether any unit was small enough.
func (j *joiner) absorbOnce(share float64) (merged bool) {
	of := make([]int32, len(j.base.Of)) // [N] leader of each op's unit
	for i, u := range j.base.Of {
		of[i] = j.sets.Root(u)
	}
	nearest := schedule.NewCommunication(len(j.sets), schedule.BytesPlusOne, schedule.Reads(j.graph, of), schedule.Controls(j.graph, of)).Heaviest(1)
	for u := range int32(len(j.sets)) {
		if other, _ := nearest.Neighbours(u); len(other) > 0 && j.seconds[j.sets.Root(u)] < share*j.total {
			j.join(u, other[0])
			merged = true
		}
	}
	return merged
}

// partition returns the merged units, ordered by their first op.
func (j *joiner) partition() *unit.Partition {
	label := make([]int, len(j.base.Of))
	for i, u := range j.base.Of {
		label[i] = int(j.sets.Root(u))
	}
	return number(label, len(j.sets))
}
