package sequential

import (
	"math"
	"slices"
)

// feature is a number that the network reads, as a function of facts T. Features
// name no op kind and carry no unit of measure, so they hold for graphs of any
// family and size.
type feature[T any] struct {
	name   string
	common bool // to all units of a graph, or to all devices of a decision
	doc    string
	of     func(*T) float32
}

// What a feature is of: whether it is common.
const (
	ofUnit     = false
	ofGraph    = true
	ofDevice   = false
	ofDecision = true
)

// column is a feature's place in a row.
type column[T any] struct {
	at int
	of func(*T) float32
}

// rows writes the features of several x, row by row, in the order of a table.
type rows[T any] struct {
	own, common []column[T]
}

func rowsOf[T any](table []feature[T]) (w rows[T]) {
	for i, f := range table {
		if c := (column[T]{i, f.of}); f.common {
			w.common = append(w.common, c)
		} else {
			w.own = append(w.own, c)
		}
	}
	return w
}

// first writes the row of x, the first of to.
func (w *rows[T]) first(x *T, to []float32) {
	for _, c := range w.common {
		to[c.at] = c.of(x)
	}
	w.next(x, to, to)
}

// next writes the row of x behind another, before, of the same graph or decision.
func (w *rows[T]) next(x *T, before, to []float32) {
	for _, c := range w.own {
		to[c.at] = c.of(x)
	}
	for _, c := range w.common {
		to[c.at] = before[c.at]
	}
}

// indexOf returns the position of a feature in its table.
func indexOf[T any](table []feature[T], name string) int {
	return slices.IndexFunc(table, func(f feature[T]) bool { return f.name == name })
}

// widest bounds squashed features.
const widest = 5

// squash keeps the order of x and its scale near 0, and grows like a root, up to widest.
func squash(x float64) float32 {
	return float32(math.Copysign(min(math.Sqrt(1+2*math.Abs(x))-1, widest), x))
}

// indicator is 1 for true and 0 for false, without a branch that could be predicted wrongly.
func indicator(b bool) float32 {
	x := int32(0)
	if b {
		x = 1
	}
	return float32(x)
}
