package device

import (
	"fmt"
	"math"

	"placer/graphsage"
	"placer/hw/gpu"
	"placer/nn"
	"placer/transformerxl"
)

// engine is a program on a device.
type engine struct {
	d       *Device
	program *nn.Program
	values  []gpu.Ptr // of every value that is no parameter
	grads   []gpu.Ptr // the same of the gradients, which share memory
	written []bool    // gradients that hold something in this run
	inputs  []int     // versions of the inputs that are on the device
	ops     []op
	owned   []*room
	pool    map[int][]gpu.Ptr // free gradients by elements
	out     []nn.Mat          // outputs on the host
	fresh   bool              // they are of the last run
}

// op is an operation of an engine.
type op interface {
	forward(e *engine, in []mat, out mat)
	// backward adds to the gradients of in, from that of out, grad.
	backward(e *engine, in []mat, out mat, grad gpu.Ptr)
}

// mat is a matrix [n,d] on the device, value number index of the program.
type mat struct {
	gpu.Ptr
	index, n, d int
}

func (m mat) size() int { return m.n * m.d }

// Compile is as nn.Device says.
func (d *Device) Compile(p *nn.Program) (_ nn.Engine, err error) {
	defer d.leave(&err)
	d.enter()
	for _, v := range p.Values {
		if err := fits(v.N, v.D); err != nil {
			return nil, err
		}
	}
	for _, o := range p.Ops {
		if a, ok := o.Op.(transformerxl.AttentionOp); ok {
			if err := fits(p.Values[o.Out].N, 3*a.Heads*a.Width); err != nil {
				return nil, err
			}
		}
	}
	n := len(p.Values)
	e := &engine{d: d, program: p, values: make([]gpu.Ptr, n), grads: make([]gpu.Ptr, n), written: make([]bool, n), inputs: make([]int, n), pool: map[int][]gpu.Ptr{}}
	for i, v := range p.Values {
		if v.Param == nil {
			e.values[i] = e.own(4 * v.N * v.D)
			e.inputs[i] = -1
		}
	}
	for _, o := range p.Ops {
		x, err := newOp(o.Op)
		if err != nil {
			e.close()
			return nil, err
		}
		e.ops = append(e.ops, x)
	}
	if p.Train {
		e.layOut()
	}
	for _, i := range p.Outputs {
		e.out = append(e.out, nn.NewMat(p.Values[i].N, p.Values[i].D))
	}
	if d.err != nil {
		first := d.err
		d.err = nil
		e.close()
		d.err = first
	}
	return e, nil
}

// fits reports a matrix that the kernels' indices of 32 bits do not reach.
func fits(rows, columns int) error {
	if uint64(rows)*uint64(columns) > math.MaxUint32 {
		return fmt.Errorf("policy: a matrix of %d rows and %d columns is too large for its kernels", rows, columns)
	}
	return nil
}

// newOp returns what runs an operation of a program.
func newOp(o any) (op, error) {
	switch o := o.(type) {
	case nn.LinearOp:
		return linear(o), nil
	case nn.NormOp:
		return &layerNorm{}, nil
	case nn.MulOp:
		return mul{}, nil
	case nn.AddRepeatedOp:
		return addRepeated{}, nil
	case nn.EmbeddingOp:
		return &embedding{EmbeddingOp: o}, nil
	case nn.MaskOp:
		return &mask{MaskOp: o}, nil
	case nn.ConcatOp:
		return concat{}, nil
	case nn.ReshapeOp:
		return reshape{}, nil
	case nn.MeanRowsOp:
		return meanRows(o), nil
	case graphsage.AggregateOp:
		return &aggregate{AggregateOp: o}, nil
	case transformerxl.AttentionOp:
		return &attention{AttentionOp: o}, nil
	}
	return nil, fmt.Errorf("policy: no kernel for operation %T", o)
}

// own returns memory that Close frees.
func (e *engine) own(bytes int) gpu.Ptr {
	r := &room{}
	e.owned = append(e.owned, r)
	return e.d.grow(r, bytes)
}

