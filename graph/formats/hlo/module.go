package hlo

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/units"
)

// module is a program: computations, of which one is the entry.
type module struct {
	name    string
	comps   []*computation
	entry   *computation
	aliased map[int64]bool  // parameters of the entry that are given back in place
	outputs map[int64]int64 // of results of the entry, the parameter in whose place they are
	donors  []int64         // parameters in whose places some results are, it is not said which
	parts   int64           // num_partitions; 0 where it is not said
	sharded bool            // whether it has a computation of one of several devices in it
}

func newModule(name string) *module {
	return &module{name: name, aliased: map[int64]bool{}, outputs: map[int64]int64{}}
}

// alias says that a parameter of the entry is given back as a result.
func (m *module) alias(parameter, result int64) {
	m.aliased[parameter], m.outputs[result] = true, parameter
}

// donate says that a parameter's memory is given to whatever result it fits.
func (m *module) donate(parameter int64) {
	m.aliased[parameter], m.donors = true, append(m.donors, parameter)
}

// computation is a list of instructions, each after those that it reads. root is its
// result.
type computation struct {
	name string
	list []*instruction
	root *instruction
}

// instruction is one operation of a computation.
type instruction struct {
	name     string
	opcode   string // HLO's name
	shape    shape
	operands []*instruction
	captured []*instruction // read by regions of StableHLO, from outside of them
	control  []*instruction
	called   []*computation
	attr     attributes
	id       int32 // its place among all instructions of the module
}

// attributes are those that costs and loops depend on.
type attributes struct {
	index       int64  // of a parameter, or of a tuple's element
	literal     string // of a scalar constant
	contracting []int64
	batch       []int64
	groups      int64   // feature_group_count; 0 for 1
	spread      int64   // elements of a convolution's input with the zeros put between them, for each of its own: lhs_dilate's product; 0 for 1
	output      int     // of a convolution's kernel: the dimension of output features, plus 1
	lengths     []int64 // of a Fourier transform
	trips       int64   // of a loop; 0 where it is not said
	direction   string
	target      string // of a custom call
	config      string // backend_config of a custom call, JSON: what its library needs to know
	scope       string // metadata's op_name: of an operation its modules, of a parameter JAX's name of the argument

	// Of a ragged product, what its right operand sums over, has as a batch, and has for each group.
	rightContracting, rightBatch, groupDims []int64
}

// shape is that of an array, or of a tuple.
type shape struct {
	elem  elem
	dims  []int64
	tuple []shape
	is    bool // a tuple, which may be empty
}

// elem is an element type: how graphs name it, and its bits.
type elem struct {
	dtype graph.DType
	bits  int64
}

// pair reports whether e is of complex numbers.
func (e elem) pair() bool {
	return e.dtype == graph.F32 && e.bits == 64 || e.dtype == graph.F64 && e.bits == 128
}

// elems are the element types by HLO's names.
func elems() map[string]elem {
	return map[string]elem{
		"pred": {graph.Bool, 8}, "i1": {graph.Bool, 8},
		"s2": {graph.I8, 2}, "s4": {graph.I8, 4}, "s8": {graph.I8, 8}, "s16": {graph.I32, 16}, "s32": {graph.I32, 32}, "s64": {graph.I64, 64},
		"u2": {graph.I8, 2}, "u4": {graph.I8, 4}, "u8": {graph.I8, 8}, "u16": {graph.I32, 16}, "u32": {graph.I32, 32}, "u64": {graph.I64, 64},
		"f4e2m1fn": {graph.F8, 4}, "f8e3m4": {graph.F8, 8}, "f8e4m3": {graph.F8, 8}, "f8e4m3fn": {graph.F8, 8}, "f8e4m3b11fnuz": {graph.F8, 8},
		"f8e4m3fnuz": {graph.F8, 8}, "f8e5m2": {graph.F8, 8}, "f8e5m2fnuz": {graph.F8, 8}, "f8e8m0fnu": {graph.F8, 8},
		"f16": {graph.F16, 16}, "bf16": {graph.BF16, 16}, "f32": {graph.F32, 32}, "f64": {graph.F64, 64},
		"c64": {graph.F32, 64}, "c128": {graph.F64, 128},
		"token": {graph.I8, 0}, "opaque": {graph.I8, 0},
	}
}

