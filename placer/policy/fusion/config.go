package fusion

import "fmt"

// Config describes a Policy.
type Config struct {
	// Samples is the number of plans in a round, at least 1. A budget too small for
	// eight rounds halves it, down to 8.
	Samples int
	// Window is the number of the latest samples from which the best are taken, at
	// least 1.
	Window int
	// Elite is the share of them that probabilities move to, above 0 and up to 1.
	Elite float64
	// Mix is how far a round of the first two stages moves the probabilities, from 0, not at
	// all, to 1, to those of the best samples.
	Mix float64
	// Lookahead is the most plans of which the kernels alone are priced after each round
	// of the last two stages; 0 prices none. They do not count as evaluations.
	Lookahead int
	// Workers is the number of goroutines that evaluate, at least 1. It changes no
	// result.
	Workers int
}

// Default returns the configuration of go-table3.
func Default() Config {
	return Config{Samples: 16, Window: 320, Elite: 0.05, Mix: 0.3, Lookahead: 128, Workers: 1}
}

// Validate reports a fault.
func (c Config) Validate() error {
	if c.Samples < 1 || c.Window < 1 || !(c.Elite > 0 && c.Elite <= 1) || !(c.Mix >= 0 && c.Mix <= 1) || c.Lookahead < 0 || c.Workers < 1 {
		return fmt.Errorf("policy: fusion %+v: want positive samples, window and workers, shares up to 1, a lookahead not below 0", c)
	}
	return nil
}

const (
	// levels are those of fusion priority; 0 fuses an op with none of its readers.
	levels = 8
	// middleBias is by how much the logit of the middle level begins above the others'.
	middleBias = 2
	// mostClasses bounds the classes of the first stage: about one for each sample that
	// it has in a budget of a thousand.
	mostClasses = 384
)
