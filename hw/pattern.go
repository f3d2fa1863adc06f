package hw

import (
	"encoding/json"

	"placer/units"
)

// PatternConstants describe how kernels of a class of ops go through memory; roofline.Pattern says
// what they mean. A file has the fraction alone as a number, more as an object.
type PatternConstants struct {
	// Fraction of MemoryConstants.Bandwidth that is reached at most, (0,1].
	Fraction float64
	// Elements is how many elements a multiprocessor reads or writes in a nanosecond; 0: no
	// bound.
	Elements float64
	// Wait is time on top of MemoryConstants.Ramp.
	Wait units.Seconds
}

// patternJSON is PatternConstants as an object of a file.
type patternJSON struct {
	Fraction float64       `json:"fraction"`
	Elements float64       `json:"elements_per_ns,omitempty"`
	Wait     units.Seconds `json:"wait,omitempty"`
}

// MarshalJSON writes a number where p is a fraction alone.
func (p PatternConstants) MarshalJSON() ([]byte, error) {
	if p.Elements == 0 && p.Wait == 0 {
		return json.Marshal(p.Fraction)
	}
	return json.Marshal(patternJSON(p))
}

func (p PatternConstants) hash(d digest) {
	d.number(p.Fraction)
	if p.Elements > 0 {
		d.text("elements")
		d.number(p.Elements)
	}
	if p.Wait > 0 {
		d.text("wait")
		d.number(float64(p.Wait))
	}
}

// mostElements bounds PatternConstants.Elements.
const mostElements = 1e4

// pattern reads a fraction, or an object with one.
func (f *jsonFile) pattern(v *jsonValue) (p PatternConstants) {
	if v.kind == 'n' {
		return PatternConstants{Fraction: f.fraction(v)}
	}
	if !f.object(v, []string{"fraction"}, []string{"elements_per_ns", "wait"}) {
		return p
	}
	p.Fraction = f.fraction(v.member("fraction"))
	if x := v.member("elements_per_ns"); x != nil {
		p.Elements = f.number(x, 0, mostElements)
	}
	if x := v.member("wait"); x != nil {
		p.Wait = f.moment(x)
	}
	return p
}
