package nn

import "fmt"

// Masked is the logit of a forbidden choice: exp(Masked - x) is exactly 0 for
// any ordinary logit x, and finite arithmetic stays finite.
const Masked = -1e9

// Mask returns x [R,D] with Masked where allowed is false; no gradient passes
// there. allowed is read at each run: nil allows everything, else it is [D] or
// [n,D] with R a multiple of n, row r using row r mod n.
func (g *Graph) Mask(x *Node, allowed *[]bool) *Node {
	s := x.Shape()
	return g.Apply("mask", &mask{allowed}, s[0], s[1], x)
}

type mask struct{ allowed *[]bool }

// CheckMask reports whether allowed fits logits [n,d], or stacked copies of
// them, and leaves every row a choice.
func CheckMask(allowed []bool, n, d int) error {
	if allowed == nil {
		return nil
	}
	if len(allowed) != d && len(allowed) != n*d {
		return fmt.Errorf("mask has %d entries, want %d or %d", len(allowed), d, n*d)
	}
	for r := 0; r < len(allowed); r += d {
		any := false
		for _, ok := range allowed[r : r+d] {
			any = any || ok
		}
		if !any {
			return fmt.Errorf("mask leaves row %d no choice", r/d)
		}
	}
	return nil
}

func (k *mask) apply(src, dst Mat, forbidden float32) {
	copy(dst.V, src.V)
	a := *k.allowed
	if len(a) == 0 {
		return
	}
	if len(a)%dst.D != 0 || len(dst.V)%len(a) != 0 {
		panic(fmt.Sprintf("nn: mask of %d entries for %s", len(a), dst))
	}
	for lo := 0; lo < len(dst.V); lo += len(a) {
		for i, ok := range a {
			if !ok {
				dst.V[lo+i] = forbidden
			}
		}
	}
}

func (k *mask) Forward(_ *Context, in []Mat, out Mat)                { k.apply(in[0], out, Masked) }
func (k *mask) Backward(_ *Context, _ []Mat, _, grad Mat, din []Mat) { k.apply(grad, din[0], 0) }
