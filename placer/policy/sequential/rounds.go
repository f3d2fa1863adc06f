package sequential

// rounds are the sizes of the steps on a graph and a machine.
type rounds struct {
	*tuneSettings
	base        int // evaluated in a round on four devices
	early, late int // evaluated
	fits        int
	rate        float64
	opening     int // steps of the gradient with which a level begins
}

// rounds returns those on a graph of n ops in units units and d devices: more
// devices take more samples early on, when the most is to be learned, and many
// logits larger rounds and steps.
func (c *tuneSettings) rounds(n, units, d int) rounds {
	x := rounds{tuneSettings: c, base: c.Samples, fits: c.Fits, rate: c.Rate, opening: c.openingFits}
	many := c.strays(units, d) > 1
	d = min(d, c.maxDevices)
	if many {
		x.fits *= c.manyLogitsFactor
		x.rate *= float64(c.manyLogitsFactor)
		if n > c.largeGraph {
			x.opening = c.openingRounds * x.fits
		}
	}
	switch {
	case x.base > 0:
	case n > c.largeGraph:
		x.base = max(c.fewestSamples, c.largeSamples/d*c.hugeGraph/max(n, c.hugeGraph))
	case n > c.smallGraph && many:
		x.base = c.manyLogitsSamples
	default:
		x.base = c.smallSamples
	}
	x.early = max(2, x.base*d/4)
	x.late = max(x.base, x.early)
	return x
}

// strays returns in how many of so many units a sample of the last round is expected to
// stray from an elite that agrees. Where the elite's device leads the d-1 others by z,
// each of these has a chance of about exp(-z). A step of the gradient then moves z by
// d times that chance times the rate, so exp(z) grows by d times the rate in each step.
func (c *tuneSettings) strays(units, d int) float64 {
	return float64(units*(d-1)) / (float64(d*c.Fits*c.Steps) * c.Rate)
}

// isEarly reports whether step k is one of the first half.
func (x rounds) isEarly(k int) bool { return 2*k <= x.Steps }

// evaluated returns the placements that step k evaluates. The first has as many as a
// late one, for it is divided among the levels.
func (x rounds) evaluated(k int) int {
	if k > 0 && x.isEarly(k) {
		return x.early
	}
	return x.late
}

// made returns the placements that step k makes at level l for each that it
// evaluates. The policy's own schedule orders wide samples of cells well, those of
// coarser levels less well.
func (x rounds) made(k int, l level) int {
	switch {
	case l != atCells:
		return x.Rollouts
	case x.isEarly(k):
		return max(1, x.Rollouts*x.base/x.early)
	}
	return max(1, x.Rollouts*x.base/x.late)
}

// learned returns the placements that step k learns from.
func (x rounds) learned(k int) int {
	if x.isEarly(k) {
		return max(1, x.Elite*min(x.early, x.base)/x.base)
	}
	return x.Elite
}
