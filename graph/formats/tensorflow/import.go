package tensorflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	funcpb "github.com/wamuir/graft/tensorflow/core/framework/function_go_proto"
	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/internal/words"
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

	kept map[graph.TensorID]graph.TensorID // items of lists, and what stands for their bytes

	branching int // conditionals of which one branch counts
	switches  int // conditionals of which all branches count
	once      int // loops of unknown length, as ops of their own

	nameless map[graph.Kind]int // ops whose arithmetic is not known
	unpriced map[graph.Kind]int // products and convolutions whose sizes are not known
	unknown  int                // outputs without a shape
	open     int                // dimensions without a size
	taken    []string           // dimensions of inputs that are taken for 1
}

// scope is a graph, or one call of a function, being added.
type scope struct {
	prefix string
	times  float64 // how often its ops run
	loop   int     // the loop that they are in, from 1
	of     map[string][]output
	nodes  map[string]*nodepb.NodeDef
	kinds  map[string]string     // operators of nodes
	counts map[string]int64      // how often loops of TensorFlow 1 run, by name; -1 where that is not seen
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
	list     *tensorList
	borrowed bool // an item of a list, which holds it
}

// Import reads a graph; name is the file's, for errors and for the graph. dims gives
// "batch", the size of unknown first dimensions, "x[1]", that of an input's second one, and
// trip counts of loops by name.
func Import(data []byte, name string, dims map[string]int64) (*Imported, error) {
	f, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: TensorFlow: %w", name, err)
	}
	imp := &importer{file: f, dims: dims, funcs: map[string]*funcpb.FunctionDef{}, names: foreign.NewNames(), class: map[string]graph.OpID{}, loops: map[string]int{}, kept: map[graph.TensorID]graph.TensorID{}, unpriced: map[graph.Kind]int{}, nameless: map[graph.Kind]int{}, left: maxInlined, sum: &Imported{}}
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
	list := def.Node
	if x := imp.file.signature; x.name != "" {
		var err error
		if list, err = behind(list, x.nodes); err != nil {
			return err
		}
		if x.of > 1 {
			imp.sum.Notes = append(imp.sum.Notes, fmt.Sprintf("of %d signatures, the graph is that of %s", x.of, foreign.Brief(x.name)))
		}
	}
	if err := imp.nodes(root, list); err != nil {
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
		imp.sum.Notes = append(imp.sum.Notes, fmt.Sprintf("%s taken for empty", words.Count(imp.unknown, "output of unknown shape is", "outputs of unknown shape are")))
	}
	if imp.switches > 0 {
		imp.sum.Notes = append(imp.sum.Notes, fmt.Sprintf("%s all its branches, as Switch and Merge nodes have them", words.Count(imp.switches, "conditional counts", "conditionals count each")))
	}
	if imp.branching > 0 {
		imp.sum.Notes = append(imp.sum.Notes, fmt.Sprintf("%s the branch that costs most", words.Count(imp.branching, "conditional runs", "conditionals run")))
	}
	if imp.once > 0 {
		imp.sum.Notes = append(imp.sum.Notes, fmt.Sprintf("%s counted once; --dim NAME=N", words.Count(imp.once, "loop runs an unknown number of times and is", "loops run an unknown number of times and are")))
	}
	if len(imp.unpriced) > 0 {
		imp.sum.Notes = append(imp.sum.Notes, "products of unknown size cost their bytes alone: "+named(imp.unpriced))
	}
	if len(imp.nameless) > 0 {
		imp.sum.Notes = append(imp.sum.Notes, "operators whose arithmetic is not known cost an operation an element at most: "+named(imp.nameless))
	}
	if imp.open > 0 {
		imp.sum.Dims = append(imp.sum.Dims, "batch")
		imp.sum.Notes = append(imp.sum.Notes, fmt.Sprintf("%s taken for %d where they come first, for 1 elsewhere; --dim batch=N%s", words.Count(imp.open, "unknown dimension is", "unknown dimensions are"), imp.batch(), imp.openInputs()))
	}
	for key := range imp.dims {
		if !slices.Contains(imp.sum.Dims, key) {
			imp.sum.UnknownDims = append(imp.sum.UnknownDims, key)
		}
	}
	slices.Sort(imp.sum.UnknownDims)
	return nil
}

// named lists kinds with how many ops are of them.
func named(of map[graph.Kind]int) string {
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", of[k], k))
	}
	return strings.Join(kinds, ", ")
}

// openInputs names the dimensions of inputs that are taken for 1.
func (imp *importer) openInputs() (text string) {
	for _, name := range imp.taken[:min(len(imp.taken), 4)] {
		text += fmt.Sprintf(", --dim %s=N", foreign.Brief(name))
	}
	return text
}

func (imp *importer) batch() int64 {
	if n, ok := imp.dims["batch"]; ok {
		return n
	}
	return 1
}

// made returns the builder's form of an output.
func (imp *importer) made(o *output, kind graph.Kind) graph.Tensor {
	t := graph.Tensor{DType: o.dtype.dtype, Shape: o.shape}
	switch {
	case o.list != nil:
		t.Shape = nil
	case o.resource:
		t.Shape, t.Resident = nil, true
	case o.shape == nil:
		imp.unknown++
	default:
		t.Bytes = units.Bytes(o.dtype.bytes(elements(o.shape)))
		class := kind.Class()
		t.Resident = class == graph.ClassVariable || class == graph.ClassConst || kind == "ReadVariableOp"
	}
	return t
}
