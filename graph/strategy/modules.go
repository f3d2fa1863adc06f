package strategy

import (
	"strings"

	"placer/graph"
)

// Modules are the pieces that a model's source is made of, by the paths of modules that ops have
// (graph.Op.Module): elements of lists of modules, the outermost of a path (h.3 of h.3.attn), and
// beside these the outermost modules that hold no such list. What lies between them, in modules
// that hold them, belongs to none.
type Modules struct {
	Paths []string // in the order in which their first forward op stands
	Of    []int32  // [N] the module of each op of the forward pass, -1 for none and for other ops
}

// FindModules returns the modules of the forward pass of m.
func FindModules(m *Model) *Modules {
	g := m.Micro
	holds := map[string]bool{"": true} // paths with an element of a list below
	for i := range graph.OpID(g.NumOps()) {
		if element, ok := listElement(g.Op(i).Module); ok {
			for k, c := range element {
				if c == '.' {
					holds[element[:k]] = true
				}
			}
		}
	}
	x := &Modules{Of: make([]int32, g.NumOps())}
	index := map[string]int32{}
	for i := range graph.OpID(g.NumOps()) {
		x.Of[i] = -1
		path, ok := piece(g.Op(i).Module, holds)
		if !ok || g.Op(i).Phase != graph.Forward || m.once[i] {
			continue
		}
		k, known := index[path]
		if !known {
			k = int32(len(x.Paths))
			index[path] = k
			x.Paths = append(x.Paths, path)
		}
		x.Of[i] = k
	}
	return x
}

// listElement returns the part of a module's path that ends in its first number: an element of a
// list of modules.
func listElement(path string) (string, bool) {
	from := 0
	for from <= len(path) && path != "" {
		part, _, more := strings.Cut(path[from:], ".")
		if part != "" && strings.Trim(part, "0123456789") == "" {
			return path[:from+len(part)], true
		}
		if !more {
			break
		}
		from += len(part) + 1
	}
	return "", false
}

// InList reports whether a path of Modules is that of an element of a list.
func InList(path string) bool {
	_, ok := listElement(path)
	return ok
}

// piece returns the outermost part of a module's path that is not in holds.
func piece(path string, holds map[string]bool) (string, bool) {
	if element, ok := listElement(path); ok {
		return element, true
	}
	for k, c := range path {
		if c == '.' && !holds[path[:k]] {
			return path[:k], true
		}
	}
	return path, !holds[path]
}

// modules takes the model's modules, in the order in which they run, if its forward edges lead from
// modules to the same or later ones. What lies between modules is in the block of the last that it
// reads; what reads none, where it is read first.
func (b *Blocks) modules() bool {
	g := b.m.Micro
	x := FindModules(b.m)
	if len(x.Paths) < 2 {
		return false
	}
	in := func(i graph.OpID) bool { return g.Op(i).Phase == graph.Forward && !b.m.once[i] }
	for i := range graph.OpID(g.NumOps()) {
		if !in(i) {
			continue
		}
		at := int32(-1)
		for p := range g.Predecessors(i) {
			if in(p) {
				at = max(at, b.of[p])
			}
		}
		switch k := x.Of[i]; {
		case k < 0:
			b.of[i] = at
		case at > k:
			clear(b.of)
			return false
		default:
			b.of[i] = k
		}
	}
	for i := graph.OpID(g.NumOps()) - 1; i >= 0; i-- {
		if !in(i) || b.of[i] >= 0 {
			continue
		}
		first := int32(len(x.Paths))
		for t, end := g.Outputs(i); t < end; t++ {
			for _, v := range g.Consumers(t) {
				if in(v) {
					first = min(first, b.of[v])
				}
			}
		}
		if b.of[i] = first; int(first) == len(x.Paths) {
			b.of[i] = 0
		}
	}
	b.n = len(x.Paths)
	return true
}
