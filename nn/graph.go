package nn

import (
	"fmt"
	"slices"
)

// Node is a value of a Graph: a matrix [n,d], or a vector [d], which is a parameter.
type Node struct {
	name  string // of an input
	shape []int
	param *Param        // if it is one
	input *ProgramInput // if it is data
}

// Shape returns [n,d], or [d] of a vector. It is the node's own.
func (x *Node) Shape() []int { return x.shape }

// size returns the shape as a matrix: a vector is [1,d].
func (x *Node) size() (n, d int) {
	if len(x.shape) == 1 {
		return 1, x.shape[0]
	}
	return x.shape[0], x.shape[1]
}

// Graph is a differentiable computation with fixed shapes over shared
// parameters. Build it, Compile it, then Run it any number of times. A Graph is
// not safe for concurrent use; two graphs over the same parameters may run at
// the same time only if neither run goes backward.
type Graph struct {
	context *Context
	all     []*Node // in the order in which they were added
	params  map[*Param]*Node
	ops     []recorded
	outputs []*Node
	engine  Engine
	trains  bool
}

// recorded is an operation of a graph: each comes after those it reads.
type recorded struct {
	name   string
	kernel Kernel
	in     []*Node
	out    *Node
}

// wanted tells which inputs of o get a gradient: all but data.
func (o recorded) wanted() []bool {
	w := make([]bool, len(o.in))
	for i, x := range o.in {
		w[i] = x.input == nil
	}
	return w
}

// NewGraph returns an empty graph that computes on b.
func NewGraph(b *Backend) *Graph {
	return &Graph{context: NewContext(b), params: map[*Param]*Node{}}
}

func (g *Graph) add(x *Node) *Node {
	g.all = append(g.all, x)
	return x
}

// Input adds a data matrix [n,d], zero until SetInput. No gradient flows into it.
func (g *Graph) Input(name string, n, d int) *Node {
	return g.add(&Node{name: name, shape: []int{n, d}, input: &ProgramInput{Data: NewMat(n, d)}})
}

// SetInput copies m into input x. It panics if the shapes differ.
func (g *Graph) SetInput(x *Node, m Mat) {
	if x.input == nil {
		panic("nn: SetInput of a node that is no input")
	}
	m.want("SetInput", x.input.Data.N, x.input.Data.D)
	if g.context.device != nil && slices.Equal(x.input.Data.V, m.V) {
		return // the device has them
	}
	copy(x.input.Data.V, m.V)
	x.input.Version++
}

// Param returns the node of p, adding it at first use.
func (g *Graph) Param(p *Param) *Node {
	if x, ok := g.params[p]; ok {
		return x
	}
	x := g.add(&Node{shape: p.Shape, param: p})
	g.params[p] = x
	return x
}

// Apply adds an operation with result [n,d]. Inputs made by Input get no
// gradient.
func (g *Graph) Apply(name string, k Kernel, n, d int, in ...*Node) *Node {
	o := recorded{name: name, kernel: k, in: in}
	if !slices.Contains(o.wanted(), true) {
		panic(fmt.Sprintf("nn: operation %s has no differentiable input", name))
	}
	o.out = g.add(&Node{shape: []int{n, d}})
	g.ops = append(g.ops, o)
	return o.out
}

// Objective is a loss over the outputs of a graph. Loss returns its value and
// adds to gradients[i] the gradient with respect to outputs[i].
type Objective interface {
	Loss(c *Context, outputs, gradients []Mat) float64
}

// Compile ends the building of the graph. outputs are the matrices that Output
// returns. With train, the backward pass is derived for objectives over them;
// without, only Run(nil) is allowed, less memory is used, and what no output
// depends on is left out. After Compile the graph must not be added to.
func (g *Graph) Compile(train bool, outputs ...*Node) (err error) {
	g.outputs, g.trains = outputs, train
	if !train {
		g.prune()
	}
	if d := g.context.device; d != nil {
		p, err := g.program(train)
		if err != nil {
			return err
		}
		g.engine, err = d.Compile(p)
		return err
	}
	g.context.training = train
	g.engine, err = compile(g)
	return err
}

// prune leaves out the operations and the nodes that no output depends on.
func (g *Graph) prune() {
	needed := map[*Node]bool{}
	for _, x := range g.outputs {
		needed[x] = true
	}
	for _, o := range slices.Backward(g.ops) {
		if needed[o.out] {
			for _, x := range o.in {
				needed[x] = true
			}
		}
	}
	g.ops = slices.DeleteFunc(g.ops, func(o recorded) bool { return !needed[o.out] })
	g.all = slices.DeleteFunc(g.all, func(x *Node) bool { return !needed[x] })
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
	return g.engine.Run(objective)
}

// Output returns output i of the last run. The next run overwrites it.
func (g *Graph) Output(i int) Mat { return g.engine.Output(i) }
