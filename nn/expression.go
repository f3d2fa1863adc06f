//go:build !light

package nn

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	// gorgonia stops at start unless this module knows the Go version.
	_ "go4.org/unsafe/assume-no-moving-gc"

	"placer/nn/vec"
)

// compile returns g as the program runs it where no device does.
func compile(g *Graph) (Engine, error) { return newExpression(g) }

// expression is a graph as gorgonia's: it orders the operations and derives the
// backward pass, which [tape] does for a program without gorgonia.
type expression struct {
	context *Context
	expr    *gorgonia.ExprGraph
	nodes   map[*Node]*gorgonia.Node
	ids     uint64
	params  []*Param
	grads   gorgonia.Nodes // of params
	outputs gorgonia.Nodes
	loss    *lossKernel // if the graph trains
	vm      gorgonia.VM
	slots   []*slot // memory of all operations' results

	forwardOnly bool // in this run
	position    int  // of the operation that runs
}

// building guards gorgonia while a graph grows or is compiled: its nodes, types and the
// derivation come from pools of the whole process, which it does not say goroutines may use
// at once, so no owner but the process can hold the lock. Runs do not take it.
var building sync.Mutex

func newExpression(g *Graph) (*expression, error) {
	building.Lock()
	defer building.Unlock()
	e := &expression{context: g.context, expr: gorgonia.NewGraph(), nodes: map[*Node]*gorgonia.Node{}}
	made := map[*Node]recorded{}
	for _, o := range g.ops {
		made[o.out] = o
	}
	for _, x := range g.all {
		e.nodes[x] = e.node(x, made)
	}
	for _, x := range g.outputs {
		e.outputs = append(e.outputs, e.nodes[x])
	}
	if g.trains {
		if err := e.derive(g); err != nil {
			return nil, fmt.Errorf("nn: deriving the backward pass: %w", err)
		}
	}
	if err := e.layOut(); err != nil {
		return nil, err
	}
	e.vm = gorgonia.NewTapeMachine(e.expr)
	// Its finalizer is for CUDA builds. The machine lies on a cycle, so with one it
	// would never be freed, nor the graph and its values.
	runtime.SetFinalizer(e.vm, nil)
	return e, nil
}

func (e *expression) nextID() uint64 {
	e.ids++
	return e.ids
}

// node adds x, whose inputs were added before, to the expression.
func (e *expression) node(x *Node, made map[*Node]recorded) *gorgonia.Node {
	o, ok := made[x]
	if ok {
		var in gorgonia.Nodes
		for _, y := range o.in {
			in = append(in, e.nodes[y])
		}
		return e.apply(o.name, o.kernel, x.shape, o.wanted(), in)
	}
	name, values := "", []float32(nil)
	if x.param != nil {
		name, values = "w."+x.param.Name, x.param.Value
	} else {
		// Equal names and shapes would make gorgonia merge the nodes.
		name, values = fmt.Sprintf("in%d.%s", e.nextID(), x.name), x.input.Data.V
	}
	t := tensor.New(tensor.WithShape(x.shape...), tensor.WithBacking(values))
	return gorgonia.NewTensor(e.expr, tensor.Float32, len(x.shape), gorgonia.WithShape(x.shape...), gorgonia.WithName(name), gorgonia.WithValue(t))
}

func (e *expression) apply(name string, k Kernel, shape tensor.Shape, wanted []bool, in gorgonia.Nodes) *gorgonia.Node {
	o := &fused{opBase: opBase{name: name, id: e.nextID(), rank: len(shape)}, expression: e, kernel: k, shape: shape, wanted: wanted}
	for _, x := range in {
		o.ranks = append(o.ranks, x.Shape().Dims())
	}
	// ApplyOp fails only on types and shapes, which the constructors check.
	x := gorgonia.Must(gorgonia.ApplyOp(o, in...))
	if o.rank > 0 {
		o.out = resultOf(x)
	}
	return x
}

// derive adds the loss and the gradients of the parameters.
func (e *expression) derive(g *Graph) (err error) {
	e.loss = &lossKernel{}
	loss := e.apply("loss", e.loss, tensor.ScalarShape(), recorded{in: g.outputs}.wanted(), e.outputs)
	var ws gorgonia.Nodes
	for _, x := range g.all {
		if x.param != nil {
			e.params = append(e.params, x.param)
			ws = append(ws, e.nodes[x])
		}
	}
	e.grads, err = gorgonia.Grad(loss, ws...)
	return err
}

