package nn

import (
	"fmt"

	"placer/nn/vec"
)

// Device runs compiled graphs and the optimiser's arithmetic elsewhere than in
// this package, such as on a GPU, and keeps the parameters there: while it holds
// one, the host's Value and Grad are out of date until Fetch. One Device may
// serve several networks.
type Device interface {
	Name() string
	// Compile prepares p. The error says which operation the device lacks.
	Compile(p *Program) (Engine, error)
	// Squares returns the sum of the squares of the gradients of ps.
	Squares(ps []*Param) (float64, error)
	// Step moves the parameters along their gradients, as vec.Adam does, and clears
	// the gradients.
	Step(steps []DeviceStep) error
	// Clear clears the gradients of ps.
	Clear(ps []*Param) error
	// Fetch copies values, gradients and moments to the host and gives them up: the
	// next use takes the host's.
	Fetch(ps []*Param) error
	// Release is Fetch, and forgets ps.
	Release(ps []*Param) error
}

// DeviceStep is one parameter's optimiser step. M and V are its moments, which
// the device keeps as it does the value.
type DeviceStep struct {
	Param     *Param
	M, V      []float32
	Constants vec.AdamConstants
}

// Engine is a graph on a Device.
type Engine interface {
	// Run is as Graph.Run says.
	Run(o Objective) (float64, error)
	// Output returns output i of the last run, on the host.
	Output(i int) Mat
	// Close frees what the engine holds.
	Close() error
}

// Program is a graph as a list of operations, each after those it reads.
type Program struct {
	Values  []ProgramValue
	Ops     []ProgramOp
	Outputs []int // indices of Values
	Train   bool
	// Context is for objectives that a device has evaluated on the host.
	Context *Context
}

// ProgramValue is a matrix [N,D] of a Program: a parameter, an input, or the
// result of an operation.
type ProgramValue struct {
	N, D  int
	Param *Param
	Input *ProgramInput
}

// ProgramInput is the data of an input. Version rises when they change.
type ProgramInput struct {
	Data    Mat
	Version int
}

// ProgramOp is an operation: one of the types below, or one of the same kind
// from the package that owns the operation.
type ProgramOp struct {
	Op  any
	In  []int
	Out int
}

// described is a Kernel that a Device may run in its own way. Describe returns
// what the operation is; pointers in it are read at each run.
type described interface{ Describe() any }

// The operations of this package as a Program has them; see the methods of Graph
// that make them. Inputs are in the order of the arguments, LinearOp's xs, ws, b
// and NormOp's xs, gain, bias.
type (
	LinearOp struct {
		Activation Activation
		Pairs      int
	}
	NormOp        struct{}
	MulOp         struct{}
	AddRepeatedOp struct{}
	EmbeddingOp   struct{ Index *[]int32 }
	MaskOp        struct{ Allowed *[]bool }
	ConcatOp      struct{}
	ReshapeOp     struct{}
	MeanRowsOp    struct {
		Bounds *[]int32
		Stop   bool
	}
)

// Describe is as described says.
func (l *linear) Describe() any { return LinearOp{l.activation, l.pairs} }

// Describe is as described says.
func (k *norm) Describe() any { return NormOp{} }

// Describe is as described says.
func (mul) Describe() any { return MulOp{} }

// Describe is as described says.
func (addRepeated) Describe() any { return AddRepeatedOp{} }

// Describe is as described says.
func (k *embedding) Describe() any { return EmbeddingOp{k.index} }

// Describe is as described says.
func (k *mask) Describe() any { return MaskOp{k.allowed} }

// Describe is as described says.
func (concat) Describe() any { return ConcatOp{} }

// Describe is as described says.
func (reshape) Describe() any { return ReshapeOp{} }

// Describe is as described says.
func (k *meanRows) Describe() any { return MeanRowsOp{k.bounds, k.stop} }

// program lists the graph's operations.
func (g *Graph) program(train bool) (*Program, error) {
	p := &Program{Train: train, Context: g.context}
	index := map[*Node]int{}
	of := func(x *Node) int {
		if i, ok := index[x]; ok {
			return i
		}
		n, d := x.size()
		index[x] = len(p.Values)
		p.Values = append(p.Values, ProgramValue{N: n, D: d, Param: x.param, Input: x.input})
		return index[x]
	}
	for _, x := range g.all { // parameters first
		if x.param != nil {
			of(x)
		}
	}
	for _, o := range g.ops {
		d, ok := o.kernel.(described)
		if !ok {
			return nil, fmt.Errorf("nn: operation %s runs in Go only", o.name)
		}
		op := ProgramOp{Op: d.Describe()}
		for _, x := range o.in {
			op.In = append(op.In, of(x))
		}
		op.Out = of(o.out)
		p.Ops = append(p.Ops, op)
	}
	for _, x := range g.outputs {
		p.Outputs = append(p.Outputs, of(x))
	}
	return p, nil
}
