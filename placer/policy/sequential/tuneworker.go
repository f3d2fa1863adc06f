package sequential

import (
	"context"
	"slices"

	"placer/baselines/search/anneal"
	"placer/plan"
)

// tuneWorker owns what one goroutine needs to sample and to evaluate.
type tuneWorker struct {
	evaluator plan.Evaluator
	device    []uint8 // [N] scratch
	rollouts  *rollouts
	prior     heuristic
	logits, p []float32     // [D] scratch
	row       []float32     // [D,J] scratch
	exact     *anneal.Exact // what improves placements; nil before the first
}

// startLevel prepares w for a level, for as long as ctx lasts.
func (w *tuneWorker) startLevel(ctx context.Context, n *network, s *instance) {
	w.rollouts = newRollouts(n, s).until(ctx)
	w.rollouts.withFeatures = true
	w.logits, w.p, w.row = make([]float32, s.d), make([]float32, s.d), make([]float32, s.d*len(tied))
}

// roll makes one placement per proposal.
func (w *tuneWorker) roll(l *logits, proposals []*proposal) {
	w.rollouts.roll(slices.Repeat([]heuristic{w.prior}, len(proposals)), rolling{choose: func(k int, u int32, scores []float32, ok []bool) int32 {
		w.rollouts.tiedOf(k, w.row)
		l.sum(u, scores, w.row, w.logits)
		return proposals[k].choose(u, w.logits, ok, w.p)
	}})
}

// replay makes the placement that cells, [cells], describe, devices named in the
// order of their first use, and returns it as l's decisions; nil where the level's context
// ended in it.
func (w *tuneWorker) replay(l *logits, cells []uint8) *trajectory {
	d, decisions := l.s.d, len(l.order)
	x := &trajectory{chosen: make([]int32, decisions), scores: make([]float32, decisions*d), tied: newTiedRows(decisions * d), ok: make([]bool, decisions*d)}
	names, t := newDeviceNames(l.s), 0
	w.rollouts.roll([]heuristic{w.prior}, rolling{choose: func(_ int, u int32, scores []float32, ok []bool) int32 {
		to := names.of(int32(cells[l.of[u]]), w.rollouts.states[0].number)
		ok[to] = true
		w.rollouts.tiedOf(0, w.row)
		x.tied.put(t*d, w.row)
		copy(x.scores[t*d:], scores)
		copy(x.ok[t*d:], ok)
		x.chosen[t] = to
		t++
		return to
	}})
	if w.rollouts.done() {
		return nil
	}
	return x
}
