package strategy

import (
	"fmt"
	"slices"

	"placer/graph"
	"placer/units"
)

// member is a rank's part in a collective.
type member struct {
	rank int
	wait []graph.OpID // ops that must end first
	// others are those of other stages that must end first, whose ranks are not alike: a ring waits
	// for them by itself.
	others []graph.OpID
	in     []graph.TensorID // tensors that it is handed
	outs   []graph.Tensor   // tensors that it gets
}

// collective emits c among members and returns the op of each whose end is the
// collective's end there: the last of a ring, or one that stands for the collective. Where
// the step is folded there is one member of each stage, which stands for all there.
func (e *emitter) collective(c Collective, label string, members []member) []graph.OpID {
	index := int32(len(e.step.Collectives))
	e.step.Collectives = append(e.step.Collectives, c)
	name := fmt.Sprintf("%v_%d/%s", c.Kind, index, label)
	if e.step.Folded || c.Ranks == 1 || e.one != nil && e.one(c) {
		ends := make([]graph.OpID, len(members))
		for k, m := range members {
			o := graph.Op{Name: fmt.Sprintf("%s/%d", name, m.rank), Kind: graph.Kind(c.Kind.String()), Phase: graph.Backward, Forward: graph.None}
			ends[k] = e.communicate(o, m.rank, index, slices.Concat(m.wait, m.others), m.in, m.outs)
		}
		return ends
	}
	if c.Kind == AllToAll {
		return e.exchange(c, name, members)
	}
	return e.ring(c, name, members)
}

// exchange emits the rounds of an all-to-all: in round s every rank gets the part that the rank s
// before it has for it, straight from there, and sends the next when that has come, so that in each
// round every rank sends one part and gets one.
func (e *emitter) exchange(c Collective, name string, members []member) []graph.OpID {
	d := len(members)
	part := graph.Tensor{DType: graph.I8, Bytes: units.Bytes(ceil(int64(c.Bytes), int64(d))), Resident: true}
	op := func(round, k int) graph.Op {
		return graph.Op{Name: fmt.Sprintf("%s/%d.%d", name, members[k].rank, round), Kind: graph.Kind(c.Kind.String()), Phase: graph.Backward, Forward: graph.None}
	}
	ends := make([]graph.OpID, d)
	for k, m := range members {
		ends[k] = e.communicate(op(0, k), m.rank, -1, m.wait, m.in, []graph.Tensor{part})
	}
	before := make([]graph.OpID, d)
	for round := 1; round < d; round++ {
		copy(before, ends)
		for k, m := range members {
			outs := []graph.Tensor{part}
			if round == d-1 {
				outs = m.outs
			}
			from := before[(k+d-round)%d]
			ends[k] = e.communicate(op(round, k), m.rank, -1, before[k:k+1], []graph.TensorID{e.b.Output(from, 0)}, outs)
		}
	}
	return ends
}

// ring emits the steps of a ring: in each, every rank sends one part to the next. The op
// of a step ends when the part has come (and, in the first half of a reduction, is added).
func (e *emitter) ring(c Collective, name string, members []member) []graph.OpID {
	d := len(members)
	part := graph.Tensor{DType: graph.I8, Bytes: units.Bytes(ceil(int64(c.Bytes), int64(d))), Resident: true}
	steps := c.Kind.Steps(d)
	ends := make([]graph.OpID, d)
	op := func(step, k int) graph.Op {
		return graph.Op{Name: fmt.Sprintf("%s/%d.%d", name, members[k].rank, step), Kind: graph.Kind(c.Kind.String()), Phase: graph.Backward, Forward: graph.None}
	}
	starts := make([]graph.OpID, d)
	for k, m := range members {
		starts[k] = e.communicate(op(0, k), m.rank, -1, m.wait, m.in, []graph.Tensor{part})
	}
	before := append([]graph.OpID(nil), starts...)
	for step := 1; step <= steps; step++ {
		for k, m := range members {
			from := before[(k+d-1)%d]
			var wait []graph.OpID
			if step == 1 {
				wait = starts[k : k+1]
			}
			outs := []graph.Tensor{part}
			if step == steps {
				outs = m.outs
			}
			ends[k] = e.communicate(op(step, k), m.rank, -1, wait, []graph.TensorID{e.b.Output(from, 0)}, outs)
		}
		copy(before, ends)
	}
	return ends
}

// communicate adds an op to a rank's stream.
func (e *emitter) communicate(o graph.Op, rank int, collective int32, wait []graph.OpID, in []graph.TensorID, outs []graph.Tensor) graph.OpID {
	id := e.add(o, rank, graph.None, e.micro, in, outs...)
	e.step.Stream[id], e.step.Collective[id] = true, collective
	for _, w := range wait {
		e.note(w, id)
	}
	return id
}
