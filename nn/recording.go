package nn

import "fmt"

// recording lays out the memory of a tape. Of n operations the i-th is at position i
// forward and 2n-i backward, and the objective at n.
type recording struct {
	graph     *Graph
	lives     []*lifetime
	results   map[*Node]*lifetime
	gradients map[*Node]*lifetime // of results and parameters
	parts     [][]*lifetime       // by operation and input, what it adds to gradients
}

// hold adds a matrix of x's shape.
func (r *recording) hold(x *Node, birth, death int) *lifetime {
	n, d := x.size()
	l := &lifetime{&buffer{n: n, d: d}, birth, death}
	r.lives = append(r.lives, l)
	return l
}

// forward keeps each result until its last reader: in training, the backward pass of
// the operation that made it.
func (r *recording) forward() {
	n := len(r.graph.ops)
	for i, o := range r.graph.ops {
		for _, x := range o.in {
			if l := r.results[x]; l != nil {
				l.death = max(l.death, i)
			}
		}
		l := r.hold(o.out, i, i)
		if r.graph.trains {
			l.death = 2*n - i
		}
		r.results[o.out] = l
	}
	for _, x := range r.graph.outputs {
		if l := r.results[x]; l != nil {
			l.death = forever
		}
	}
}

// backward keeps a gradient from the first of its parts, which it begins with, to the
// backward pass of the operation whose result it is of, or to the end.
func (r *recording) backward() error {
	n := len(r.graph.ops)
	end := map[*Node]int{}
	for _, x := range r.graph.all {
		end[x] = forever
	}
	for i, o := range r.graph.ops {
		end[o.out] = 2*n - i
	}
	for _, x := range r.graph.outputs {
		if r.gradients[x] == nil {
			r.gradients[x] = r.hold(x, n, end[x])
		}
	}
	r.parts = make([][]*lifetime, n)
	for i := n - 1; i >= 0; i-- {
		o := r.graph.ops[i]
		if r.gradients[o.out] == nil {
			continue // no output depends on it
		}
		r.parts[i] = make([]*lifetime, len(o.in))
		for k, wanted := range o.wanted() {
			x, at := o.in[k], 2*n-i
			switch {
			case !wanted:
			case r.gradients[x] == nil:
				r.gradients[x] = r.hold(x, at, end[x])
				r.parts[i][k] = r.gradients[x]
			default:
				r.parts[i][k] = r.hold(x, at, at)
			}
		}
	}
	for _, x := range r.graph.all {
		if x.param != nil && r.gradients[x] == nil {
			return fmt.Errorf("nn: deriving the backward pass: no output depends on parameter %s", x.param.Name)
		}
	}
	return nil
}

// tape returns the operations over the memory that was assigned.
func (r *recording) tape() *tape {
	t := &tape{context: r.graph.context, operations: make([]operation, len(r.graph.ops))}
	for i, o := range r.graph.ops {
		in := make([]Mat, len(o.in))
		for k, x := range o.in {
			in[k] = r.value(x)
		}
		t.operations[i] = operation{o.kernel, in, r.value(o.out)}
	}
	for _, x := range r.graph.outputs {
		t.outputs = append(t.outputs, r.value(x))
		if r.graph.trains {
			t.gradients = append(t.gradients, r.gradients[x].buffer.get())
		}
	}
	for i := len(r.parts) - 1; i >= 0; i-- {
		if r.parts[i] != nil {
			t.adjoints = append(t.adjoints, r.adjoint(i, &t.operations[i]))
		}
	}
	for _, x := range r.graph.all {
		if l := r.gradients[x]; l != nil && x.param != nil {
			t.totals = append(t.totals, total{x.param, l.buffer.get()})
		}
	}
	return t
}

// value returns the matrix that holds x.
func (r *recording) value(x *Node) Mat {
	n, d := x.size()
	switch {
	case x.param != nil:
		return Mat{n, d, x.param.Value}
	case x.input != nil:
		return x.input.Data
	}
	return r.results[x].buffer.get()
}

// adjoint returns operation i backward.
func (r *recording) adjoint(i int, forward *operation) adjoint {
	o := r.graph.ops[i]
	a := adjoint{operation: forward, grad: r.gradients[o.out].buffer.get(), din: make([]Mat, len(o.in))}
	for k, part := range r.parts[i] {
		if part == nil {
			continue
		}
		a.din[k] = part.buffer.get()
		if whole := r.gradients[o.in[k]]; part != whole {
			a.sums = append(a.sums, sum{whole.buffer.get(), a.din[k]})
		}
	}
	return a
}
