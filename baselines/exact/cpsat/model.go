package cpsat

import (
	"fmt"
	"math"
)

// Var is a variable of a Model, or the negation of one of 0 or 1.
type Var int32

// Not returns the negation of v, which must be of 0 or 1.
func (v Var) Not() Var { return -v - 1 }

// Interval is a stretch of time of a Model: a start, a size and an end, which may
// depend on a literal for being there at all.
type Interval int32

// Domain bounds of a constraint that is open on one side.
const (
	NoLower = math.MinInt64
	NoUpper = math.MaxInt64
)

// Model is a problem for the solver. The zero Model is empty and ready to use.
// Constraints that name literals in onlyIf hold only where all of those are 1.
type Model struct {
	variables   []variable
	constraints []constraint
	objective   *Linear
	hintVars    []Var
	hintValues  []int64
	err         error
}

type variable struct{ low, high int64 }

// constraint is one constraint of the wire format: the field that its kind has
// there, and the kind's message.
type constraint struct {
	field  int
	onlyIf []Var
	body   []byte
}

// NumVars returns the number of variables so far.
func (m *Model) NumVars() int { return len(m.variables) }

// NumConstraints returns the number of constraints so far, intervals included.
func (m *Model) NumConstraints() int { return len(m.constraints) }

// Int adds an integer variable of low..high.
func (m *Model) Int(low, high int64) Var {
	if low > high {
		m.fail("variable %d has the empty domain %d..%d", len(m.variables), low, high)
	}
	m.variables = append(m.variables, variable{low, high})
	return Var(len(m.variables) - 1)
}

// Bool adds a variable of 0 or 1, a literal.
func (m *Model) Bool() Var { return m.Int(0, 1) }

// Bools adds n literals.
func (m *Model) Bools(n int) []Var {
	vs := make([]Var, n)
	for k := range vs {
		vs[k] = m.Bool()
	}
	return vs
}

// Between demands low <= e <= high; NoLower and NoUpper leave a side open.
func (m *Model) Between(low int64, e Linear, high int64, onlyIf ...Var) {
	m.add(fieldLinear, onlyIf, linearConstraint(e, shifted(low, e.offset), shifted(high, e.offset)))
}

// AtMost demands a <= b.
func (m *Model) AtMost(a, b Linear, onlyIf ...Var) { m.Between(NoLower, a.Minus(b), 0, onlyIf...) }

// Equal demands a == b.
func (m *Model) Equal(a, b Linear, onlyIf ...Var) { m.Between(0, a.Minus(b), 0, onlyIf...) }

// Or demands that one of the literals at least is 1.
func (m *Model) Or(literals []Var, onlyIf ...Var) { m.add(fieldBoolOr, onlyIf, literalList(literals)) }

// ExactlyOne demands that one of the literals is 1 and the others 0.
func (m *Model) ExactlyOne(literals ...Var) { m.add(fieldExactlyOne, nil, literalList(literals)) }

// Max demands that target is the largest of es.
func (m *Model) Max(target Linear, es ...Linear) { m.add(fieldLinMax, nil, linMax(target, es)) }

// Interval adds an interval with start + size == end and size >= 0, there only
// where all the literals of onlyIf are 1. Each of the three depends on at most
// one variable.
func (m *Model) Interval(start, size, end Linear, onlyIf ...Var) Interval {
	for _, e := range []Linear{start, size, end} {
		if len(e.merged().terms) > 1 {
			m.fail("interval %d: %d variables in one of its ends, want at most one", len(m.constraints), len(e.terms))
		}
	}
	// The solver keeps start + size == end by itself only where that is also said
	// as a constraint.
	m.Equal(start.Plus(size), end, onlyIf...)
	m.add(fieldInterval, onlyIf, interval(start, size, end))
	return Interval(len(m.constraints) - 1)
}

// NoOverlap demands that no two of the intervals that are there overlap. Those
// of size 0 may lie on the border of others.
func (m *Model) NoOverlap(xs ...Interval) { m.add(fieldNoOverlap, nil, intervalList(xs)) }

// Minimize makes e the objective.
func (m *Model) Minimize(e Linear) {
	e = e.merged()
	m.objective = &e
}

// Hint tells the solver a value from which to start; a later one for the same
// variable is ignored.
func (m *Model) Hint(v Var, value int64) {
	if v < 0 {
		v, value = v.Not(), 1-value
	}
	for _, w := range m.hintVars {
		if w == v {
			return
		}
	}
	m.hintVars, m.hintValues = append(m.hintVars, v), append(m.hintValues, value)
}

// Err returns the first fault of the model as built, or nil.
func (m *Model) Err() error { return m.err }

func (m *Model) add(field int, onlyIf []Var, body []byte) {
	m.constraints = append(m.constraints, constraint{field, onlyIf, body})
}

func (m *Model) fail(format string, a ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("cpsat: "+format, a...)
	}
}
