package roofline

import (
	"errors"

	"placer/internal/faults"
	"placer/units"
)

// Pattern is how kernels of a class of ops go through memory: up to a fraction of the bandwidth,
// and up to so many elements on each multiprocessor. A kernel that loads one element at a time is
// as slow with elements of 16 bits as with those of 32, and a card with much bandwidth for each
// multiprocessor gets a smaller part of it.
type Pattern struct {
	// Fraction of Params.Bandwidth that is reached at most, (0,1]; 0 stands for 1.
	Fraction float64
	// Elements is how many elements a multiprocessor reads or writes in a nanosecond; 0: no bound.
	Elements float64
	// Wait is the time on top of Params.Ramp in which nothing is read or written: a reduction's
	// threads wait for each other's sums.
	Wait units.Seconds
}

// mostElements bounds Pattern.Elements: more than a multiprocessor has lanes and cycles for.
const mostElements = 1e4

// fraction returns Fraction with its default.
func (p *Pattern) fraction() float64 {
	if p.Fraction == 0 {
		return 1
	}
	return p.Fraction
}

// validate reports every fault of p.
func (p *Pattern) validate() error {
	var errs faults.List
	errs.If(!(p.Fraction >= 0 && p.Fraction <= 1), "fraction is %g, want above 0 and at most 1, or 0 for 1", p.Fraction)
	errs.If(!(p.Elements >= 0 && p.Elements <= mostElements), "%g elements in a nanosecond, want 0 to %g", p.Elements, float64(mostElements))
	errs.If(!(p.Wait >= 0 && p.Wait < 1), "wait is %v, want 0 to 1 s", p.Wait)
	return errors.Join(errs...)
}
