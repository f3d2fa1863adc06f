package torch

import (
	"fmt"

	"placer/graph/strategy"
)

// stages returns the modules of each stage of a pipeline, [P*V], in the order in which they run.
func stages(x *strategy.Modules, step *strategy.Step) ([][]string, error) {
	s := step.Strategy
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
	for c := range found {
		switch {
		case len(found[c]) > 0:
		case c < len(found)-1:
			return nil, fmt.Errorf("stage %d has no module: torch's are cut at modules, and what is in none runs in the last stage alone", c)
		default:
			found[c] = []string{} // what is behind all modules, as the loss
		}
	}
	return found, nil
}
