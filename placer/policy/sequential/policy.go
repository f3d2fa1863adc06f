package sequential

import (
	"fmt"
	"math/rand/v2"

	"placer/nn"
)

// Policy decides units in the order of a list scheduler. It is safe for concurrent use, but for
// its Card; training and fine-tuning work on policies of their own.
type Policy struct {
	Card Card // what the file says of its training

	config       Config
	net          *network
	training     distribution
	tried        trials
	defaultTasks bool // schedule and fusion are as without learning
	priorsOnly   bool // proposals follow their priors alone
}

// Config describes the policy's network.
type Config struct {
	Hidden int `json:"hidden"` // width of its layers
	// Encoder embeds the units before they are decided; nil: the decoder reads their
	// features alone.
	Encoder *EncoderConfig `json:"encoder,omitempty"`
	// Unguided leaves the rules of thumb out: the network reads neither what the heuristic
	// prior says nor the expert's cut and the balanced one, and the prior's choice has no
	// bonus.
	Unguided bool `json:"unguided,omitempty"`
}

// DefaultConfig returns width 16, behind an encoder of width 32. Wider decoders learn
// their training graphs by heart.
func DefaultConfig() Config { return Config{Hidden: 16, Encoder: DefaultEncoder(32)} }

// Validate reports the first fault.
func (c Config) Validate() error {
	if c.Hidden < 1 || c.Hidden > 1024 {
		return fmt.Errorf("sequential: width %d, want 1 to 1024", c.Hidden)
	}
	if c.Encoder != nil {
		return c.Encoder.Validate()
	}
	return nil
}

// NewPolicy returns a policy of random weights, which has been trained on nothing.
func NewPolicy(c Config, random *rand.Rand) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	return &Policy{config: c, net: newNetwork(c, nn.NewParams(), random, b)}, nil
}

// clone returns a policy of equal weights that learns by itself.
func (p *Policy) clone() (*Policy, error) {
	q, err := NewPolicy(p.config, stream(0, "weights", 0))
	if err != nil {
		return nil, err
	}
	for i, w := range p.net.params.All() {
		copy(q.net.params.All()[i].Value, w.Value)
	}
	q.Card, q.training, q.tried, q.defaultTasks, q.priorsOnly = p.Card, p.training, p.tried, p.defaultTasks, p.priorsOnly
	return q, nil
}

// Config returns the shape of the policy's network and what it reads.
func (p *Policy) Config() Config { return p.config }

// Weights returns the number of the network's weights.
func (p *Policy) Weights() int { return p.net.params.Count() }

// Distance returns how far f lies from the nearest training graph: the root mean square of the
// differences of their summaries, in deviations of the training graphs' figures. Beyond Limit
// f is out of distribution. It is +Inf where nothing is known of the training graphs.
func (p *Policy) Distance(f *Features) float64 { return p.training.distance(f.summary()) }

// Limit returns the distance within which nine of ten training graphs lie from those of other
// families; 0 where they are of one family, or not known.
func (p *Policy) Limit() float64 { return p.training.Limit }

// Card says what a policy was trained on and how far.
type Card struct {
	Trained []string `json:"trained"`  // families
	HeldOut []string `json:"held_out"` // families, without their kin
	Steps   int      `json:"steps"`    // of imitation and PPO
	Samples int      `json:"samples"`  // placements evaluated in training
	Graphs  int      `json:"graphs"`   // distinct training graphs
	// Results are figures measured after training, one row per workload; empty
	// until somebody has measured.
	Results []Result `json:"results,omitempty"`
}

// Result is what a policy came to on a workload, as reductions of the step time
// against the human expert's, 0 to 1.
type Result struct {
	Workload string  `json:"workload"`
	Devices  int     `json:"devices"`
	HeldOut  bool    `json:"held_out"` // its family was not trained on
	Greedy   float64 `json:"greedy"`
	Best     float64 `json:"best_of_16"`
	Tuned    float64 `json:"fine_tuned,omitempty"`
}
