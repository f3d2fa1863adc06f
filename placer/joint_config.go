package placer

import (
	"fmt"

	"placer/plan"
)

// JointConfig describes how a policy decides on placement together with
// scheduling, fusion or both.
type JointConfig struct {
	// Samples and Prior replace those of PolicyConfig, the first as a bound: what is
	// chosen beside a placement is to blur its worth little.
	Samples   int
	Prior     float64
	Imitation ImitationConfig
	// Explore is the share of the budget in which all tasks are learnt at once. What
	// is left goes to the other tasks on the best placement, Settle at a time, and to
	// the placement under what these came to, Move at a time, by turns.
	Explore, Settle, Move float64
	// Favour is by how much the logits of a placement to start from begin above the
	// others; more among many devices, so that a unit stays with a chance of at least
	// Stay.
	Favour, Stay float64
}

// DefaultJoint returns the configuration of go-figure6.
func DefaultJoint() JointConfig {
	return JointConfig{Samples: 32, Prior: 4, Imitation: ImitationConfig{Window: 640, Elite: 0.05, Mix: 0.3}, Explore: 0.4, Settle: 0.08, Move: 0.15, Favour: 4, Stay: 0.947}
}

// Validate reports a fault.
func (c JointConfig) Validate() error {
	if c.Samples < 1 || !(c.Explore > 0 && c.Explore <= 1 && c.Settle > 0 && c.Settle <= 1 && c.Move > 0 && c.Move <= 1 && c.Favour >= 0 && c.Stay >= 0 && c.Stay < 1) {
		return fmt.Errorf("policy: joint tasks %+v: want positive samples, shares above 0 and up to 1, a favour not below 0, a chance to stay below 1", c)
	}
	return c.Imitation.Validate()
}

// isJoint reports whether placement is decided with another task.
func isJoint(t plan.Tasks) bool { return t.Has(plan.Place) && t != plan.Place }
