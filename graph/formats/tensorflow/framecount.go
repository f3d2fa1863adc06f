package tensorflow

import (
	"slices"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
)

// lateNode is a node that enters or leaves a loop of TensorFlow 1, and how many loops it is in.
type lateNode struct {
	i, depth int
	enters   bool
}

// lateNodes are those that come when all others that can have come, which may say how often a
// loop runs, or what it put in lists: of the innermost loop first, what enters one in it before
// what leaves it.
type lateNodes []lateNode

// takes takes node i, and reports whether it is such a node.
func (l *lateNodes) takes(i int, n *nodepb.NodeDef, refs []reference, frames map[string]frame) bool {
	_, in := enters(n)
	if !in && n.Op != "Exit" && n.Op != "RefExit" {
		return false
	}
	x := lateNode{i: i, enters: in}
	for _, r := range refs {
		x.depth = max(x.depth, frames[r.node].depth())
	}
	*l = append(*l, x)
	return true
}

// next removes the node that comes next, and returns its number.
func (l *lateNodes) next() int {
	best := 0
	for k, x := range *l {
		if b := (*l)[best]; x.depth > b.depth || x.depth == b.depth && x.enters && !b.enters {
			best = k
		}
	}
	i := (*l)[best].i
	*l = slices.Delete(*l, best, best+1)
	return i
}

// listsOfNext gives the list that the variable merge of a loop holds what an iteration, whose end
// is the node next, has put in it.
func (s *scope) listsOfNext(merge, next string) {
	m, n := s.of[merge], s.of[next]
	if len(m) == 0 || len(n) == 0 || m[0].list == nil || n[0].list == nil || m[0].list == n[0].list {
		return
	}
	to, from := m[0].list, n[0].list
	to.item, to.empty = from.item, from.empty
	to.held = from.reads(to.held)
}

// enters returns the name of the loop of TensorFlow 1 that n enters.
func enters(n *nodepb.NodeDef) (name string, ok bool) {
	return string(n.Attr["frame_name"].GetS()), n.Op == "Enter" || n.Op == "RefEnter"
}

// countedFrame is counted of a loop of TensorFlow 1, which freezing a graph makes of others: its
// variables are Merge nodes of what enters and of what the iteration before gives, which a Switch
// lets through, and LoopCond is its condition. What is outside of it may have run.
func (imp *importer) countedFrame(s *scope, name string) (trips int64, known bool) {
	if n, ok := s.counts[name]; ok {
		return n, n >= 0
	}
	for _, n := range s.nodes {
		if n.Op != "LoopCond" || len(n.Input) == 0 {
			continue
		}
		todo := []reference{imp.origin(s, n.Input[0])}
		for k := 0; k < len(todo) && k < maxNesting; k++ {
			c := s.nodes[todo[k].node]
			if c == nil || len(c.Input) < 2 {
				continue
			}
			a, b := imp.origin(s, c.Input[0]), imp.origin(s, c.Input[1])
			switch c.Op {
			case "LogicalAnd":
				todo = append(todo, a, b)
			case "Less", "LessEqual":
				counts, ok := imp.frameCounter(s, name, a)
				limit, fixed := imp.frameValue(s, name, b)
				if c.Op == "LessEqual" {
					limit++
				}
				if !ok || !fixed || limit > maxTrips || counts.start < -maxTrips {
					continue
				}
				if m := max((limit-counts.start+counts.step-1)/counts.step, 0); !known || m < trips {
					trips, known = m, true
				}
			}
		}
	}
	if s.counts == nil {
		s.counts = map[string]int64{}
	}
	s.counts[name] = trips
	if !known {
		s.counts[name] = -1
	}
	return trips, known
}

// origin returns what input names, behind nodes that pass it on.
func (imp *importer) origin(s *scope, input string) reference {
	r := imp.refer(input, s.kinds)
	for range maxNesting {
		n := s.nodes[r.node]
		if n == nil || n.Op != "Identity" || len(n.Input) == 0 {
			break
		}
		r = imp.refer(n.Input[0], s.kinds)
	}
	return r
}

// merged returns what enters a variable of the loop of that name, the Merge node r, and what the
// iteration before gives.
func (imp *importer) merged(s *scope, name string, r reference) (enter *nodepb.NodeDef, next reference, ok bool) {
	m := s.nodes[r.node]
	if m == nil || m.Op != "Merge" || r.slot != 0 {
		return nil, next, false
	}
	for _, input := range m.Input {
		n := s.nodes[imp.refer(input, s.kinds).node]
		if n == nil || len(n.Input) == 0 {
			continue
		}
		if frame, is := enters(n); is && frame == name {
			enter = n
		}
		if n.Op == "NextIteration" {
			next, ok = imp.origin(s, n.Input[0]), true
		}
	}
	return enter, next, ok && enter != nil
}

// passes reports whether r is the variable of the Merge node of, as an iteration has it.
func (imp *importer) passes(s *scope, r, of reference) bool {
	n := s.nodes[r.node]
	return n != nil && n.Op == "Switch" && r.slot == 1 && len(n.Input) > 0 && imp.origin(s, n.Input[0]) == of
}

// frameCounter returns the counter that the Merge node r is.
func (imp *importer) frameCounter(s *scope, name string, r reference) (c counter, ok bool) {
	enter, next, ok := imp.merged(s, name, r)
	if !ok {
		return c, false
	}
	n := s.nodes[next.node]
	if n == nil || n.Op != "AddV2" && n.Op != "Add" || len(n.Input) < 2 {
		return c, false
	}
	start, known := imp.frameValue(s, name, imp.origin(s, enter.Input[0]))
	for side := range 2 {
		if step, constant := imp.frameValue(s, name, imp.origin(s, n.Input[side])); known && constant && step > 0 && imp.passes(s, imp.origin(s, n.Input[1-side]), r) {
			return counter{start, step}, true
		}
	}
	return c, false
}

// frameValue returns the integer that r is in all iterations of the loop.
func (imp *importer) frameValue(s *scope, name string, r reference) (int64, bool) {
	for range maxNesting {
		n := s.nodes[r.node]
		if n == nil {
			break
		}
		if enter, next, ok := imp.merged(s, name, r); ok && imp.passes(s, next, r) {
			r = imp.origin(s, enter.Input[0])
			continue
		}
		if _, is := enters(n); is && n.Attr["is_constant"].GetB() && len(n.Input) > 0 {
			r = imp.origin(s, n.Input[0])
			continue
		}
		if n.Op == "Const" {
			v := constant(n.Attr["value"].GetTensor(), []int64{})
			return first(v), len(v) == 1
		}
		break
	}
	if outs := s.of[r.node]; r.slot >= 0 && r.slot < len(outs) && !r.control {
		return first(outs[r.slot].value), len(outs[r.slot].value) == 1
	}
	return 0, false
}

// conditions returns how many values decide which way Switch nodes send what they read, other than
// whether a loop goes on.
func (imp *importer) conditions(s *scope) int {
	found := map[reference]bool{}
	for _, n := range s.nodes {
		if n.Op != "Switch" && n.Op != "RefSwitch" || len(n.Input) < 2 {
			continue
		}
		if r := imp.origin(s, n.Input[1]); s.nodes[r.node] == nil || s.nodes[r.node].Op != "LoopCond" {
			found[r] = true
		}
	}
	return len(found)
}
