package transfer

import (
	"fmt"
	"math/rand/v2"

	"placer/graph/unit"
	"placer/nn"
	"placer/plan"
)

// Policy decides units in the order of a list scheduler.
type Policy struct {
	Card  Card
	Reach Reach

	config Config
	net    *network
}

// levels are the granularities at which a policy decides, from fine to coarse. Its
// columns mean the same at all of them. Samples at several levels differ more than
// samples of one: which level suits depends on the graph.
var levels = []unit.Level{unit.Cell, unit.Segment, unit.Chain}

// timeStep is the index, behind those of levels, of an unrolled network's runs of a
// time step (unit.ByTimeStep). No policy was trained on such units; they are like
// segments to it.
const timeStep = 3

// Config describes the policy's network.
type Config struct {
	Hidden int `json:"hidden"` // width of its layers
}

// DefaultConfig returns width 16. Wider networks learn their training graphs by
// heart.
func DefaultConfig() Config { return Config{Hidden: 16} }

// Validate reports the first fault.
func (c Config) Validate() error {
	if c.Hidden < 1 || c.Hidden > 1024 {
		return fmt.Errorf("transfer: width %d, want 1 to 1024", c.Hidden)
	}
	return nil
}

// NewPolicy returns a policy of random weights.
func NewPolicy(c Config, random *rand.Rand) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	return &Policy{config: c, net: newNetwork(c.Hidden, random, b)}, nil
}

// Sample is a placement that the policy made.
type Sample struct {
	Device []uint8 // [N]
	Score  plan.Score
	Greedy bool
	level  int     // index into levels, or timeStep
	clock  float64 // when the policy's own schedule of it ends
}

// Weights returns their number.
func (p *Policy) Weights() int { return p.net.params.Count() }
