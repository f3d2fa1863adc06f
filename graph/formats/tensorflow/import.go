package tensorflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	attrpb "github.com/wamuir/graft/tensorflow/core/framework/attr_value_go_proto"
	funcpb "github.com/wamuir/graft/tensorflow/core/framework/function_go_proto"
	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/internal/unionfind"
	"placer/units"
)

// Bounds of inlining: functions that call each other could be small in the file and
// endless in effect.
const (
	maxInlined = 1 << 21
	maxNesting = 64
	maxOutputs = 1 << 12
	maxTrips   = 1 << 40
)

// Imported is a graph with what the file holds.
type Imported struct {
	Graph        *graph.Graph
	Nodes, Edges int // of the main graph, control edges too
	Notes        []string
	// Dims are the names of what the file leaves open; UnknownDims those of the caller's
	// that are none of them.
	Dims, UnknownDims []string
}

// importer makes a graph of a file.
type importer struct {
	file   *file
	dims   map[string]int64
	funcs  map[string]*funcpb.FunctionDef
	b      *graph.Builder
	names  *foreign.Names
	class  map[string]graph.OpID // the first op of a colocation class
	pairs  [][2]graph.OpID       // ops that share a device
	groups [][]graph.OpID        // ops of a loop each
	loops  map[string]int        // the numbers of loops, by name
	left   int
	sum    *Imported

	unknown int // outputs without a shape
	open    int // dimensions without a size
}

// scope is a graph, or one call of a function, being added.
type scope struct {
	prefix string
	times  float64 // how often its ops run
	loop   int     // the loop that they are in, from 1
	of     map[string][]output
	ops    map[string]graph.OpID // the last op of a node, for control edges
	depth  int
}

// output is a tensor with what is known of it.
type output struct {
	id       graph.TensorID
	shape    []int64 // nil: not known
	dtype    elem
	value    []int64 // of small integers that are known
	resource bool    // a handle of a variable, whose shape and type the others are
}

// Import reads a graph; name is the file's, for errors and for the graph. dims gives
// "batch", the size of unknown first dimensions, and trip counts of loops by name.
func Import(data []byte, name string, dims map[string]int64) (*Imported, error) {
	f, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: TensorFlow: %w", name, err)
	}
	imp := &importer{file: f, dims: dims, funcs: map[string]*funcpb.FunctionDef{}, names: foreign.NewNames(), class: map[string]graph.OpID{}, loops: map[string]int{}, left: maxInlined, sum: &Imported{}}
	base := foreign.GraphName(name)
	for _, ending := range []string{".gz", ".pbtxt", ".pb", ".meta", ".saved_model", ".model"} {
		base = strings.TrimSuffix(base, ending)
	}
	imp.b = graph.NewBuilder(foreign.Clean(base))
	if err := imp.run(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return imp.sum, nil
}

func (imp *importer) run() error {
	def := imp.file.def
	for _, f := range def.GetLibrary().GetFunction() {
		imp.funcs[f.GetSignature().GetName()] = f
	}
	root := &scope{times: 1, of: map[string][]output{}, ops: map[string]graph.OpID{}}
	if err := imp.nodes(root, def.Node); err != nil {
		return err
	}
	imp.sum.Nodes = len(def.Node)
	for _, n := range def.Node {
		imp.sum.Edges += len(n.Input)
	}
	if imp.b.NumOps() == 0 {
		return fmt.Errorf("the graph has no nodes")
	}
	imp.group()
	g, err := imp.b.Build()
	if err != nil {
		return err
	}
	imp.sum.Graph = g
	if imp.unknown > 0 {
		imp.sum.Notes = append(imp.sum.Notes, fmt.Sprintf("%d outputs of unknown shape are taken for empty", imp.unknown))
	}
	if imp.open > 0 {
		imp.sum.Dims = append(imp.sum.Dims, "batch")
		imp.sum.Notes = append(imp.sum.Notes, fmt.Sprintf("%d unknown dimensions are taken for %d where they come first, for 1 elsewhere; --dim batch=N", imp.open, imp.batch()))
	}
	for key := range imp.dims {
		if !slices.Contains(imp.sum.Dims, key) {
			imp.sum.UnknownDims = append(imp.sum.UnknownDims, key)
		}
	}
	slices.Sort(imp.sum.UnknownDims)
	return nil
}

