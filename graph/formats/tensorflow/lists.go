package tensorflow

import (
	"slices"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
	typespb "github.com/wamuir/graft/tensorflow/core/framework/types_go_proto"

	"placer/graph"
	"placer/units"
)

// tensorList is what is known of a list of tensors (TensorListReserve and its like), such as
// the results of a recurrent loop and what its gradients need of each step. A list holds its
// items where they are: putting one in moves nothing, and keeps it.
type tensorList struct {
	held  []graph.TensorID // tensors whose bytes are those of the items, as far as ops made them
	times float64          // how often what made the list runs
	item  []int64          // the shape of each item; nil where it is not known, or they differ
	count int64            // how many items there are; negative where it is not known
	empty bool             // nothing has been put in
}

// takes notes the shape of an item that is put in.
func (l *tensorList) takes(shape []int64) {
	if l.empty {
		l.item = shape
	} else if !slices.Equal(l.item, shape) {
		l.item = nil
	}
	l.empty = false
}

// reads returns what an op that reads a list reads besides: all that the list holds stays as
// long as something reads the list.
func (l *tensorList) reads(ids []graph.TensorID) []graph.TensorID {
	if l == nil {
		return ids
	}
	for _, t := range l.held {
		if !slices.Contains(ids, t) {
			ids = append(ids, t)
		}
	}
	return ids
}

// listTypes returns the types of the outputs of operators on lists, nil for others.
func listTypes(n *nodepb.NodeDef) []elem {
	item, list := elemOf(n.Attr["element_dtype"].GetType()), elemOf(typespb.DataType_DT_VARIANT)
	switch n.Op {
	case "EmptyTensorList", "TensorListReserve", "TensorListFromTensor", "TensorListSetItem", "TensorListPushBack":
		return []elem{list}
	case "TensorListGetItem", "TensorListStack":
		return []elem{item}
	case "TensorListPopBack":
		return []elem{list, item}
	case "TensorListLength", "TensorListElementShape":
		return []elem{elemOf(typespb.DataType_DT_INT32)}
	}
	return nil
}

// lists gives the outputs of n, which runs times times, their lists, and the bytes that the op
// makes a list hold more.
func (imp *importer) lists(n *nodepb.NodeDef, in, outs []output, times float64) (grown units.Bytes) {
	if len(outs) == 0 {
		return 0
	}
	of := func(k int) *tensorList {
		if k >= 0 && k < len(in) { // an op that passes on its inputs may have none
			return in[k].list
		}
		return nil
	}
	put := func(item int) {
		l := &tensorList{times: times, count: -1}
		if was := of(0); was != nil {
			*l = *was
			l.held = slices.Clone(was.held)
		}
		outs[0].list = l
		if item >= len(in) {
			return
		}
		x := in[item]
		l.takes(x.shape)
		if x.list != nil { // a list of lists
			l.held = x.list.reads(l.held)
			return
		}
		if holds, ok := imp.kept[x.id]; ok {
			if !slices.Contains(l.held, holds) {
				l.held = append(l.held, holds)
			}
			return
		}
		if x.borrowed || x.shape == nil || imp.b.TensorAt(x.id).Resident {
			return
		}
		each := float64(x.dtype.bytes(elements(x.shape)))
		grown = units.Bytes(min(each*max(times/max(l.times, 1), 1), float64(graph.MaxBytes)))
	}
	switch n.Op {
	case "EmptyTensorList", "TensorListReserve":
		outs[0].list = &tensorList{times: times, count: -1, empty: true}
		if n.Op == "TensorListReserve" && len(in) > 1 && len(in[1].value) == 1 {
			outs[0].list.count = in[1].value[0]
		}
	case "TensorListFromTensor": // slices of it
		outs[0].list = &tensorList{times: times, count: -1}
		if len(in) > 0 {
			outs[0].list.held = []graph.TensorID{in[0].id}
			if x := in[0].shape; len(x) > 0 {
				outs[0].list.count, outs[0].list.item = x[0], x[1:]
			}
		}
	case "TensorListSetItem":
		put(2)
	case "TensorListPushBack":
		put(1)
		outs[0].list.count = -1
	case "TensorListGetItem":
		outs[0].borrowed = true
		if l := of(0); l != nil && l.item != nil {
			outs[0].shape = l.item
		}
	case "TensorListStack":
		if l := of(0); l != nil && l.item != nil {
			count := l.count
			if count < 0 && len(outs[0].shape) > 0 {
				count = outs[0].shape[0]
			}
			if whole := slices.Concat([]int64{count}, l.item); count >= 0 && fits(whole) == nil {
				outs[0].shape = whole
			}
		}
	case "TensorListPopBack":
		outs[0].list = of(0)
		if len(outs) > 1 {
			outs[1].borrowed = true
			if l := of(0); l != nil && l.item != nil {
				outs[1].shape = l.item
			}
		}
	case "AddN": // item by item
		for k := range in {
			if l := of(k); l != nil && outs[0].list == nil {
				outs[0].list = &tensorList{held: slices.Clone(l.held), times: l.times, item: l.item, count: l.count}
			} else if l != nil {
				outs[0].list.held = l.reads(outs[0].list.held)
			}
		}
	case "Merge", "RefMerge":
		for k := range in {
			if outs[0].list == nil {
				outs[0].list = of(k)
			}
		}
	case "Switch", "RefSwitch":
		for k := range outs {
			outs[k].list = of(0)
		}
	case "Enter", "RefEnter": // of the loop's own: what an iteration puts in is known behind it
		if l := of(0); l != nil {
			own := *l
			own.held = slices.Clone(l.held)
			outs[0].list = &own
		}
	case "Identity", "IdentityN", "Exit", "RefExit", "NextIteration", "RefNextIteration", "StopGradient":
		for k := range outs {
			outs[k].list = of(min(k, len(in)-1))
		}
	}
	return grown
}

