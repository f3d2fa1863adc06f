package tensorflow

import (
	"fmt"
	"strconv"
	"strings"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/units"
)

// reference is what an input names.
type reference struct {
	node    string
	slot    int
	control bool
}

// refer reads "name", "name:2", "^name", and in functions "name:output:2".
func (imp *importer) refer(input string, ops map[string]string) reference {
	if name, ok := strings.CutPrefix(input, "^"); ok {
		return reference{node: name, control: true}
	}
	parts := strings.Split(input, ":")
	r := reference{node: parts[0]}
	switch len(parts) {
	case 2:
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			r.slot = imp.slotOf(ops[parts[0]], parts[1]) // "name:output"
		} else {
			r.slot = n
		}
	case 3:
		n, err := strconv.Atoi(parts[2])
		if err == nil {
			r.slot = imp.slotOf(ops[parts[0]], parts[1]) + n
		}
	}
	return r
}

// slotOf returns the first output of the argument of that name.
func (imp *importer) slotOf(op, name string) int {
	if f := imp.funcs[op]; f != nil {
		for i, a := range f.GetSignature().GetOutputArg() {
			if a.Name == name {
				return i
			}
		}
	}
	for slot, arg := range outputArgs(op) {
		if arg == name {
			return slot
		}
	}
	return 0
}

