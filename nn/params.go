package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Param is one weight tensor with its gradient.
type Param struct {
	Name  string
	Shape []int     // [d] or [rows,columns]
	Value []float32 // row-major
	Grad  []float32 // the sum over runs since ZeroGrad
	// Rate is this parameter's factor of the learning rate; 0 means 1.
	Rate float64
}

// Params is an ordered set of named weights. Graphs read the same memory, so
// they must not run while the weights change.
type Params struct {
	list   []*Param
	byName map[string]*Param
	limit  *limit // nil but in Measure
}

// limit is how many weights may still be added, and is thrown where more are.
type limit struct{ left int }

// Measure returns how many weights build adds to a set, and false where they are more than
// most. It claims no memory for them: their values are empty, and build ends with the first
// parameter that is too much, so that sizes from a file can be held against its length.
func Measure(most int, build func(ps *Params)) (n int, ok bool) {
	l := &limit{most}
	defer func() {
		if x := recover(); x == l {
			n, ok = 0, false
		} else if x != nil {
			panic(x)
		}
	}()
	build(&Params{byName: map[string]*Param{}, limit: l})
	return most - l.left, true
}

// take counts a parameter.
func (l *limit) take(shape []int) {
	n := 1
	for _, s := range shape {
		if s < 1 || s > l.left/n { // below 1 is a product that overflowed
			panic(l)
		}
		n *= s
	}
	l.left -= n
}

// NewParams returns an empty set.
func NewParams() *Params { return &Params{byName: map[string]*Param{}} }

// All returns the parameters in the order of their creation.
func (p *Params) All() []*Param { return p.list }

// Lookup returns the parameter called name, or nil.
func (p *Params) Lookup(name string) *Param { return p.byName[name] }

// Named returns the parameters whose names begin with one of prefixes, as a set of their
// own over the same weights.
func (p *Params) Named(prefixes ...string) *Params {
	some := NewParams()
	for _, q := range p.list {
		if slices.ContainsFunc(prefixes, func(x string) bool { return strings.HasPrefix(q.Name, x) }) {
			some.list = append(some.list, q)
			some.byName[q.Name] = q
		}
	}
	return some
}

// Count returns the number of weights.
func (p *Params) Count() (n int) {
	for _, q := range p.list {
		n += len(q.Value)
	}
	return n
}

// ZeroGrad clears all gradients.
func (p *Params) ZeroGrad() {
	for _, q := range p.list {
		clear(q.Grad)
	}
}

func (p *Params) add(name string, shape ...int) *Param {
	if p.byName[name] != nil {
		panic(fmt.Sprintf("nn: parameter %q exists", name))
	}
	if p.limit != nil {
		p.limit.take(shape)
		return &Param{Name: name, Shape: shape}
	}
	n := 1
	for _, s := range shape {
		if s < 1 {
			panic(fmt.Sprintf("nn: parameter %q has shape %v", name, shape))
		}
		n *= s
	}
	q := &Param{Name: name, Shape: shape, Value: make([]float32, n), Grad: make([]float32, n)}
	p.list = append(p.list, q)
	p.byName[name] = q
	return q
}

// Constant adds a parameter whose elements are all v. It panics if the name is
// taken, as the other constructors do.
func (p *Params) Constant(name string, v float32, shape ...int) *Param {
	q := p.add(name, shape...)
	for i := range q.Value {
		q.Value[i] = v
	}
	return q
}

// Glorot adds a weight matrix [rows,columns], uniform in ±sqrt(6/(rows+columns))
// (Glorot and Bengio, 2010).
func (p *Params) Glorot(name string, r *rand.Rand, rows, columns int) *Param {
	q := p.add(name, rows, columns)
	s := float32(math.Sqrt(6 / float64(rows+columns)))
	for i := range q.Value {
		q.Value[i] = (2*r.Float32() - 1) * s
	}
	return q
}

// Normal adds a matrix [rows,columns] of normal numbers with deviation s.
func (p *Params) Normal(name string, r *rand.Rand, s float64, rows, columns int) *Param {
	q := p.add(name, rows, columns)
	for i := range q.Value {
		q.Value[i] = float32(r.NormFloat64() * s)
	}
	return q
}

// Remove deletes a parameter, such as the per-instance logits of a graph no longer
// worked on. Compiled graphs that use it keep it alive but no longer train it, and so does
// an optimiser until Adam.Forget.
func (p *Params) Remove(name string) {
	delete(p.byName, name)
	for i, q := range p.list {
		if q.Name == name {
			p.list = append(p.list[:i:i], p.list[i+1:]...)
			return
		}
	}
}