// array returns the shape of an array, or an error where it does not fit.
func array(e elem, dims []int64) (shape, error) {
	n, err := graph.Shape(dims).Elements()
	if err != nil {
		return shape{}, err
	}
	if n > math.MaxInt64/128 || n*e.bits/8 > int64(graph.MaxBytes) {
		return shape{}, fmt.Errorf("shape %v is too large", dims)
	}
	return shape{elem: e, dims: dims}, nil
}

// elements returns how many elements an array has, over all arrays of a tuple.
func (s *shape) elements() int64 {
	if s.is {
		n := int64(0)
		for i := range s.tuple {
			n = min(n+s.tuple[i].elements(), math.MaxInt64/256)
		}
		return n
	}
	n := int64(1)
	for _, d := range s.dims {
		n *= d
	}
	return n
}

// bytes returns what s occupies, at most graph.MaxBytes.
func (s *shape) bytes() units.Bytes {
	if !s.is {
		return units.Bytes((s.elements()*s.elem.bits + 7) / 8)
	}
	n := units.Bytes(0)
	for i := range s.tuple {
		n = min(n+s.tuple[i].bytes(), graph.MaxBytes)
	}
	return n
}

// leaves returns the number of arrays of s.
func (s *shape) leaves() int {
	if !s.is {
		return 1
	}
	n := 0
	for i := range s.tuple {
		n += s.tuple[i].leaves()
	}
	return n
}

// each calls f with the arrays of s, in order.
func (s *shape) each(f func(*shape)) {
	if !s.is {
		f(s)
		return
	}
	for i := range s.tuple {
		s.tuple[i].each(f)
	}
}

// first returns the first array of s; nil for an empty tuple.
func (s *shape) first() (x *shape) {
	s.each(func(a *shape) {
		if x == nil {
			x = a
		}
	})
	return x
}

// captures returns what c reads that is not its own.
func (c *computation) captures() (list []*instruction) {
	own := make(map[*instruction]bool, len(c.list))
	for _, x := range c.list {
		own[x] = true
	}
	seen := map[*instruction]bool{}
	for _, x := range c.list {
		for _, reads := range [][]*instruction{x.operands, x.captured} {
			for _, from := range reads {
				if !own[from] && !seen[from] {
					seen[from] = true
					list = append(list, from)
				}
			}
		}
	}
	return list
}

// order puts the instructions after those that they read.
func (c *computation) order() error {
	done := make(map[*instruction]bool, len(c.list))
	for _, x := range c.list {
		sorted := true
		for _, from := range x.operands {
			sorted = sorted && done[from]
		}
		for _, from := range x.control {
			sorted = sorted && done[from]
		}
		if !sorted {
			return c.sort()
		}
		done[x] = true
	}
	return nil
}

// sort is order where an instruction comes too early.
func (c *computation) sort() error {
	wait := make(map[*instruction]int, len(c.list))
	next := map[*instruction][]*instruction{}
	for _, x := range c.list {
		for _, list := range [][]*instruction{x.operands, x.control} {
			for _, from := range list {
				next[from] = append(next[from], x)
				wait[x]++
			}
		}
	}
	var sorted []*instruction
	for _, x := range c.list {
		if wait[x] == 0 {
			sorted = append(sorted, x)
		}
	}
	for i := 0; i < len(sorted); i++ {
		for _, x := range next[sorted[i]] {
			if wait[x]--; wait[x] == 0 {
				sorted = append(sorted, x)
			}
		}
	}
	if len(sorted) < len(c.list) {
		return fmt.Errorf("computation %s has a cycle", foreign.Brief(c.name))
	}
	c.list = sorted
	return nil
}
