package strategy

import (
	"fmt"
	"maps"
	"slices"

	"placer/graph"
	"placer/units"
)

// untying builds one of the graphs.
type untying struct {
	*untied
	g      *graph.Graph
	b      *graph.Builder
	home   []graph.OpID                              // [N] op on its own stage
	at     []map[int]graph.OpID                      // [N] its copies, by stage
	local  map[graph.TensorID]map[int]graph.TensorID // what each stage has of a tied gradient
	of     []graph.OpID
	placed []place
	waits  [][2]graph.OpID
	groups int32
}

func (u *untying) add(of graph.OpID, at place, o graph.Op, in []graph.TensorID, outs ...graph.Tensor) graph.OpID {
	u.of, u.placed = append(u.of, of), append(u.placed, at)
	return u.b.Op(o, in, outs...)
}

// op adds op i, and its copies.
func (u *untying) op(i graph.OpID) {
	if u.dropped[i] {
		for _, t := range u.order {
			if u.g.Tensor(t).Producer == i {
				u.sum(t)
			}
		}
		return
	}
	u.home[i] = u.copy(i, u.stageOf(i), place{chunk: u.originalChunk[i], block: u.originalBlock[i]}, "", 0)
	u.control(i, u.home[i], u.stageOf(i))
	if u.copies[i] == nil {
		return
	}
	u.at[i] = map[int]graph.OpID{}
	for _, stage := range slices.Sorted(maps.Keys(u.copies[i])) {
		id := u.copy(i, stage, u.copies[i][stage], fmt.Sprintf("stage%d/", stage), u.groups*int32(1+stage))
		u.at[i][stage] = id
		u.control(i, id, stage)
	}
}

// copy adds op i for a stage.
func (u *untying) copy(i graph.OpID, stage int, at place, prefix string, group int32) graph.OpID {
	o := *u.g.Op(i)
	o.Name = prefix + o.Name
	if o.Group > 0 {
		o.Group += group
	}
	if o.Forward != graph.None {
		o.Forward = u.home[o.Forward]
	}
	in := make([]graph.TensorID, 0, len(u.g.Inputs(i)))
	for _, t := range u.g.Inputs(i) {
		if p := u.g.Tensor(t).Producer; u.norm != nil && u.norm.chain[i] && u.norm.of[p] && u.stageOf(p) != stage {
			continue // it is in that stage's norm
		}
		in = append(in, u.input(t, stage))
	}
	var outs []graph.Tensor
	for t, end := u.g.Outputs(i); t < end; t++ {
		outs = append(outs, *u.g.Tensor(t))
	}
	return u.add(i, at, o, in, outs...)
}

// input is what an op on a stage reads of tensor t.
func (u *untying) input(t graph.TensorID, stage int) graph.TensorID {
	p := u.g.Tensor(t).Producer
	if by, ok := u.local[t]; ok {
		if l, ok := by[stage]; ok {
			return l
		}
		return by[u.stageOf(p)]
	}
	id := u.home[p]
	if c, ok := u.at[p][stage]; ok {
		id = c
	}
	return u.b.Output(id, int(t-first(u.g, p)))
}

// control has op id, a copy of op i for a stage, wait for what op i waits for there.
func (u *untying) control(i, id graph.OpID, stage int) {
	for _, c := range u.g.Control(i) {
		switch at, ok := u.at[c][stage]; {
		case u.dropped[c]:
		case ok:
			u.waits = append(u.waits, [2]graph.OpID{at, id})
		case u.copies[i] != nil && !u.given.once[c] && u.stageOf(c) != stage && u.holds(i, u.stageOf(c)):
			// of the weight there, which waits itself
		default:
			u.waits = append(u.waits, [2]graph.OpID{u.home[c], id})
		}
	}
}

// holds reports whether there is a copy of op i on a stage, or itself.
func (u *untying) holds(i graph.OpID, stage int) bool {
	_, ok := u.copies[i][stage]
	return ok || u.stageOf(i) == stage
}

// sum adds up what each stage has of tied gradient t.
func (u *untying) sum(t graph.TensorID) {
	s := u.sums[t]
	by := map[int]graph.TensorID{}
	for _, stage := range slices.Sorted(maps.Keys(s.parts)) {
		parts := s.parts[stage]
		prefix := fmt.Sprintf("stage%d/", stage)
		last := u.g.Tensor(parts[0]).Producer
		at := place{chunk: u.originalChunk[last], block: u.originalBlock[last]}
		whole := u.input(parts[0], stage)
		for k, part := range parts[1:] {
			if p := u.g.Tensor(part).Producer; u.originalBlock[p] < at.block { // the backward pass gets there last
				at = place{chunk: u.originalChunk[p], block: u.originalBlock[p]}
			}
			x := u.g.Tensor(part)
			o := graph.Op{Name: fmt.Sprintf("%s%s/%d", prefix, u.g.Op(s.root).Name, k), Kind: "AddV2", Phase: graph.Backward, DType: x.DType, FLOPs: units.FLOPs(int64(x.Bytes) / x.DType.Size()), Bytes: 3 * x.Bytes, Layer: u.g.Op(s.root).Layer, Module: u.g.Op(s.root).Module, Forward: graph.None}
			id := u.add(s.root, at, o, []graph.TensorID{whole, u.input(part, stage)}, graph.Tensor{DType: x.DType, Shape: slices.Clone(x.Shape), Bytes: x.Bytes})
			whole = u.b.Output(id, 0)
		}
		for _, i := range slices.Backward(s.unary) {
			o := *u.g.Op(i)
			o.Name, o.Forward, o.Group = prefix+o.Name, graph.None, 0
			in := []graph.TensorID{whole}
			for _, r := range u.g.Inputs(i)[1:] {
				in = append(in, u.input(r, stage))
			}
			id := u.add(i, at, o, in, *u.g.Tensor(first(u.g, i)))
			whole = u.b.Output(id, 0)
		}
		by[stage] = whole
	}
	u.local[t] = by
}
