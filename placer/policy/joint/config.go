package joint

import "fmt"

// Config divides the budget of a Policy: shares above 0 and up to 1.
type Config struct {
	// Explore is the share in which all tasks are decided at once. At 1 there are no
	// steps.
	Explore float64
	// RefinePlacement is the share of a step that refines the placement, RefineRest that
	// of one which refines schedule or fusion. Steps go on until the budget ends.
	RefinePlacement, RefineRest float64
}

// Default returns the configuration of go-figure6.
func Default() Config { return Config{Explore: 0.4, RefinePlacement: 0.15, RefineRest: 0.08} }

// Validate reports a fault.
func (c Config) Validate() error {
	for _, x := range []float64{c.Explore, c.RefinePlacement, c.RefineRest} {
		if !(x > 0 && x <= 1) {
			return fmt.Errorf("policy: shares of the budget %+v: want above 0 and up to 1", c)
		}
	}
	return nil
}
