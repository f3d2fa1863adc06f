package torch

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/strategy"
)

// rows lists the modules that work by rows: those without others within, all of whose ops do. What a
// cut product's module does beside it, as to cast its input, is no matter: torch has the input whole
// there from the start, and the output cut.
func (f *File) rows(c *cuts) error {
	within := map[string]bool{} // modules that hold others
	for path := range c.ops {
		for k, r := range path {
			if r == '.' {
				within[path[:k]] = true
			}
		}
	}
	seen := map[string]bool{}
	for i := range graph.OpID(c.g.NumOps()) {
		if !c.split.ByRows[i] || c.g.Op(i).Phase != graph.Forward {
			continue
		}
		first, _ := c.g.Outputs(i)
		if shape := c.g.Tensor(first).Shape; len(shape) > 2 && shape[1]%c.ranks != 0 {
			return fmt.Errorf("module %s: %d ranks cannot share the %d tokens of %v", name(c.g.Op(i).Module), c.ranks, shape[1], shape)
		}
		path := c.g.Op(i).Module
		if seen[path] || within[path] || path == "" || c.g.Op(i).Kind.Class() == graph.ClassMeta || c.multiplies(path) {
			continue
		}
		seen[path] = true
		var all []string
		for _, v := range c.ops[path] {
			if r, _ := c.split.Role(v); r == strategy.TableLookup {
				continue // whose result is scattered by rows, within the module
			}
			if !c.split.ByRows[v] && c.g.Op(v).Kind.Class() != graph.ClassMeta {
				all = append(all, c.g.Op(v).Name)
			}
		}
		if len(all) > 0 {
			return fmt.Errorf("module %s: %s needs all tokens, while ranks have some in others of its ops", path, strings.Join(all, ", "))
		}
		f.ByRows = append(f.ByRows, path)
	}
	return nil
}

// multiplies reports whether a module holds a product that ranks share out.
func (c *cuts) multiplies(path string) bool {
	return slices.ContainsFunc(c.ops[path], func(i graph.OpID) bool {
		r, _ := c.split.Role(i)
		return r != strategy.NoRole && r != strategy.TableLookup
	})
}
