package hlo

import (
	"regexp"
	"strings"

	"placer/graph"
)

// modulesOfWeights names the modules of ops that read weights after those weights, where the
// scopes of operations do not name the modules that JAX's names of the weights have: NNX has
// no scopes, Equinox the classes of its layers alone.
func (b *builder) modulesOfWeights() {
	of := map[graph.OpID]string{} // the module of a weight
	for i := range graph.OpID(b.b.NumOps()) {
		if x := b.arguments[i]; x != nil && b.b.At(i).Params > 0 {
			if m := moduleOfWeight(x.attr.scope); m != "" {
				of[i] = m
			}
		}
	}
	known := map[string]bool{}
	for i := range graph.OpID(b.b.NumOps()) {
		known[b.b.At(i).Module] = true
	}
	scopes := map[string]bool{} // and all that they end in
	for m := range known {
		for m != "" {
			scopes[m] = true
			_, m, _ = strings.Cut(m, ".")
		}
	}
	for _, m := range of {
		if scopes[m] {
			return
		}
	}
	if len(of) == 0 {
		return
	}
	for i := range graph.OpID(b.b.NumOps()) {
		op := b.b.At(i)
		if b.arguments[i] == nil {
			op.Module = ""
		}
		for _, t := range b.b.InputsAt(i) {
			read := b.b.TensorAt(t).Producer
			if m, ok := of[read]; ok && op.Module == "" {
				op.Module = m
				if views(op) {
					of[i] = m
				}
			}
		}
	}
}

// views reports whether op gives what it reads in another form: a weight cast or transposed.
func views(op *graph.Op) bool {
	switch op.Kind {
	case "Cast", "Reshape", "Transpose", "BroadcastTo", "Identity":
		return true
	}
	return false
}

var keyPath = regexp.MustCompile(`\['([^']*)'\]|\[(\d+)\]|\.(\w+)`)

// moduleOfWeight returns the path of the module of a weight from JAX's name of it:
// st['blocks'][2]['proj']['kernel'].value is of blocks.2.proj. Nothing for a weight of none, and
// for those that nnx.jit numbers: model.states[0][3].
func moduleOfWeight(name string) string {
	var path []string
	for _, found := range keyPath.FindAllStringSubmatch(name, -1) {
		key := found[1] + found[2] + found[3]
		if key != "params" && key != "value" {
			path = append(path, strings.ReplaceAll(strings.ReplaceAll(key, "/~/", "."), "/", "."))
		}
	}
	if len(path) > 0 && path[0] == "states" {
		return ""
	}
	return strings.Join(path[:max(len(path)-1, 0)], ".")
}