// keep says which of the outputs of n have the bytes by which it made lists hold more: those
// of the item that it put in, or of what a loop did.
func (imp *importer) keep(n *nodepb.NodeDef, in, outs []output, grown growth) {
	for k := range outs {
		if grown.bytes[k] > 0 {
			outs[k].list.held = append(outs[k].list.held, outs[k].id)
		}
		for _, from := range grown.shared[k] {
			outs[k].list.held = append(outs[k].list.held, outs[from].id)
		}
	}
	if len(outs) == 0 || grown.bytes[0] == 0 {
		return
	}
	if item, ok := map[string]int{"TensorListSetItem": 2, "TensorListPushBack": 1}[n.Op]; ok {
		imp.kept[in[item].id] = outs[0].id
	}
}

// growth is how the lists among an op's outputs grow.
type growth struct {
	bytes  []units.Bytes // of each output, what it makes its list hold
	shared map[int][]int // the outputs whose bytes a list holds too
}

// loopLists gives the lists that a loop which stays an op of its own keeps, and returns how
// they grow in all iterations. results are those of one iteration: what it put in each list.
// What several lists hold is the first's.
func loopLists(in, outs []output, results []listed, trips float64) growth {
	grown, shared := make([]units.Bytes, len(outs)), map[int][]int{}
	owner := map[graph.TensorID]int{}
	for k := range outs {
		if k >= len(in) || in[k].list == nil {
			continue
		}
		l := *in[k].list
		l.held = slices.Clone(l.held)
		outs[k].list = &l
		if k >= len(results) {
			continue
		}
		for _, x := range results[k] {
			if first, ok := owner[x.tensor]; !ok {
				owner[x.tensor] = k
				grown[k] = units.Bytes(min(float64(grown[k])+float64(x.bytes)*trips, float64(graph.MaxBytes)))
			} else if first != k {
				shared[k] = append(shared[k], first)
			}
		}
	}
	return growth{grown, shared}
}

// listed are tensors that one execution of a function put in a list.
type listed []struct {
	tensor graph.TensorID // of a trial's graph
	bytes  units.Bytes
}
