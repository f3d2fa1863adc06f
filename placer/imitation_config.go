package placer

import "fmt"

// ImitationConfig describes how a policy imitates its best samples.
type ImitationConfig struct {
	Window int     // samples that are kept; 0: no imitation
	Elite  float64 // share of them that is imitated
	Mix    float64 // how far a round moves the chances to theirs
	Ranked bool    // the better count more
}

// Validate reports a fault.
func (c ImitationConfig) Validate() error {
	if c.Window < 0 || c.Window > 0 && !(c.Elite > 0 && c.Elite <= 1 && c.Mix >= 0 && c.Mix <= 1) {
		return fmt.Errorf("policy: imitation of a share of %g of the last %d samples by %g: want shares from 0 to 1", c.Elite, c.Window, c.Mix)
	}
	return nil
}
