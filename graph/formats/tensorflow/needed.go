package tensorflow

import (
	"strings"

	funcpb "github.com/wamuir/graft/tensorflow/core/framework/function_go_proto"
	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
)

// needed returns the nodes of f that its results need, or that have an effect: TensorFlow
// leaves out the others before it runs a function (PruneFunctionGraph), such as a step of a
// recurrent layer that Keras traces for its shape alone.
func needed(f *funcpb.FunctionDef) []*nodepb.NodeDef {
	at := make(map[string]int, len(f.NodeDef))
	var todo []string
	for i, n := range f.NodeDef {
		at[n.Name] = i
		if hasEffect(n) {
			todo = append(todo, n.Name)
		}
	}
	for _, results := range []map[string]string{f.Ret, f.ControlRet} {
		for _, r := range results {
			todo = append(todo, r)
		}
	}
	keep := make([]bool, len(f.NodeDef))
	for len(todo) > 0 {
		name, _, _ := strings.Cut(strings.TrimPrefix(todo[len(todo)-1], "^"), ":")
		todo = todo[:len(todo)-1]
		if i, ok := at[name]; ok && !keep[i] {
			keep[i] = true
			todo = append(todo, f.NodeDef[i].Input...)
		}
	}
	var list []*nodepb.NodeDef
	for i, n := range f.NodeDef {
		if keep[i] {
			list = append(list, n)
		}
	}
	return list
}

// hasEffect reports whether n changes a variable, or runs what may.
func hasEffect(n *nodepb.NodeDef) bool {
	switch n.Op {
	case "StatefulPartitionedCall", "While", "If", "Case":
		return true
	}
	for _, start := range []string{"Assign", "Apply", "SparseApply", "Scatter", "ResourceApply", "ResourceSparseApply", "ResourceScatter"} {
		if strings.HasPrefix(n.Op, start) {
			return true
		}
	}
	return false
}
