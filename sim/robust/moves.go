package robust

import (
	"math"

	"placer/graph"
	"placer/plan"
)

// moves judges a placement that changes by some ops at a time as Evaluator does. It races
// (Maron and Moore, 1993; Birattari et al., 2002): all placements run on the same machines in
// the same order, and one that is beyond the limit by the machines so far, with confidence,
// runs on no more of them.
type moves struct {
	of       []plan.Moves // by machine
	quantile float64
	values   []float64 // by machine

	// mark is a placement that all machines have run, which is near those to come.
	mark mark
}

// mark are the logarithms of a placement's steps, with what each counts in the quantile.
type mark struct {
	known bool
	value float64   // the quantile
	log   []float64 // by machine
	// influence is the derivative of the quantile's logarithm by that of a machine's step, times
	// the number of machines.
	influence []float64
}

var _ plan.Moves = (*moves)(nil)

// Moves returns an evaluator of changes that scores as e does, for any goroutine. Where Score
// is given a limit, it stops once the value is above that by confidence standard errors: not
// proven, but as sure as an estimate from some of the machines can be.
func (e *Evaluator) Moves() plan.Moves {
	n := len(e.machine)
	x := &moves{of: make([]plan.Moves, n), quantile: e.c.Quantile, values: make([]float64, n)}
	x.mark.log, x.mark.influence = make([]float64, n), make([]float64, n)
	for k, m := range e.machine {
		x.of[k] = m.Moves()
	}
	return x
}

// Reset is as plan.Moves says.
func (x *moves) Reset(d plan.Decision) {
	for _, m := range x.of {
		m.Reset(d)
	}
}

// Move is as plan.Moves says.
func (x *moves) Move(ops []graph.OpID, device uint8) {
	for _, m := range x.of {
		m.Move(ops, device)
	}
}

// A race looks at the machines so far after firstLook of them and whenever there are half as
// many again.
const (
	firstLook  = 5
	confidence = 3.0 // standard errors
)

// Score is as plan.Moves says, but for what Moves does.
func (x *moves) Score(limit float64) (s plan.Score, ok bool) {
	look := firstLook
	for k, m := range x.of {
		got, _ := m.Score(math.Inf(1))
		x.values[k] = got.Value
		s.Overflow = max(s.Overflow, got.Overflow)
		if k+1 == look && k+1 < len(x.of) {
			if x.beyond(limit, k+1) {
				return plan.Score{}, false
			}
			look += look / 2
		}
	}
	s.Value = fitted(x.values, x.quantile)
	if !x.mark.known || s.Value <= max(limit, x.mark.value) {
		x.remember(s.Value)
	}
	return s, true
}

// beyond reports whether the first n machines say that the quantile is above limit. They
// estimate by how much its logarithm differs from the mark's, to first order, as the mean of
// the differences on each machine, times its influence.
func (x *moves) beyond(limit float64, n int) bool {
	if !x.mark.known || math.IsInf(limit, 1) {
		return false
	}
	mean, square := 0.0, 0.0
	for k := range n {
		d := (math.Log(x.values[k]) - x.mark.log[k]) * x.mark.influence[k]
		mean += d
		square += d * d
	}
	mean /= float64(n)
	variance := max(0, square/float64(n)-mean*mean) / float64(n-1)
	variance *= 1 - float64(n)/float64(len(x.of)) // of a sample without replacement
	return mean-confidence*math.Sqrt(variance) > math.Log(limit/x.mark.value)
}

// remember makes the placement that all machines have run the mark.
func (x *moves) remember(value float64) {
	m := momentsOf(x.values)
	for k, v := range x.values {
		x.mark.log[k] = math.Log(v)
		x.mark.influence[k] = m.influence(x.mark.log[k], x.quantile)
	}
	x.mark.known, x.mark.value = true, value
}

// influence returns the derivative of mean + above(q)*deviation by one of the n values whose
// moments m are, times n.
func (m moments) influence(value, q float64) float64 {
	if m.deviation == 0 {
		return 1
	}
	u, z, c := (value-m.mean)/m.deviation, normal(q), leaning(q)
	switch {
	case z+c*m.skew <= 0:
		return 1
	case math.Abs(m.skew) == mostSkew:
		return 1 + u*(z+c*m.skew)
	}
	return 1 + u*(z-2*c*m.skew) + 3*c*(u*u-1)
}
