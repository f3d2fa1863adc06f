package onnx

import (
	"slices"

	"placer/graph"
)

// dequantizes lists the operators that turn small integers and floats into the floats
// that they stand for.
var dequantizes = map[string]bool{"DequantizeLinear": true, "com.microsoft.DequantizeLinear": true}

// quantizes lists the operators that turn floats into small integers or small floats.
var quantizes = map[string]bool{"QuantizeLinear": true, "com.microsoft.QuantizeLinear": true}

// integerKinds gives products by the kind that they have between dequantised operands:
// with a result that is not quantised, and with one that is.
var integerKinds = map[graph.Kind][2]graph.Kind{
	"MatMul": {"MatMulInteger", "QLinearMatMul"}, "BatchMatMulV2": {"MatMulInteger", "QLinearMatMul"}, "Gemm": {"MatMulInteger", "QLinearMatMul"},
	"Conv2D": {"ConvInteger", "QLinearConv"},
}

// integerProducts are the kinds whose operands are 8-bit integers.
var integerProducts = map[graph.Kind]bool{"MatMulInteger": true, "QLinearMatMul": true, "ConvInteger": true, "QLinearConv": true}

// dequantized is the result of a DequantizeLinear of an 8-bit tensor. Products read that
// tensor itself; the op is added when something else reads the floats.
type dequantized struct {
	call  *call
	index int // of the node
	reads []string
	from  string // the 8-bit tensor
}

// pending is an integer product whose result only a QuantizeLinear reads, directly or
// through a Relu or Clip: all are one op.
type pending struct {
	call  *call
	op    graph.Op
	reads []string
}

// small reports whether the named tensor holds numbers of at most 8 bits that stand for
// floats, and the step is no training step.
func (imp *importer) small(name string) bool {
	t := imp.root.tensors[name]
	return !imp.cfg.Training && t != nil && t.elem.quantized()
}

// rearranges lists the operators that give the elements of their first input another
// order or shape.
var rearranges = map[string]bool{"Identity": true, "Reshape": true, "Transpose": true, "Squeeze": true, "Unsqueeze": true, "Flatten": true}

// dequantize puts a DequantizeLinear off until its floats are read, and a
// rearrangement of a constant that one has made, which is one of the 8-bit elements.
func (imp *importer) dequantize(c *call, i int, reads []string) bool {
	n := c.node
	if len(n.out) != 1 || len(n.in) == 0 {
		return false
	}
	key := n.key()
	if dequantizes[key] && imp.small(n.in[0]) {
		imp.dequantized[n.out[0]] = &dequantized{c, i, reads, n.in[0]}
		return true
	}
	d := imp.dequantized[n.in[0]]
	if d == nil || !rearranges[key] || !imp.isConstant(d.from) {
		return false
	}
	// The elements stand in a tensor of their own, named as no tensor of the file is.
	from := n.out[0] + "\x00"
	of := imp.root.tensors[d.from]
	imp.root.tensors[from] = &tensor{elem: of.elem, shape: c.out[0].shape}
	imp.constants[from] = &known{tensor: imp.root.tensors[from], name: n.out[0], roots: imp.rootsOf(d.from), folded: true}
	imp.sum.Folded++
	imp.dequantized[n.out[0]] = &dequantized{c, i, reads, from}
	return true
}

// integerProduct makes a product read the 8-bit tensors behind its operands. Where both
// are integers it computes with such, and where both are small floats with these, which
// leaves its kind as it is. It reports whether the op is put off because a
// QuantizeLinear follows that belongs to it.
func (imp *importer) integerProduct(c *call, op *graph.Op, reads *[]string) bool {
	kinds, ok := integerKinds[c.kind]
	if !ok || len(c.node.in) < 2 {
		return false
	}
	own := slices.Clone(*reads)
	found, floats := 0, 0
	for slot := range 2 {
		if d := imp.dequantized[own[slot]]; d != nil {
			own[slot] = d.from
			own = append(own, d.reads[1:]...) // scale and zero point
			found++
			if imp.root.tensors[d.from].elem.smallFloat() {
				floats++
			}
		}
	}
	if found == 0 {
		return false
	}
	*reads = own
	switch {
	case found == 1 || floats == 1:
		imp.note("products of a float and an 8-bit operand read 8 bits and compute in floats")
		return false
	case floats == 2:
		op.DType = graph.F8
	default:
		op.Kind, op.DType = kinds[0], graph.I8
	}
	imp.sum.Quantized++
	if out := c.node.out[0]; imp.leadsToQuantize(out, 1) {
		imp.pending[out] = &pending{c, *op, own}
		return true
	}
	return false
}

// leadsToQuantize reports whether the named tensor is read by one node alone, a
// QuantizeLinear or, so many times, a Relu or Clip before one.
func (imp *importer) leadsToQuantize(name string, between int) bool {
	r := imp.readers[name]
	if len(r) != 1 || r[0] < 0 {
		return false
	}
	n := &imp.model.graph.nodes[r[0]]
	if len(n.in) == 0 || n.in[0] != name || len(n.out) != 1 {
		return false
	}
	if quantizes[n.key()] {
		return true
	}
	return between > 0 && (n.key() == "Relu" || n.key() == "Clip") && imp.leadsToQuantize(n.out[0], between-1)
}

// requantize makes c's node part of the product put off before it, and reports whether it
// is.
func (imp *importer) requantize(c *call, reads []string) (bool, error) {
	n := c.node
	if len(n.in) == 0 {
		return false, nil
	}
	p := imp.pending[n.in[0]]
	if p == nil {
		return false, nil
	}
	delete(imp.pending, n.in[0])
	p.reads = append(p.reads, reads[1:]...)
	f, _ := c.cost()
	p.op.FLOPs += f
	if !quantizes[n.key()] {
		imp.pending[n.out[0]] = p
		return true, nil
	}
	if p.op.DType == graph.I8 {
		p.op.Kind = integerKinds[p.call.kind][1]
	}
	whole, as := *p.call, *p.call.node // the product with the quantised result
	as.out, whole.node, whole.out = n.out, &as, c.out
	return true, imp.addOp(&whole, p.op, p.reads, false)
}
