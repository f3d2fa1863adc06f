package cpsat

import "fmt"

// Params are the limits and options of a run of the solver.
type Params struct {
	// Work bounds a run in the solver's deterministic time, which is roughly
	// seconds but counts operations; 0 does not bound. With one worker and a bound
	// in work alone, a run depends on model and seed alone.
	Work float64
	// Seconds bounds a run in wall-clock time; 0 does not bound.
	Seconds float64
	// Workers is the number of threads, at least 1. More than one search at once,
	// and share what they find: much stronger, and not deterministic.
	Workers int
	Seed    int32
}

// DefaultParams is one worker without bounds.
func DefaultParams() Params { return Params{Workers: 1} }

// validate reports bounds that are no bounds and missing workers.
func (p Params) validate() error {
	if !(p.Work >= 0) || !(p.Seconds >= 0) || p.Workers < 1 || p.Seed < 0 {
		return fmt.Errorf("cpsat: work %g, seconds %g, seed %d must not be negative, workers %d must be positive", p.Work, p.Seconds, p.Seed, p.Workers)
	}
	return nil
}

// marshal returns p as a serialized SatParameters.
func (p Params) marshal() []byte {
	var out []byte
	if p.Seconds > 0 {
		out = double(out, 36, p.Seconds)
	}
	if p.Work > 0 {
		out = double(out, 67, p.Work)
	}
	out = integer(out, 31, int64(p.Seed))
	out = integer(out, 206, int64(p.Workers))
	return boolean(out, 135, false) // leave the signals to the program
}
