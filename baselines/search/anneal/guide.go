package anneal

// Guide ranks moves before they are judged: of some that are drawn at random, the one
// that looks best is made. It may be called from several goroutines at once.
type Guide interface {
	// Rank writes into score, [M], how promising M moves are: logarithms, the higher the
	// better. x, [M,F], are their features: NumMoveFeatures of a move of placement alone,
	// NumJointFeatures of one of all tasks.
	Rank(x, score []float32)
}

// Judged is a move that was judged: what a Guide learns from.
type Judged struct {
	Features []float32 // [F] as of Guide; valid during the call
	Gain     float64   // share by which the plan became better, 0 where it did not
}

// drawn is M, the number of moves among which a guide chooses.
const drawn = 8

// noise is what is added to what a guide thinks of a move, in units of its scores: the
// move is drawn from the softmax of the scores over it. Without it the same mistakes
// would be made again and again.
const noise = 0.5

// byChance is the share of moves that are the first one drawn, whatever the guide thinks:
// those that it never wants would else never be made (docs/adr/0106-half-the-moves-by-chance.md).
const byChance = 0.5

// advised returns w with its moves chosen by the guide of r, if it has one, or told to
// whom learns. Moves on the coarsened graph are judged in about the time that it takes to
// look at them, to make decisions anew takes longer than to judge that, and where nothing
// knows when ops run there is nothing to look at.
func (r *run) advised(w *replica, s *stage) *replica {
	if s.coarse || w.recreation != nil || r.p.Kernels == nil {
		return w
	}
	switch {
	case r.Guide != nil:
		w.adviser = newAdviser(w, r.p, r.Guide, r.Learn, drawn)
	case r.Learn != nil:
		w.adviser = newAdviser(w, r.p, nil, r.Learn, 1)
	}
	return w
}
