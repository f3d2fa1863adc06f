package sequential

// learner learns at a level from the elite, and from what a step sampled.
type learner interface {
	// fit takes steps of the gradient on r's elite, and on sampled, the placements of a
	// step; there are none where a level begins.
	fit(r *tuning, sampled []*elite, steps int) error
}

// crossEntropy makes the elite likelier by the logits of the graph alone.
type crossEntropy struct{}

func (crossEntropy) fit(r *tuning, _ []*elite, steps int) error {
	for _, x := range r.elite {
		if x.of == nil {
			x.of = r.workers[0].replay(r.logits, x.Cells)
		}
	}
	for range steps {
		r.logits.fit(r.elite, float32(r.pace.rate), float32(r.pace.TiedRate))
	}
	return nil
}
