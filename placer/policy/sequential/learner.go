package sequential

import "context"

// learner learns at a level from the elite, and from what a step sampled.
type learner interface {
	// room reports an instance that it has no memory to learn on.
	room(s *instance) error
	// fit takes steps of the gradient on r's elite, and on sampled, the placements of a
	// step; there are none where a level begins. It ends early with ctx, and when the
	// budget in seconds is spent: nothing is sampled by what it would learn.
	fit(ctx context.Context, r *tuning, sampled []*elite, steps int) error
}

// stopped tells when learning has to end: with ctx, and when the budget in seconds is spent.
func (r *tuning) stopped(ctx context.Context) func() bool {
	return func() bool { return ctx.Err() != nil || r.pace.over() }
}

// crossEntropy makes the elite likelier by the logits of the graph alone.
type crossEntropy struct{}

func (crossEntropy) room(*instance) error { return nil }

func (crossEntropy) fit(ctx context.Context, r *tuning, _ []*elite, steps int) error {
	stopped := r.stopped(ctx)
	for _, x := range r.elite {
		if x.of == nil {
			if stopped() {
				return ctx.Err()
			}
			x.of = r.workers[0].replay(r.logits, x.Cells) // nil where ctx ended in it
		}
	}
	for range steps {
		if stopped() || !r.logits.fit(r.elite, float32(r.pace.rate), float32(r.pace.TiedRate), stopped) {
			return ctx.Err()
		}
	}
	return nil
}
