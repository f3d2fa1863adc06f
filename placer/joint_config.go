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
	Samples int
	Prior   float64
	// Settle is the share of the budget, at its end, in which the best placement
	// that was sampled is given and the other tasks are learnt on it.
	Settle float64
}

// DefaultJoint returns the configuration of go-figure6.
func DefaultJoint() JointConfig { return JointConfig{Samples: 32, Prior: 4, Settle: 0.3} }

// Validate reports a fault.
func (c JointConfig) Validate() error {
	if c.Samples < 1 || !(c.Settle >= 0 && c.Settle < 1) {
		return fmt.Errorf("policy: joint tasks %+v: want positive samples and a share from 0 to below 1", c)
	}
	return nil
}

// isJoint reports whether placement is decided with another task.
func isJoint(t plan.Tasks) bool { return t.Has(plan.Place) && t != plan.Place }