// layOut gives the buffers of all operations their memory, shared by those whose
// lifetimes do not meet. gorgonia fixes the order of execution when it compiles:
// a stabilised topological sort, which is repeated here; begin checks it.
//
// The result of one of gorgonia's own operations, the sums of gradients, may lie
// in the memory of an operand, so it prolongs the operand's life to its own.
func (e *expression) layOut() error {
	sorted, err := gorgonia.Sort(e.expr)
	if err != nil {
		return fmt.Errorf("nn: sorting operations: %w", err)
	}
	slices.Reverse(sorted)
	position := make(map[*gorgonia.Node]int, len(sorted))
	for i, n := range sorted {
		position[n] = i
	}
	kept := map[*gorgonia.Node]bool{}
	for _, n := range append(append(gorgonia.Nodes{}, e.outputs...), e.grads...) {
		kept[n] = true
	}
	var death func(n *gorgonia.Node) int
	death = func(n *gorgonia.Node) int {
		if kept[n] {
			return forever
		}
		last := position[n]
		for it := e.expr.To(n.ID()); it.Next(); {
			reader := it.Node().(*gorgonia.Node)
			switch reader.Op().(type) {
			case *pick: // takes another buffer of the same operation
			case *fused, *backward:
				last = max(last, position[reader])
			default:
				last = max(last, death(reader))
			}
		}
		return last
	}
	var all []*lifetime
	for i, n := range sorted {
		switch o := n.Op().(type) {
		case *fused:
			o.position = i
			if o.rank > 0 {
				all = append(all, &lifetime{buffer: &o.out.buffer, birth: i, death: death(n)})
			}
		case *backward:
			o.position = i
			all = append(all, &lifetime{buffer: &o.din[o.first].buffer, birth: i, death: death(n)})
		case *pick:
			all = append(all, &lifetime{buffer: &o.of.din[o.index].buffer, birth: o.of.position, death: death(n)})
		}
	}
	e.slots = assign(all)
	return nil
}

// begin panics unless operations run in the order the memory was laid out for.
func (e *expression) begin(position int, name string) {
	if position <= e.position {
		panic(fmt.Sprintf("nn: operation %s at position %d runs after position %d", name, position, e.position))
	}
	e.position = position
}

// Run is as Graph.Run says.
func (e *expression) Run(objective Objective) (float64, error) {
	e.forwardOnly = objective == nil
	if e.loss != nil {
		e.loss.objective = objective
		defer func() { e.loss.objective = nil }()
	}
	e.position = -1
	e.vm.Reset()
	if err := e.vm.RunAll(); err != nil {
		return 0, fmt.Errorf("nn: run: %w", err)
	}
	if objective == nil {
		return 0, nil
	}
	for i, p := range e.params {
		vec.Add(p.Grad, p.Grad, matOf(e.grads[i].Value()).V)
	}
	return e.loss.value, nil
}

// Output returns output i of the last run.
func (e *expression) Output(i int) Mat { return matOf(e.outputs[i].Value()) }

// Close does nothing: what the expression holds is the collector's.
func (e *expression) Close() error { return nil }

// lossKernel evaluates the objective of the current run. It computes loss and
// gradients at once, and hands the gradients out when asked.
type lossKernel struct {
	objective Objective
	value     float64
	gradients []Mat
}

func (k *lossKernel) Forward(c *Context, in []Mat, out Mat) {
	out.V[0] = 0
	if k.objective == nil {
		return
	}
	if k.gradients == nil {
		for _, m := range in {
			k.gradients = append(k.gradients, NewMat(m.N, m.D))
		}
	}
	for _, m := range k.gradients {
		clear(m.V)
	}
	k.value = k.objective.Loss(c, in, k.gradients)
	out.V[0] = float32(k.value)
}

func (k *lossKernel) Backward(_ *Context, _ []Mat, _, grad Mat, din []Mat) {
	for i, d := range din {
		copy(d.V, k.gradients[i].V)
		vec.Scale(d.V, grad.V[0]) // 1, as the loss is the root
	}
}