// outputArgs names the outputs of operators that have several of different names.
func outputArgs(op string) []string {
	switch {
	case strings.HasPrefix(op, "FusedBatchNormGrad"):
		return []string{"x_backprop", "scale_backprop", "offset_backprop", "reserve_space_3", "reserve_space_4"}
	case strings.HasPrefix(op, "FusedBatchNorm"):
		return []string{"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}
	case strings.HasSuffix(op, "CrossEntropyWithLogits"):
		return []string{"loss", "backprop"}
	case strings.HasPrefix(op, "CudnnRNNBackprop"):
		return []string{"input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop"}
	case op == "CudnnRNN" || op == "CudnnRNNV2" || op == "CudnnRNNV3":
		return []string{"output", "output_h", "output_c", "reserve_space", "host_reserved"}
	case op == "TopKV2" || op == "TopK":
		return []string{"values", "indices"}
	case op == "Switch":
		return []string{"output_false", "output_true"}
	case op == "Merge":
		return []string{"output", "value_index"}
	case op == "BroadcastGradientArgs":
		return []string{"r0", "r1"}
	}
	return nil
}

// nodes adds a list of nodes in topological order.
func (imp *importer) nodes(s *scope, list []*nodepb.NodeDef) error {
	at, ops := make(map[string]int, len(list)), make(map[string]string, len(list))
	for i, n := range list {
		if n.Name == "" || n.Op == "" {
			return fmt.Errorf("node %d (%s) has no name or no operator", i, foreign.Brief(n.Name))
		}
		if k, taken := at[n.Name]; taken {
			return fmt.Errorf("node %d (%s): node %d has the same name", i, foreign.Brief(n.Name), k)
		}
		at[n.Name], ops[n.Name] = i, n.Op
	}
	s.nodes, s.kinds = make(map[string]*nodepb.NodeDef, len(list)), ops
	for _, n := range list {
		s.nodes[n.Name] = n
	}
	imp.switches += imp.conditions(s)
	refs := make([][]reference, len(list))
	next, closes := make([][]int, len(list)), map[int][]string{}
	wait := make([]int, len(list))
	for i, n := range list {
		for k, input := range n.Input {
			r := imp.refer(input, ops)
			from, ok := at[r.node]
			if !ok {
				if s.of[r.node] != nil { // an argument of the function
					refs[i] = append(refs[i], r)
					continue
				}
				return fmt.Errorf("node %d (%s): input %d: no node is called %s", i, foreign.Brief(n.Name), k, foreign.Brief(r.node))
			}
			if list[from].Op == "NextIteration" || list[from].Op == "RefNextIteration" {
				closes[from] = append(closes[from], n.Name) // the edge that closes a loop
				continue
			}
			refs[i] = append(refs[i], r)
			next[from] = append(next[from], i)
			wait[i]++
		}
	}
	var order []int
	var late lateNodes
	frames := map[string]frame{}
	ready := func(i int) {
		if !late.takes(i, list[i], refs[i], frames) {
			order = append(order, i)
		}
	}
	for i := range list {
		if wait[i] == 0 {
			ready(i)
		}
	}
	for k := 0; k < len(order) || len(late) > 0; k++ {
		if k == len(order) {
			order = append(order, late.next())
		}
		i := order[k]
		inner, err := imp.frameOf(s, list[i], refs[i], frames)
		if err != nil {
			return fmt.Errorf("node %d (%s): %w", i, foreign.Brief(list[i].Name), err)
		}
		if err := imp.node(s, inner, list[i], refs[i]); err != nil {
			return fmt.Errorf("node %d (%s): %w", i, foreign.Brief(list[i].Name), err)
		}
		for _, merge := range closes[i] {
			s.listsOfNext(merge, list[i].Name)
		}
		for _, j := range next[i] {
			if wait[j]--; wait[j] == 0 {
				ready(j)
			}
		}
	}
	if len(order) < len(list) {
		for i := range list {
			if wait[i] > 0 {
				return fmt.Errorf("node %d (%s) is on a cycle that no NextIteration closes", i, foreign.Brief(list[i].Name))
			}
		}
	}
	return nil
}

// node adds node n, or inlines what it calls.
func (imp *importer) node(s *scope, at frame, n *nodepb.NodeDef, refs []reference) error {
	if imp.left--; imp.left < 0 {
		return fmt.Errorf("inlined functions make more than %d nodes", maxInlined)
	}
	var in []output
	var control []graph.OpID
	for k, r := range refs {
		if r.control {
			if op, ok := s.ops[r.node]; ok {
				control = append(control, op)
			}
			continue
		}
		outs, ok := s.of[r.node]
		if !ok || r.slot < 0 || r.slot >= len(outs) {
			return fmt.Errorf("input %d is output %d of %s, which has %d", k, r.slot, foreign.Brief(r.node), len(outs))
		}
		in = append(in, outs[r.slot])
	}
	called := imp.calls(n)
	one := n.Attr["_noinline"].GetB() // as placer_tensorflow captures what runs functions
	if len(called) > 0 && !one {
		return imp.call(s, at, n, called, in, control)
	}
	outs, op, err := imp.infer(n, in)
	if err != nil {
		return err
	}
	op.Name = imp.names.Take(s.prefix + n.Name)
	ids := make([]graph.TensorID, len(in))
	for k := range in {
		ids[k] = in[k].id
	}
	for k := range in {
		ids = in[k].list.reads(ids)
	}
	grown := growth{bytes: make([]units.Bytes, len(outs))}
	if len(called) > 0 {
		if grown, err = imp.whole(s, at, n, called, in, outs, &op); err != nil {
			return err
		}
		imp.countedOut(n, called, in, outs)
	} else if more := imp.lists(n, in, outs, at.times); more > 0 {
		grown.bytes[0] = more
	}
	var made []graph.Tensor
	for k := range outs {
		t := imp.made(&outs[k], op.Kind)
		t.Bytes += grown.bytes[k]
		made = append(made, t)
	}
	if len(called) == 0 {
		imp.cost(&op, n, in, outs, made, at.times)
	}
	id := imp.b.Op(op, ids, made...)
	for k := range outs {
		outs[k].id = imp.b.Output(id, k)
	}
	imp.keep(n, in, outs, grown)
	for _, before := range control {
		imp.b.Control(before, id)
	}
	s.of[n.Name], s.ops[n.Name] = outs, id
	if at.loop > 0 {
		imp.groups[at.loop-1] = append(imp.groups[at.loop-1], id)
	}
	for k := range in {
		if in[k].resource {
			imp.pairs = append(imp.pairs, [2]graph.OpID{imp.b.TensorAt(in[k].id).Producer, id})
		}
	}
	for _, c := range n.Attr["_class"].GetList().GetS() {
		if name, ok := strings.CutPrefix(string(c), "loc:@"); ok {
			name = s.prefix + name
			if first, ok := imp.class[name]; ok {
				imp.pairs = append(imp.pairs, [2]graph.OpID{first, id})
			} else {
				imp.class[name] = id
			}
		}
	}
	if first, ok := imp.class[s.prefix+n.Name]; ok && first != id {
		imp.pairs = append(imp.pairs, [2]graph.OpID{first, id})
	} else {
		imp.class[s.prefix+n.Name] = id
	}
	return nil
}
