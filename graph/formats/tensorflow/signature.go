package tensorflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
	corepb "github.com/wamuir/graft/tensorflow/core/protobuf/for_core_protos_go_proto"

	"placer/graph/formats/foreign"
)

// initSignature names what a loader runs, in place of a signature.
const initSignature = "__saved_model_init_op"

// signed is what a signature of a MetaGraphDef wants, and of how many it is one.
type signed struct {
	name  string
	nodes []string
	of    int
}

// signatureIn returns the signature that is served: the one of that name, or else the
// first. Beside it a graph has the same functions for other signatures, and what saves and
// restores. It is empty where the file has none.
func signatureIn(meta *corepb.MetaGraphDef) (signed, error) {
	all := maps.Clone(meta.GetSignatureDef())
	if len(all) == 0 {
		return signed{}, nil
	}
	delete(all, initSignature)
	names := slices.Sorted(maps.Keys(all))
	if len(names) == 0 {
		return signed{}, fmt.Errorf("the SavedModel has no signature, so its graph saves and restores but computes nothing: save it with signatures=")
	}
	x := signed{name: names[0], of: len(names)}
	if all["serving_default"] != nil {
		x.name = "serving_default"
	}
	for _, t := range all[x.name].GetOutputs() {
		node, _, _ := strings.Cut(t.GetName(), ":")
		x.nodes = append(x.nodes, node)
	}
	slices.Sort(x.nodes)
	return x, nil
}

// behind returns the nodes of list, in its order, that those named need.
func behind(list []*nodepb.NodeDef, wanted []string) ([]*nodepb.NodeDef, error) {
	at := make(map[string]int, len(list))
	for i, n := range list {
		at[n.Name] = i
	}
	keep := make([]bool, len(list))
	todo := slices.Clone(wanted)
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		i, ok := at[name]
		if !ok {
			return nil, fmt.Errorf("no node is called %s, which the signature or another node names", foreign.Brief(name))
		}
		if keep[i] {
			continue
		}
		keep[i] = true
		for _, in := range list[i].Input {
			node, _, _ := strings.Cut(strings.TrimPrefix(in, "^"), ":")
			todo = append(todo, node)
		}
	}
	var found []*nodepb.NodeDef
	for i, n := range list {
		if keep[i] {
			found = append(found, n)
		}
	}
	return found, nil
}
