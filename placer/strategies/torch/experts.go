package torch

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/graph/strategy"
)

// experts returns the modules that hold the experts that ranks share out, each the outermost that
// holds nothing else, in the order in which they run.
func experts(m *strategy.Model, ranks int) (paths []string, err error) {
	g, x := m.Micro, strategy.FindMixtures(m)
	other := map[string]string{} // by module, a parameter in it or below that is of no expert
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Params > 0 && !x.Of[i] {
			path := o.Module
			for other[path] = o.Name; path != ""; other[path] = o.Name {
				path = parent(path)
			}
		}
	}
	seen := map[string]bool{}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Phase != graph.Forward || !x.Of[i] || o.GEMM.IsZero() {
			continue
		}
		path := o.Module
		switch {
		case x.Expert[i] >= 0:
			return nil, fmt.Errorf("module %s: experts are modules of their own there, and %d ranks share out those whose weights one module holds", name(path), ranks)
		case other[path] != "":
			return nil, fmt.Errorf("module %s: it holds %s beside its experts (give these a module of their own)", name(path), other[path])
		}
		for path != "" && other[parent(path)] == "" {
			path = parent(path)
		}
		if !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// parent returns the path of the module that holds the one at a path, "" of the model itself.
func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }
