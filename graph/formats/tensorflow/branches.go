package tensorflow

import (
	"fmt"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/units"
)

// dearest returns the branch of n, of those called, with the most arithmetic, or with the
// most traffic among equals: a step runs one of them.
func (imp *importer) dearest(s *scope, at frame, n *nodepb.NodeDef, called []string, args []output) (string, error) {
	best, most, moved := called[0], units.FLOPs(-1), units.Bytes(-1)
	if len(called) == 1 {
		return best, nil
	}
	for _, name := range called {
		x, err := imp.trial(s, at, n, name, args)
		if err != nil {
			return "", err
		}
		if x.flops > most || x.flops == most && x.bytes > moved {
			best, most, moved = name, x.flops, x.bytes
		}
	}
	return best, nil
}

// trial inlines one branch into a graph of its own, of which nothing stays but the nodes
// counted, and returns what it computes, moves and launches.
func (imp *importer) trial(s *scope, at frame, n *nodepb.NodeDef, name string, args []output) (x inside, err error) {
	try := *imp
	try.b, try.names = graph.NewBuilder("trial"), foreign.NewNames()
	try.class, try.pairs, try.groups, try.loops = map[string]graph.OpID{}, nil, nil, map[string]int{}
	try.kept = map[graph.TensorID]graph.TensorID{}
	try.unpriced, try.nameless = map[graph.Kind]int{}, map[graph.Kind]int{}
	mine := make([]output, len(args))
	for k, a := range args {
		from := try.b.Op(graph.Op{Name: try.names.Take(fmt.Sprintf("argument_%d", k)), Kind: "Placeholder", Forward: graph.None}, nil, try.made(&a, "Placeholder"))
		mine[k] = a
		if a.list != nil {
			mine[k].list = &tensorList{times: at.times}
		}
		mine[k].id = try.b.Output(from, 0)
	}
	inner := &scope{prefix: s.prefix, times: at.times, of: map[string][]output{}, ops: map[string]graph.OpID{}, depth: s.depth}
	err = try.call(inner, frame{times: at.times}, &nodepb.NodeDef{Name: n.Name, Op: "PartitionedCall"}, []string{name}, mine, nil)
	imp.left = try.left
	for _, out := range inner.of[n.Name] {
		var list listed
		if out.list != nil {
			for _, t := range out.list.held {
				list = append(list, struct {
					tensor graph.TensorID
					bytes  units.Bytes
				}{t, try.b.TensorAt(t).Bytes})
			}
		}
		x.lists = append(x.lists, list)
	}
	for i := range try.b.NumOps() {
		x.add(try.b.At(graph.OpID(i)))
	}
	return x, err
}
