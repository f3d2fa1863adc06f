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

// Node is a value of a Graph: a matrix [N,D].
type Node = gorgonia.Node

// Graph is a differentiable computation with fixed shapes over shared
// parameters. Build it, Compile it, then Run it any number of times. A Graph is
// not safe for concurrent use; two graphs over the same parameters may run at
// the same time only if neither run goes backward.
type Graph struct {
	context *Context
	expr    *gorgonia.ExprGraph
	ids     uint64
	params  []*Param
	nodes   map[*Param]*Node
	inputs  map[*Node]*ProgramInput
	ops     []recorded
	engine  Engine // if the graph runs on a device
	trains  bool
	outputs []*Node
	grads   gorgonia.Nodes
	vm      gorgonia.VM
	loss    *lossKernel
	slots   []*slot // memory of all operations' results

	forwardOnly bool // in this run
	position    int  // of the operation that runs
}

// building guards gorgonia while a graph grows or is compiled: its nodes, types and the
// derivation come from pools of the whole process, which it does not say goroutines may use
// at once, so no owner but the process can hold the lock. Runs do not take it.
var building sync.Mutex

// NewGraph returns an empty graph that computes on b.
func NewGraph(b *Backend) *Graph {
	return &Graph{context: NewContext(b), expr: gorgonia.NewGraph(), nodes: map[*Param]*Node{}, inputs: map[*Node]*ProgramInput{}}
}

func (g *Graph) nextID() uint64 {
	g.ids++
	return g.ids
}

// Input adds a data matrix [n,d], zero until SetInput. No gradient flows into it.
func (g *Graph) Input(name string, n, d int) *Node {
	building.Lock()
	defer building.Unlock()
	m := NewMat(n, d)
	t := tensor.New(tensor.WithShape(n, d), tensor.WithBacking(m.V))
	// Equal names and shapes would make gorgonia merge the nodes.
	x := gorgonia.NewMatrix(g.expr, tensor.Float32, gorgonia.WithShape(n, d), gorgonia.WithName(fmt.Sprintf("in%d.%s", g.nextID(), name)), gorgonia.WithValue(t))
	g.inputs[x] = &ProgramInput{Data: m}
	return x
}

// SetInput copies m into input x. It panics if the shapes differ.
func (g *Graph) SetInput(x *Node, m Mat) {
	to, ok := g.inputs[x]
	if !ok {
		panic("nn: SetInput of a node that is no input")
	}
	m.want("SetInput", to.Data.N, to.Data.D)
	if g.engine != nil && slices.Equal(to.Data.V, m.V) {
		return // the device has them
	}
	copy(to.Data.V, m.V)
	to.Version++
}

// Param returns the node of p, adding it at first use.
func (g *Graph) Param(p *Param) *Node {
	if x, ok := g.nodes[p]; ok {
		return x
	}
	building.Lock()
	defer building.Unlock()
	x := gorgonia.NewTensor(g.expr, tensor.Float32, len(p.Shape), gorgonia.WithShape(p.Shape...), gorgonia.WithName("w."+p.Name), gorgonia.WithValue(p.dense))
	g.nodes[p] = x
	g.params = append(g.params, p)
	return x
}

// Apply adds an operation with result [n,d]. Inputs made by Input get no
// gradient.
func (g *Graph) Apply(name string, k Kernel, n, d int, in ...*Node) *Node {
	x := g.apply(name, k, tensor.Shape{n, d}, in)
	g.ops = append(g.ops, recorded{name, k, in, x})
	return x
}

func (g *Graph) apply(name string, k Kernel, shape tensor.Shape, in []*Node) *Node {
	o := &fused{opBase: opBase{name: name, id: g.nextID(), rank: len(shape)}, graph: g, kernel: k, out: buffer{shape: shape}}
	any := false
	for _, x := range in {
		_, data := g.inputs[x]
		o.ranks = append(o.ranks, x.Shape().Dims())
		o.wanted = append(o.wanted, !data)
		any = any || !data
	}
	if !any {
		panic(fmt.Sprintf("nn: operation %s has no differentiable input", name))
	}
	building.Lock()
	defer building.Unlock()
	// ApplyOp fails only on types and shapes, which the constructors check.
	return gorgonia.Must(gorgonia.ApplyOp(o, in...))
}

// Objective is a loss over the outputs of a graph. Loss returns its value and
// adds to gradients[i] the gradient with respect to outputs[i].
type Objective interface {
	Loss(c *Context, outputs, gradients []Mat) float64
}

// Compile ends the building of the graph. outputs are the matrices that Output
// returns. With train, the backward pass is derived for objectives over them;
// without, only Run(nil) is allowed and less memory is used. After Compile the
// graph must not be added to.
func (g *Graph) Compile(train bool, outputs ...*Node) error {
	g.outputs, g.trains = outputs, train
	if d := g.context.device; d != nil {
		p, err := g.program(train)
		if err != nil {
			return err
		}
		g.engine, err = d.Compile(p)
		return err
	}
	var loss *Node
	if train {
		g.loss = &lossKernel{graph: g}
		loss = g.apply("loss", g.loss, tensor.ScalarShape(), outputs)
	}
	building.Lock()
	defer building.Unlock()
	if train {
		var ws gorgonia.Nodes
		for _, p := range g.params {
			ws = append(ws, g.nodes[p])
		}
		var err error
		if g.grads, err = gorgonia.Grad(loss, ws...); err != nil {
			return fmt.Errorf("nn: deriving the backward pass: %w", err)
		}
	}
	g.context.training = train
	if err := g.layOut(); err != nil {
		return err
	}
	g.vm = gorgonia.NewTapeMachine(g.expr)
	// Its finalizer is for CUDA builds. The machine lies on a cycle, so with one it
	// would never be freed, nor the graph and its values.
	runtime.SetFinalizer(g.vm, nil)
	return nil
}

// Trains reports whether the graph was compiled with a backward pass.
func (g *Graph) Trains() bool { return g.trains }

// Close frees what the graph holds on a device.
func (g *Graph) Close() error {
	if g.engine == nil {
		return nil
	}
	return g.engine.Close()
}

// Run computes the outputs. With an objective it also computes the loss and adds
// the gradient of the loss to the Grad of every parameter of the graph.
func (g *Graph) Run(objective Objective) (float64, error) {
	if objective != nil && !g.trains {
		panic("nn: Run with an objective on a graph compiled without training")
	}
	if g.engine != nil {
		return g.engine.Run(objective)
	}
	g.forwardOnly = objective == nil
	if g.loss != nil {
		g.loss.objective = objective
		defer func() { g.loss.objective = nil }()
	}
	g.position = -1
	g.vm.Reset()
	if err := g.vm.RunAll(); err != nil {
		return 0, fmt.Errorf("nn: run: %w", err)
	}
	if objective == nil {
		return 0, nil
	}
	for i, p := range g.params {
		vec.Add(p.Grad, p.Grad, matOf(g.grads[i].Value()).V)
	}
	return g.loss.value, nil
}

// Output returns output i of the last run. The next run overwrites it.
func (g *Graph) Output(i int) Mat {
	if g.engine != nil {
		return g.engine.Output(i)
	}
	return matOf(g.outputs[i].Value())
}

// lossKernel evaluates the objective of the current run. It computes loss and
// gradients at once, and hands the gradients out when asked.
type lossKernel struct {
	graph     *Graph
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
