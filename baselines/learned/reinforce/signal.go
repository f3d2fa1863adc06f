package reinforce

import (
	"errors"
	"fmt"
	"math"

	"placer/internal/faults"
	"placer/plan"
	"placer/ppo"
)

// SignalConfig says how step times become advantages.
type SignalConfig struct {
	// Failing is the failing signal, the cost of a placement that does not fit, in
	// units of the square root of the time of all ops one after another; above 0.
	Failing float64
	// FirstMean starts the baseline at the mean cost of the first round, not at the
	// failing signal. From the latter, all placements of the first rounds count as
	// good ones, and the policy settles on what it happened to sample.
	FirstMean bool
	// Decay is what the moving average keeps of the baseline in a round, [0,1).
	Decay float64
	// OnlyFitting is the number of rounds after which a placement that does not fit
	// no longer counts: it moves neither the policy nor the baseline.
	OnlyFitting int
}

// DefaultSignal returns the decay and the number of rounds of the controller that
// the authors published, and a failing signal of three: that of a placement nine
// times as slow as one device.
func DefaultSignal() SignalConfig { return SignalConfig{Failing: 3, Decay: 0.9, OnlyFitting: 1000} }

// Validate reports every fault of c.
func (c SignalConfig) Validate() error {
	var all faults.List
	all.If(!(c.Failing > 0), "failing signal is %g, want above 0", c.Failing)
	all.If(!(c.Decay >= 0 && c.Decay < 1), "decay of the baseline is %g, want [0,1)", c.Decay)
	all.If(c.OnlyFitting < 0, "only fitting placements count after %d rounds, want at least 0", c.OnlyFitting)
	return errors.Join(all...)
}

// Signal keeps the moving-average baseline of one controller.
type Signal struct {
	config   SignalConfig
	serial   float64
	baseline float64
	rounds   int
}

// NewSignal returns a signal that has seen no round. serial is the
// time of all ops one after another, in seconds.
func NewSignal(c SignalConfig, serial float64) *Signal {
	if err := c.Validate(); err != nil {
		panic(fmt.Sprintf("reinforce: %v", err))
	}
	return &Signal{config: c, serial: serial, baseline: c.Failing}
}

// cost returns R, the square root of the step time over the serial time, or the
// failing signal (RL-2017, section 3.1).
func (s *Signal) cost(x plan.Score) float64 {
	if !x.Feasible() {
		return s.config.Failing
	}
	return math.Sqrt(x.Value / s.serial)
}

// Baseline returns the moving average.
func (s *Signal) Baseline() float64 { return s.baseline }

// Advantages writes baseline - R of the scores of a round into dst, [K], and then
// moves the baseline. It reports whether any placement counts.
func (s *Signal) Advantages(scores []plan.Score, dst []float32) bool {
	if s.config.FirstMean && s.rounds == 0 {
		s.baseline = 0
		for _, x := range scores {
			s.baseline += s.cost(x) / float64(len(scores))
		}
	}
	sum, n := 0.0, 0
	for k, x := range scores {
		dst[k] = 0
		if !x.Feasible() && s.rounds >= s.config.OnlyFitting {
			continue
		}
		r := s.cost(x)
		dst[k] = float32(s.baseline - r)
		sum += r
		n++
	}
	s.rounds++
	if n > 0 {
		s.baseline = s.config.Decay*s.baseline + (1-s.config.Decay)*sum/float64(n)
	}
	return n > 0
}

// Round is what one round of training did.
type Round struct {
	Round, Evaluations int
	// Mean is the mean over the round's placements of R, the square root of the step time
	// over the serial time or the failing signal, and Baseline the moving average after it.
	Mean, Baseline float64
	// Seconds is the mean step time of those that fit, and Fit their number.
	Seconds float64
	Fit     int
	Best    plan.Score // of all rounds
}

// summary returns the round of these scores.
func (s *Signal) summary(scores []plan.Score) (r Round) {
	r.Round, r.Baseline = s.rounds, s.baseline
	for _, x := range scores {
		r.Mean += s.cost(x) / float64(len(scores))
		if x.Feasible() {
			r.Seconds += x.Value
			r.Fit++
		}
	}
	r.Seconds /= float64(max(r.Fit, 1))
	return r
}

// NewObjective holds a sample of n decisions for each of the advantages, [K]. New
// probabilities equal those sampled with, so that nothing is clipped and the gradient
// is that of REINFORCE.
func NewObjective(advantage []float32, n int, entropy float64) *ppo.Objective {
	o := &ppo.Objective{ClipEps: 1, Entropy: entropy}
	for i := range advantage {
		o.Actions = append(o.Actions, make([]int32, n))
		o.LogProb = append(o.LogProb, make([]float32, n))
		o.Advantage = append(o.Advantage, advantage[i:i+1])
	}
	return o
}
