package tensorflow

import (
	"fmt"
	"slices"

	attrpb "github.com/wamuir/graft/tensorflow/core/framework/attr_value_go_proto"
	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/internal/unionfind"
)

// frame is where a node of a loop of TensorFlow 1 is: how often it runs, in which loop.
type frame struct {
	times float64
	loop  int
	outer *frame
	name  string
}

// frameOf returns the frame of a node: that of its inputs, one deeper behind an Enter and
// one less deep behind an Exit.
func (imp *importer) frameOf(s *scope, n *nodepb.NodeDef, refs []reference, frames map[string]frame) (frame, error) {
	in := frame{times: s.times, loop: s.loop}
	for _, r := range refs {
		if f, ok := frames[r.node]; ok && deeper(f, in) {
			in = f
		}
	}
	switch n.Op {
	case "Enter", "RefEnter":
		name, _ := enters(n)
		if in.name == name && in.outer != nil {
			break
		}
		trips, known := int64(0), false
		if _, given := imp.dims[name]; !given {
			trips, known = imp.countedFrame(s, name)
		}
		if !known || trips > maxTrips {
			var err error
			if trips, err = imp.trips(name, nil, nil); err != nil {
				return in, err
			}
		}
		outer := in
		in = frame{times: in.times * float64(trips), loop: in.loop, outer: &outer, name: name}
		if in.loop == 0 {
			in.loop = imp.loopOf(s.prefix + name)
		}
	case "Exit", "RefExit":
		if in.outer != nil {
			frames[n.Name] = *in.outer
			return *in.outer, nil
		}
	}
	frames[n.Name] = in
	return in, nil
}

func deeper(f, than frame) bool { return f.depth() > than.depth() }

// depth is how many loops f is in.
func (f frame) depth() (n int) {
	for ; f.outer != nil && n < maxNesting; f = *f.outer {
		n++
	}
	return n
}

// loopOf returns the number of the loop of that name.
func (imp *importer) loopOf(name string) int {
	if imp.loops[name] == 0 {
		imp.groups = append(imp.groups, nil)
		imp.loops[name] = len(imp.groups)
	}
	return imp.loops[name]
}

// trips returns how often the loop of that name runs: as dims says, or as a counter and
// its limit say, of the functions called with the values of in.
func (imp *importer) trips(name string, called []string, in []output) (int64, error) {
	n, ok := imp.dims[name]
	if !ok {
		if n, _, ok = imp.counted(called, in); ok && n <= maxTrips {
			return n, nil
		}
	}
	if !slices.Contains(imp.sum.Dims, name) {
		imp.sum.Dims = append(imp.sum.Dims, name)
	}
	if !ok {
		return 0, fmt.Errorf("a loop that runs an unknown number of times: state it by --dim %s=N", foreign.Brief(name))
	}
	if n > maxTrips {
		return 0, fmt.Errorf("a loop that runs %d times", n)
	}
	return n, nil
}

// calls returns the names of the functions that n runs: one, or for a loop its
// condition and its body, or the branches.
func (imp *importer) calls(n *nodepb.NodeDef) (names []string) {
	if imp.funcs[n.Op] != nil {
		return []string{n.Op}
	}
	attrs := map[string][]string{"PartitionedCall": {"f"}, "StatefulPartitionedCall": {"f"}, "While": {"cond", "body"}, "StatelessWhile": {"cond", "body"},
		"If": {"then_branch", "else_branch"}, "StatelessIf": {"then_branch", "else_branch"}, "Case": {"branches"}, "StatelessCase": {"branches"}}[n.Op]
	for _, a := range attrs {
		list := []*attrpb.NameAttrList{n.Attr[a].GetFunc()}
		if a == "branches" {
			list = n.Attr[a].GetList().GetFunc()
		}
		for _, f := range list {
			names = append(names, f.GetName())
		}
	}
	return names
}

// call inlines the functions that n runs, of branches the dearest.
func (imp *importer) call(s *scope, at frame, n *nodepb.NodeDef, called []string, in []output, control []graph.OpID) error {
	if s.depth >= maxNesting {
		return fmt.Errorf("functions are nested deeper than %d", maxNesting)
	}
	times, loop, all := at.times, at.loop, called
	args := in
	switch n.Op {
	case "While", "StatelessWhile":
		trips, err := imp.trips(s.prefix+n.Name, called, in)
		if err != nil {
			return err
		}
		if times *= float64(trips); loop == 0 {
			loop = imp.loopOf(s.prefix + n.Name)
		}
	case "If", "StatelessIf", "Case", "StatelessCase":
		if len(in) == 0 {
			return fmt.Errorf("has no condition")
		}
		args = in[1:]
		dearest, err := imp.dearest(s, at, n, called, args)
		if err != nil {
			return err
		}
		if len(called) > 1 {
			imp.branching++
		}
		called = []string{dearest}
	}
	var results []output
	last := graph.None
	for _, name := range called {
		f := imp.funcs[name]
		if f == nil {
			return fmt.Errorf("calls %s, which the library does not have", foreign.Brief(name))
		}
		inner := &scope{prefix: s.prefix + n.Name + "/", times: times, loop: loop, of: map[string][]output{}, ops: map[string]graph.OpID{}, depth: s.depth + 1}
		wanted := f.GetSignature().GetInputArg()
		if len(wanted) != len(args) {
			return fmt.Errorf("function %s takes %d inputs, has %d", foreign.Brief(name), len(wanted), len(args))
		}
		for k, a := range wanted {
			inner.of[a.Name] = []output{args[k]}
		}
		before := imp.b.NumOps()
		if err := imp.nodes(inner, needed(f)); err != nil {
			return fmt.Errorf("function %s: %w", foreign.Brief(name), err)
		}
		if imp.b.NumOps() > before {
			last = graph.OpID(imp.b.NumOps() - 1)
			for _, c := range control {
				imp.b.Control(c, graph.OpID(before))
			}
		}
		ops := make(map[string]string, len(f.NodeDef))
		for _, x := range f.NodeDef {
			ops[x.Name] = x.Op
		}
		results = nil
		for _, a := range f.GetSignature().GetOutputArg() {
			r := imp.refer(f.Ret[a.Name], ops)
			outs := inner.of[r.node]
			if r.slot < 0 || r.slot >= len(outs) {
				return fmt.Errorf("function %s: result %s names no output", foreign.Brief(name), foreign.Brief(a.Name))
			}
			results = append(results, outs[r.slot])
		}
	}
	imp.countedOut(n, all, in, results)
	s.of[n.Name] = results
	if results == nil {
		s.of[n.Name] = []output{}
	}
	if last != graph.None {
		s.ops[n.Name] = last
	}
	return nil
}

// group numbers the co-location groups.
func (imp *importer) group() {
	for _, ops := range imp.groups {
		for _, id := range ops[min(1, len(ops)):] {
			imp.pairs = append(imp.pairs, [2]graph.OpID{ops[0], id})
		}
	}
	sets := unionfind.New(imp.b.NumOps())
	shared := make([]bool, imp.b.NumOps())
	for _, p := range imp.pairs {
		sets.Join(int32(p[0]), int32(p[1]))
		shared[p[0]], shared[p[1]] = true, true
	}
	number := map[int32]int32{}
	for i := range imp.b.NumOps() {
		if !shared[i] {
			continue
		}
		root := sets.Root(int32(i))
		if number[root] == 0 {
			number[root] = int32(len(number) + 1)
		}
		imp.b.At(graph.OpID(i)).Group = number[root]
	}
}