// layOut gives gradients their memory. The backward pass takes the operations
// from the last to the first; a gradient lives from the first operation that
// reads its value until the one that made it.
func (e *engine) layOut() {
	claim := func(i int) {
		v := e.program.Values[i]
		if v.Param != nil || v.Input != nil || e.grads[i] != 0 {
			return
		}
		n := v.N * v.D
		if free := e.pool[n]; len(free) > 0 {
			e.grads[i], e.pool[n] = free[len(free)-1], free[:len(free)-1]
			return
		}
		e.grads[i] = e.own(4 * n)
	}
	for _, i := range e.program.Outputs {
		claim(i)
	}
	for k := len(e.program.Ops) - 1; k >= 0; k-- {
		o := e.program.Ops[k]
		for _, i := range o.In {
			claim(i)
		}
		if v := e.program.Values[o.Out]; e.grads[o.Out] != 0 {
			e.pool[v.N*v.D] = append(e.pool[v.N*v.D], e.grads[o.Out])
		}
	}
}

// mat returns value i.
func (e *engine) mat(i int) mat {
	v := e.program.Values[i]
	if v.Param != nil {
		return mat{e.d.param(v.Param).value, i, v.N, v.D}
	}
	return mat{e.values[i], i, v.N, v.D}
}

func (e *engine) mats(all []int) []mat {
	x := make([]mat, len(all))
	for i, k := range all {
		x[i] = e.mat(k)
	}
	return x
}

// grad returns where the gradient of x goes, 0 if it is not wanted, and whether to
// add to what is there.
func (e *engine) grad(x mat) (gpu.Ptr, bool) {
	if p := e.program.Values[x.index].Param; p != nil {
		return e.d.param(p).grad, true
	}
	add := e.written[x.index]
	e.written[x.index] = true
	return e.grads[x.index], add
}

// Run is as nn.Engine says.
func (e *engine) Run(o nn.Objective) (loss float64, err error) {
	defer e.d.leave(&err)
	e.d.enter()
	e.fresh = false
	for i, v := range e.program.Values {
		if in := v.Input; in != nil && e.inputs[i] != in.Version {
			upload(e.d, e.values[i], in.Data.V)
			if e.d.err == nil {
				e.inputs[i] = in.Version
			}
		}
	}
	for k, x := range e.ops {
		o := e.program.Ops[k]
		x.forward(e, e.mats(o.In), e.mat(o.Out))
	}
	if o == nil {
		e.fetch()
		return 0, nil
	}
	clear(e.written)
	loss = e.objective(o)
	for k := len(e.ops) - 1; k >= 0; k-- {
		if o := e.program.Ops[k]; e.written[o.Out] {
			e.ops[k].backward(e, e.mats(o.In), e.mat(o.Out), e.grads[o.Out])
		}
	}
	e.d.sync()
	return loss, nil
}

// fetch brings the outputs to the host.
func (e *engine) fetch() {
	for i, k := range e.program.Outputs {
		download(e.d, e.out[i].V, e.values[k])
	}
	e.d.sync()
	e.fresh = e.d.err == nil
}

// Output is as nn.Engine says. It panics where the device fails, which it does
// only after a Run with an objective: others have brought the outputs already.
func (e *engine) Output(i int) nn.Mat {
	if !e.fresh {
		if err := e.later(); err != nil {
			panic(err)
		}
	}
	return e.out[i]
}

func (e *engine) later() (err error) {
	defer e.d.leave(&err)
	e.d.enter()
	e.fetch()
	return nil
}

// Close is as nn.Engine says.
func (e *engine) Close() (err error) {
	defer e.d.leave(&err)
	e.d.enter()
	e.close()
	return nil
}

func (e *engine) close() {
	e.d.sync()
	for _, o := range e.ops {
		if k, ok := o.(interface{ rooms() []*room }); ok {
			e.owned = append(e.owned, k.rooms()...)
		}
	}
	for _, r := range e.owned {
		e.d.free(r.ptr)
	}
	e.owned, e.ops = nil, nil
}
