package nn

import "placer/nn/vec"

// tape is a graph as the list of its operations. They run in the order in which they
// were recorded and, for the gradients, in the reverse of it: reverse accumulation
// (Griewank and Walther, Evaluating Derivatives, 2008, section 3.2).
type tape struct {
	context    *Context
	operations []operation
	outputs    []Mat
	// Empty unless the graph trains:
	adjoints  []adjoint
	gradients []Mat // of outputs
	totals    []total
}

// operation is one forward.
type operation struct {
	kernel Kernel
	in     []Mat
	out    Mat
}

// adjoint is an operation backward. It writes the gradients din of what the operation
// read, and adds those that are not the first of their value.
type adjoint struct {
	*operation
	grad Mat   // of out
	din  []Mat // without elements where no gradient is wanted
	sums []sum
}

// sum adds from to to.
type sum struct{ to, from Mat }

// total is the gradient of a parameter in one run.
type total struct {
	param    *Param
	gradient Mat
}

func newTape(g *Graph) (*tape, error) {
	r := recording{graph: g, results: map[*Node]*lifetime{}, gradients: map[*Node]*lifetime{}}
	r.forward()
	if g.trains {
		if err := r.backward(); err != nil {
			return nil, err
		}
	}
	assign(r.lives)
	return r.tape(), nil
}

// Run is as Graph.Run says.
func (t *tape) Run(objective Objective) (float64, error) {
	for i := range t.operations {
		o := &t.operations[i]
		o.kernel.Forward(t.context, o.in, o.out)
	}
	if objective == nil {
		return 0, nil
	}
	for _, m := range t.gradients {
		clear(m.V)
	}
	loss := objective.Loss(t.context, t.outputs, t.gradients)
	for i := range t.adjoints {
		a := &t.adjoints[i]
		a.kernel.Backward(t.context, a.in, a.out, a.grad, a.din)
		for _, s := range a.sums {
			vec.Add(s.to.V, s.to.V, s.from.V)
		}
	}
	for _, x := range t.totals {
		vec.Add(x.param.Grad, x.param.Grad, x.gradient.V)
	}
	return loss, nil
}

// Output returns output i of the last run.
func (t *tape) Output(i int) Mat { return t.outputs[i] }

// Close does nothing: what the tape holds is the collector's.
func (t *tape) Close() error { return nil }
