package cpsat

import (
	"cmp"
	"slices"
)

// Term is a variable times a factor.
type Term struct {
	Var    Var
	Factor int64
}

// Linear is a sum of terms and a constant. A negated literal stands for 1 - v.
type Linear struct {
	Terms  []Term
	Offset int64
}

// Const returns the constant c.
func Const(c int64) Linear { return Linear{Offset: c} }

// Of returns the sum of vs.
func Of(vs ...Var) Linear {
	var e Linear
	for _, v := range vs {
		e.Terms = append(e.Terms, Term{v, 1})
	}
	return e
}

// Weighted returns the sum of each variable times its factor.
func Weighted(vs []Var, factors []int64) Linear {
	var e Linear
	for k, v := range vs {
		e.Terms = append(e.Terms, Term{v, factors[k]})
	}
	return e
}

// Plus returns e + f.
func (e Linear) Plus(f Linear) Linear {
	return Linear{append(slices.Clone(e.Terms), f.Terms...), e.Offset + f.Offset}
}

// Minus returns e - f.
func (e Linear) Minus(f Linear) Linear { return e.Plus(f.Times(-1)) }

// Times returns c e.
func (e Linear) Times(c int64) Linear {
	f := Linear{slices.Clone(e.Terms), c * e.Offset}
	for k := range f.Terms {
		f.Terms[k].Factor *= c
	}
	return f
}

// Add returns e + c.
func (e Linear) Add(c int64) Linear { return Linear{e.Terms, e.Offset + c} }

// merged returns e with every variable once, by ascending number, none negated
// and none with factor 0.
func (e Linear) merged() Linear {
	f := Linear{slices.Clone(e.Terms), e.Offset}
	for k, t := range f.Terms {
		if t.Var < 0 {
			f.Terms[k] = Term{t.Var.Not(), -t.Factor}
			f.Offset += t.Factor
		}
	}
	slices.SortStableFunc(f.Terms, func(a, b Term) int { return cmp.Compare(a.Var, b.Var) })
	kept := f.Terms[:0]
	for _, t := range f.Terms {
		if k := len(kept) - 1; k >= 0 && kept[k].Var == t.Var {
			kept[k].Factor += t.Factor
		} else {
			kept = append(kept, t)
		}
	}
	f.Terms = slices.DeleteFunc(kept, func(t Term) bool { return t.Factor == 0 })
	return f
}

// shifted returns a bound of the terms where x bounds them and offset.
func shifted(x, offset int64) int64 {
	if x == NoLower || x == NoUpper {
		return x
	}
	return x - offset
}
