package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"placer/internal/words"
)

// note adds a remark to the summary, once.
func (imp *importer) note(format string, a ...any) {
	if s := fmt.Sprintf(format, a...); !imp.listed["\x00"+s] {
		imp.listed["\x00"+s] = true
		imp.sum.Notes = append(imp.sum.Notes, s)
	}
}

// openDims says which dimensions have a value that nobody gave; empty where none has.
func (imp *importer) openDims() string {
	var open []string
	for _, s := range imp.sum.Symbols {
		if !s.Given {
			open = append(open, s.Name)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return fmt.Sprintf("no value is given for %s, taken as %d: --dim %s=N gives one", strings.Join(open, ", "), imp.cfg.DefaultDim, open[0])
}

// sumUp adds the remarks that count nodes.
func (imp *importer) sumUp() {
	for _, x := range imp.inits {
		if x.external != nil && !slices.Contains(imp.sum.Data, x.external.location) {
			imp.sum.Data = append(imp.sum.Data, x.external.location)
		}
	}
	slices.Sort(imp.sum.Data)
	imp.sum.Tables = len(imp.tabled)
	for _, n := range imp.tabled {
		imp.sum.TableElements += n
	}
	if imp.cfg.Training && imp.integers > 0 {
		imp.note("%s trained, train the model that was quantised", words.Count(imp.integers, "parameter is an integer, which has no gradient: it is not", "parameters are integers, which have no gradients: they are not"))
	}
	for _, op := range slices.Sorted(maps.Keys(imp.unruled)) {
		if n := imp.unruled[op]; n == 1 {
			imp.note("operator %s has no rule: it costs one operation an element", op)
		} else {
			imp.note("operator %s has no rule: its %s one operation an element", op, words.Count(n, "node costs", "nodes cost"))
		}
	}
}
