package joint

import "fmt"

// Config divides the budget of a Policy: shares above 0 and up to 1.
type Config struct {
	// Explore is the share in which all tasks are decided at once. At 1 there are no
	// turns.
	Explore float64
	// Move is the share of a turn that decides placement, Settle that of one which
	// decides the other tasks. Turns go on until the budget ends.
	Move, Settle float64
}

// Default returns the configuration of go-figure6.
func Default() Config { return Config{Explore: 0.4, Move: 0.15, Settle: 0.08} }

// Validate reports a fault.
func (c Config) Validate() error {
	for _, x := range []float64{c.Explore, c.Move, c.Settle} {
		if !(x > 0 && x <= 1) {
			return fmt.Errorf("policy: shares of the budget %+v: want above 0 and up to 1", c)
		}
	}
	return nil
}
