package cpsat

import (
	"cmp"
	"slices"
)

// term is a variable times a factor.
type term struct {
	v      Var
	factor int64
}

// Linear is a sum of terms and a constant. A negated literal stands for 1 - v.
type Linear struct {
	terms  []term
	offset int64
}

// Const returns the constant c.
func Const(c int64) Linear { return Linear{offset: c} }

// Of returns the sum of vs.
func Of(vs ...Var) Linear {
	var e Linear
	for _, v := range vs {
		e.terms = append(e.terms, term{v, 1})
	}
	return e
}

// Weighted returns the sum of each variable times its factor.
func Weighted(vs []Var, factors []int64) Linear {
	var e Linear
	for k, v := range vs {
		e.terms = append(e.terms, term{v, factors[k]})
	}
	return e
}

// Plus returns e + f.
func (e Linear) Plus(f Linear) Linear {
	return Linear{append(slices.Clone(e.terms), f.terms...), e.offset + f.offset}
}

// Minus returns e - f.
func (e Linear) Minus(f Linear) Linear { return e.Plus(f.Times(-1)) }

// Times returns c e.
func (e Linear) Times(c int64) Linear {
	f := Linear{slices.Clone(e.terms), c * e.offset}
	for k := range f.terms {
		f.terms[k].factor *= c
	}
	return f
}

// Add returns e + c.
func (e Linear) Add(c int64) Linear { return Linear{e.terms, e.offset + c} }

// merged returns e with every variable once, by ascending number, none negated
// and none with factor 0.
func (e Linear) merged() Linear {
	f := Linear{slices.Clone(e.terms), e.offset}
	for k, t := range f.terms {
		if t.v < 0 {
			f.terms[k] = term{t.v.Not(), -t.factor}
			f.offset += t.factor
		}
	}
	slices.SortStableFunc(f.terms, func(a, b term) int { return cmp.Compare(a.v, b.v) })
	kept := f.terms[:0]
	for _, t := range f.terms {
		if k := len(kept) - 1; k >= 0 && kept[k].v == t.v {
			kept[k].factor += t.factor
		} else {
			kept = append(kept, t)
		}
	}
	f.terms = slices.DeleteFunc(kept, func(t term) bool { return t.factor == 0 })
	return f
}

// shifted returns a bound of the terms where x bounds them and offset.
func shifted(x, offset int64) int64 {
	if x == NoLower || x == NoUpper {
		return x
	}
	return x - offset
}
