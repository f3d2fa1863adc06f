package hlo

import (
	"strings"

	"placer/graph"
)

// primal is the name that a scope has without what says that it goes backward or is computed
// again: jit(step)/transpose(jvp(Net))/h_0/dot_general is the gradient of
// jit(step)/jvp(Net)/h_0/dot_general, and so is what JAX calls
// jit(step)/transpose(jvp(Net))/jvp(Net)/checkpoint/h_0/dot_general.
func primal(scope string) string {
	var path []string
	for _, p := range strings.Split(scope, "/") {
		if inner, ok := strings.CutPrefix(p, "transpose("); ok {
			p = strings.TrimSuffix(inner, ")")
		}
		if p == "checkpoint" || p == rematted || len(path) > 0 && path[len(path)-1] == p && strings.HasPrefix(p, "jvp(") {
			continue
		}
		path = append(path, p)
	}
	return strings.Join(path, "/")
}

// rootOf is the module that a scope differentiates, in which all others are: Net of
// jit(step)/jvp(Net)/h_0/dot_general.
func rootOf(scope string) string {
	_, inner, _ := strings.Cut(scope, "jvp(")
	root, _, _ := strings.Cut(inner, ")")
	return root
}

// gradients says of ops that go backward which op's gradient they compute: the last of their
// name, else the last of their module. What is of the whole model alone says neither.
func (b *builder) gradients() {
	named, module := map[string]graph.OpID{}, map[string]graph.OpID{}
	for i := range graph.OpID(b.b.NumOps()) {
		if op := b.b.At(i); op.Phase == graph.Forward && computes(op) && strings.Contains(b.scopes[i], "jvp(") {
			named[primal(b.scopes[i])], module[op.Module] = i, i
		}
	}
	for i := range graph.OpID(b.b.NumOps()) {
		op := b.b.At(i)
		if op.Phase != graph.Backward || op.Module == "" || op.Module == rootOf(b.scopes[i]) {
			continue
		}
		if k, ok := named[primal(b.scopes[i])]; ok && b.b.At(k).Module == op.Module {
			op.Forward = k
		} else if k, ok := module[op.Module]; ok {
			op.Forward = k
		}
	}
}
