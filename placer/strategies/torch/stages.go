package torch

import (
	"fmt"

	"placer/graph"
	"placer/graph/strategy"
)

// stages returns the modules of each stage of a pipeline, [P*V], in the order in which they run.
func stages(x *strategy.Modules, w *weights, step *strategy.Step) ([][]string, error) {
	s, g := step.Strategy, w.m.Micro
	at := make([]int32, len(x.Paths)) // of a module, or -1
	for k := range at {
		at[k] = -1
	}
	found := make([][]string, s.Pipeline*s.Chunks)
	for i, k := range x.Of {
		switch c := step.Chunk[i]; {
		case k < 0 || at[k] == c:
		case at[k] >= 0:
			return nil, fmt.Errorf("module %s: stages %d and %d each have a part of it", x.Paths[k], at[k], c)
		default:
			at[k] = c
			found[c] = append(found[c], x.Paths[k])
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		readers := w.readers[i]
		for _, v := range readers {
			a, b := readers[0], v
			if p, q := int(step.Chunk[a])%s.Pipeline, int(step.Chunk[b])%s.Pipeline; p != q {
				return nil, fmt.Errorf("module %s: its weight is %s, which module %s on another stage reads too (%d and %d of %d)", name(g.Op(b).Module), g.Op(i).Name, name(g.Op(a).Module), q, p, s.Pipeline)
			}
		}
	}
	return found, nil
}
