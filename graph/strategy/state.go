package strategy

import "placer/graph"

// States finds what ops hold of the samples, [N]: keys and values of the tokens before, say,
// which grow with the batch. a and b are one model's step at two batch sizes. It is nil where
// nothing grows, and for steps with an update, which is of the whole batch.
func States(a, b *graph.Graph) (state []bool) {
	if a.NumOps() != b.NumOps() {
		return nil
	}
	for i := range graph.OpID(a.NumOps()) {
		switch x := a.Op(i); {
		case x.Phase == graph.Update:
			return nil
		case holds(x) && x.Resident != b.Op(i).Resident:
			if state == nil {
				state = make([]bool, a.NumOps())
			}
			state[i] = true
		}
	}
	return state
}
