package onnx

import (
	"fmt"
	"maps"
	"slices"
)

// note adds a remark to the summary, once.
func (imp *importer) note(format string, a ...any) {
	if s := fmt.Sprintf(format, a...); !imp.listed["\x00"+s] {
		imp.listed["\x00"+s] = true
		imp.sum.Notes = append(imp.sum.Notes, s)
	}
}

// repeated counts the nodes of one operator whose iterations follow one another.
type repeated struct {
	nodes int
	most  int64 // iterations of one of them
}

// repeats says that the iterations of a node follow one another, though its cost is that
// of all at once: one kernel with one launch.
func (imp *importer) repeats(n *node, iterations int64) {
	if iterations < 2 {
		return
	}
	key := brief(n.key())
	r := imp.repeated[key]
	imp.repeated[key] = repeated{r.nodes + 1, max(r.most, iterations)}
}

// sumUp adds the remarks that count nodes.
func (imp *importer) sumUp() {
	for _, op := range slices.Sorted(maps.Keys(imp.unruled)) {
		if n := imp.unruled[op]; n == 1 {
			imp.note("operator %s has no rule: it costs one operation an element", op)
		} else {
			imp.note("operator %s has no rule: its %d nodes cost one operation an element", op, n)
		}
	}
	for _, op := range slices.Sorted(maps.Keys(imp.repeated)) {
		if r := imp.repeated[op]; r.nodes == 1 {
			imp.note("%s: its %d iterations cost as one batch: a lower bound", op, r.most)
		} else {
			imp.note("%s: the iterations of its %d nodes, up to %d, cost as one batch: a lower bound", op, r.nodes, r.most)
		}
	}
}