func (imp *importer) batch() int64 {
	if n, ok := imp.dims["batch"]; ok {
		return n
	}
	return 1
}

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
	refs := make([][]reference, len(list))
	next := make([][]int, len(list))
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
				continue // the edge that closes a loop
			}
			refs[i] = append(refs[i], r)
			next[from] = append(next[from], i)
			wait[i]++
		}
	}
	var order []int
	for i := range list {
		if wait[i] == 0 {
			order = append(order, i)
		}
	}
	frames := map[string]frame{}
	for k := 0; k < len(order); k++ {
		i := order[k]
		inner, err := imp.frameOf(s, list[i], refs[i], frames)
		if err != nil {
			return fmt.Errorf("node %d (%s): %w", i, foreign.Brief(list[i].Name), err)
		}
		if err := imp.node(s, inner, list[i], refs[i]); err != nil {
			return fmt.Errorf("node %d (%s): %w", i, foreign.Brief(list[i].Name), err)
		}
		for _, j := range next[i] {
			if wait[j]--; wait[j] == 0 {
				order = append(order, j)
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
		name := string(n.Attr["frame_name"].GetS())
		if in.name == name && in.outer != nil {
			break
		}
		trips, err := imp.trips(name)
		if err != nil {
			return in, err
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

func deeper(f, than frame) bool {
	depth := func(f frame) (n int) {
		for ; f.outer != nil && n < maxNesting; f = *f.outer {
			n++
		}
		return n
	}
	return depth(f) > depth(than)
}

// loopOf returns the number of the loop of that name.
func (imp *importer) loopOf(name string) int {
	if imp.loops[name] == 0 {
		imp.groups = append(imp.groups, nil)
		imp.loops[name] = len(imp.groups)
	}
	return imp.loops[name]
}

// trips returns how often the loop of that name runs.
func (imp *importer) trips(name string) (int64, error) {
	if !slices.Contains(imp.sum.Dims, name) {
		imp.sum.Dims = append(imp.sum.Dims, name)
	}
	n, ok := imp.dims[name]
	if !ok {
		return 0, fmt.Errorf("a loop that runs an unknown number of times: state it by --dim %s=N", foreign.Brief(name))
	}
	if n > maxTrips {
		return 0, fmt.Errorf("a loop that runs %d times", n)
	}
	return n, nil
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
	if called := imp.calls(n); len(called) > 0 {
		return imp.call(s, at, n, called, in, control)
	}
	outs, op, err := imp.infer(n, in)
	if err != nil {
		return err
	}
	op.Name = imp.names.Take(s.prefix + n.Name)
	var made []graph.Tensor
	for k := range outs {
		made = append(made, imp.made(&outs[k], op.Kind))
	}
	ids := make([]graph.TensorID, len(in))
	for k := range in {
		ids[k] = in[k].id
	}
	imp.cost(&op, in, outs, made, at.times)
	id := imp.b.Op(op, ids, made...)
	for k := range outs {
		outs[k].id = imp.b.Output(id, k)
	}
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

// call inlines the functions that n runs.
func (imp *importer) call(s *scope, at frame, n *nodepb.NodeDef, called []string, in []output, control []graph.OpID) error {
	if s.depth >= maxNesting {
		return fmt.Errorf("functions are nested deeper than %d", maxNesting)
	}
	times, loop := at.times, at.loop
	args := in
	switch n.Op {
	case "While", "StatelessWhile":
		trips, err := imp.trips(s.prefix + n.Name)
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
		if err := imp.nodes(inner, f.NodeDef); err != nil {
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

// made returns the builder's form of an output.
func (imp *importer) made(o *output, kind graph.Kind) graph.Tensor {
	t := graph.Tensor{DType: o.dtype.dtype, Shape: o.shape}
	switch {
	case o.resource:
		t.Shape, t.Resident = nil, true
	case o.shape == nil:
		imp.unknown++
	default:
		t.Bytes = units.Bytes(elements(o.shape) * o.dtype.size)
		class := kind.Class()
		t.Resident = class == graph.ClassVariable || class == graph.ClassConst || kind == "ReadVariableOp"
	}
	return t
}
