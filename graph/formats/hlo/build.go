package hlo

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/units"
)

// maxInlined bounds the instructions of inlined calls: computations that call each other
// could be small in the file and endless in effect.
const maxInlined = 1 << 22

// maxLeaves bounds the arrays in tuples of all instructions.
const maxLeaves = 1 << 24

// Summary is what the importer found.
type Summary struct {
	Instructions int // of all computations
	Edges        int // operands of all computations
	Computations int
	Notes        []string

	Loops []string // names of all loops
}

// builder makes a graph of a module.
type builder struct {
	m      *module
	b      *graph.Builder
	names  *foreign.Names
	kinds  map[string]graph.Kind
	trips  map[string]int64 // by the name of the loop
	costs  map[*computation]*cost
	left   int // instructions that may still be inlined
	leaves int
	custom map[string]bool
	sum    *Summary

	arguments map[graph.OpID]*instruction // parameters of the entry
	written   map[graph.OpID]bool         // ops that write a part of what they read
	scopes    []string                    // [N] JAX's names of the ops
	goesBack  map[*computation]bool
	waits     map[graph.OpID][]graph.OpID // what ops wait for beside what they read
	gives     []graph.TensorID            // of the entry
	places    []given
	loops     []whileLoop
	compiled  bool                    // whether the module has fusions
	spread    map[graph.TensorID]bool // what broadcasts make of single numbers, and whether it is read
}

// frame is one execution of a computation: the arrays that its instructions make.
type frame struct {
	prefix string
	of     map[*instruction][]graph.TensorID
	outer  *frame
	ops    map[*instruction]graph.OpID
	scope  string // of the call
}

// within is the scope of an operation, whose own name may begin at the call.
func (f *frame) within(scope string) string {
	root, _, _ := strings.Cut(f.scope, "/")
	if f.scope == "" || scope != "" && strings.HasPrefix(scope, root+"/") {
		return scope
	}
	return f.scope + "/" + scope
}

func (f *frame) value(x *instruction) ([]graph.TensorID, bool) {
	for ; f != nil; f = f.outer {
		if v, ok := f.of[x]; ok {
			return v, true
		}
	}
	return nil, false
}

// build returns the graph of m's entry. trips are the trip counts of loops that do not
// say them, by name.
func build(m *module, name string, trips map[string]int64) (*graph.Graph, *Summary, error) {
	b := &builder{m: m, b: graph.NewBuilder(name), names: foreign.NewNames(), kinds: kinds(), trips: trips, costs: map[*computation]*cost{},
		left: maxInlined, leaves: maxLeaves, custom: map[string]bool{}, arguments: map[graph.OpID]*instruction{}, written: map[graph.OpID]bool{}, goesBack: map[*computation]bool{}, spread: map[graph.TensorID]bool{}, waits: map[graph.OpID][]graph.OpID{}, sum: &Summary{Computations: len(m.comps)}}
	for _, c := range m.comps {
		for _, x := range c.list {
			if x.id >= 0 {
				b.sum.Instructions++
				b.sum.Edges += len(x.operands)
			}
			b.compiled = b.compiled || x.opcode == "fusion"
			if x.opcode == "while" {
				b.sum.Loops = append(b.sum.Loops, x.name)
			}
		}
	}
	f := &frame{of: map[*instruction][]graph.TensorID{}, ops: map[*instruction]graph.OpID{}}
	if err := b.run(m.entry, f, nil, 0); err != nil {
		return nil, nil, err
	}
	if m.parts > 1 {
		b.note("the module is one of %d partitions: shapes are a partition's", m.parts)
	}
	if m.sharded {
		b.note("what shard_map and pmap compute is what one of their devices does: shapes in it are a device's")
	}
	b.gives, _ = f.value(m.entry.root)
	b.pair()
	b.weights()
	b.modulesOfWeights()
	b.phases()
	b.gradients()
	b.inPlace()
	b.loopsInPlace()
	g, err := b.b.Build()
	if err != nil {
		return nil, nil, err
	}
	return g, b.sum, nil
}

func (b *builder) note(format string, a ...any) {
	b.sum.Notes = append(b.sum.Notes, fmt.Sprintf(format, a...))
}

// run adds the instructions of c. parameters are the arrays of each; nil for the entry.
func (b *builder) run(c *computation, f *frame, parameters [][]graph.TensorID, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("calls are nested deeper than %d at computation %s", maxNesting, foreign.Brief(c.name))
	}
	for _, x := range c.list {
		if b.left--; b.left < 0 {
			return fmt.Errorf("inlined calls make more than %d instructions", maxInlined)
		}
		if err := b.instruction(x, f, parameters, depth); err != nil {
			return fmt.Errorf("instruction %s: %w", foreign.Brief(x.name), err)
		}
	}
	return nil
}

// instruction adds x, or gives it the arrays that it passes on.
func (b *builder) instruction(x *instruction, f *frame, parameters [][]graph.TensorID, depth int) error {
	if b.leaves -= x.shape.leaves(); b.leaves < 0 {
		return fmt.Errorf("tuples hold more than %d arrays", maxLeaves)
	}
	var in []graph.TensorID
	args := make([][]graph.TensorID, len(x.operands))
	for k, from := range x.operands {
		v, ok := f.value(from)
		if !ok {
			return fmt.Errorf("operand %d (%s) has no value", k, foreign.Brief(from.name))
		}
		args[k] = v
	}
	switch x.opcode {
	case "parameter":
		if parameters != nil {
			if x.attr.index >= int64(len(parameters)) {
				return fmt.Errorf("is parameter %d of %d", x.attr.index, len(parameters))
			}
			f.of[x] = parameters[x.attr.index]
			return nil
		}
		b.parameter(x, f)
		return nil
	case "tuple":
		if len(args) > 0 {
			all := args[0][:len(args[0]):len(args[0])]
			for _, a := range args[1:] {
				all = append(all, a...)
			}
			f.of[x] = all
		} else {
			f.of[x] = nil
		}
		return nil
	case "get-tuple-element":
		if len(x.operands) != 1 || !x.operands[0].shape.is || x.attr.index >= int64(len(x.operands[0].shape.tuple)) || x.attr.index < 0 {
			return fmt.Errorf("takes element %d of what is no such tuple", x.attr.index)
		}
		parts := x.operands[0].shape.tuple
		at := 0
		for k := range x.attr.index {
			at += parts[k].leaves()
		}
		end := at + parts[x.attr.index].leaves()
		if end > len(args[0]) {
			return fmt.Errorf("the tuple has %d arrays, want %d", len(args[0]), end)
		}
		f.of[x] = args[0][at:end:end]
		return nil
	case "opt-barrier":
		b.barrier(x, f, args)
		return nil
	case "call":
		if len(x.called) != 1 {
			return fmt.Errorf("calls %d computations, want 1", len(x.called))
		}
		inner := &frame{prefix: f.prefix + x.name + "/", of: map[*instruction][]graph.TensorID{}, ops: map[*instruction]graph.OpID{}, outer: f, scope: f.within(x.attr.scope)}
		if err := b.run(x.called[0], inner, args, depth+1); err != nil {
			return err
		}
		f.of[x], _ = inner.value(x.called[0].root)
		return nil
	}
	for _, a := range args {
		in = append(in, a...)
	}
	for _, from := range x.captured {
		v, ok := f.value(from)
		if !ok {
			return fmt.Errorf("reads %s, which has no value", foreign.Brief(from.name))
		}
		in = append(in, v...)
	}
	b.own(in)
	if b.leaves -= len(in); b.leaves < 0 {
		return fmt.Errorf("operands hold more than %d arrays", maxLeaves)
	}
	c, err := b.costOf(x, 0)
	if err != nil {
		return err
	}
	if c.bytes > float64(graph.MaxBytes) {
		return fmt.Errorf("moves %.3g bytes", c.bytes)
	}
	kind := b.kind(x)
	scope := f.within(x.attr.scope)
	op := graph.Op{Name: b.names.Take(f.prefix + x.name), Kind: kind, FLOPs: c.flops, GEMM: c.gemm(), Bytes: units.Bytes(c.bytes), Forward: graph.None, Module: modulePath(scope)}
	if b.backward(x, scope, !c.gemm().IsZero()) {
		op.Phase = graph.Backward
	}
	if a := x.shape.first(); a != nil {
		op.DType = a.elem.dtype
	}
	if !op.GEMM.IsZero() {
		op.DType = c.dtype
	}
	op.Repeats, op.Kernels = c.iterations()
	resident := false
	switch kind.Class() {
	case graph.ClassConst, graph.ClassVariable:
		resident, op.Resident = true, x.shape.bytes()
		if kind.Class() == graph.ClassVariable {
			op.Params = x.shape.elements()
		}
	}
	if x.inner() != nil && x.opcode != "fusion" {
		op.Workspace = c.live
	}
	kept := x.invariants()
	id := b.add(op, in, b.outs(x, resident, kept), scope)
	f.ops[x] = id
	if x.writesInPlace() {
		b.written[id] = true
	}
	for _, before := range x.control {
		if from, ok := f.ops[before]; ok {
			b.b.Control(from, id)
			b.waits[id] = append(b.waits[id], from)
		}
	}
	f.of[x] = b.results(x, id, kept, in)
	if x.opcode == "broadcast" && !b.compiled && len(x.operands) == 1 && x.operands[0].shape.elements() == 1 {
		b.spread[f.of[x][0]] = false
	}
	if x.opcode == "while" && len(f.of[x]) <= len(in) {
		b.loops = append(b.loops, whileLoop{x, id, in[:len(f.of[x])], f.of[x]})
	}
	return nil
}

// add adds an op of that scope.
func (b *builder) add(op graph.Op, in []graph.TensorID, outs []graph.Tensor, scope string) graph.OpID {
	b.scopes = append(b.scopes, scope)
	return b.b.Op(op, in, outs...)
}

// parameter adds a parameter of the entry, as an input: weights settles what it is.
func (b *builder) parameter(x *instruction, f *frame) {
	name := x.attr.scope
	if name == "" {
		name = f.prefix + x.name
	}
	op := graph.Op{Name: b.names.Take(name), Kind: "Placeholder", Bytes: 0, Forward: graph.None, Module: ""}
	if a := x.shape.first(); a != nil {
		op.DType = a.elem.dtype
	}
	id := b.add(op, nil, b.outs(x, false, nil), "")
	b.arguments[id] = x
	f.of[x] = b.results(x, id, nil, nil)
}

// outs are the arrays that x makes: all that it gives but those that it keeps.
func (b *builder) outs(x *instruction, resident bool, kept []bool) (list []graph.Tensor) {
	k := 0
	x.shape.each(func(a *shape) {
		if kept == nil || !kept[k] {
			list = append(list, graph.Tensor{DType: a.elem.dtype, Shape: a.dims, Bytes: a.bytes(), Resident: resident})
		}
		k++
	})
	return list
}

// results are the arrays that x gives: those that op id makes, and those of in that x keeps.
func (b *builder) results(x *instruction, id graph.OpID, kept []bool, in []graph.TensorID) []graph.TensorID {
	ids := make([]graph.TensorID, x.shape.leaves())
	n := 0
	for k := range ids {
		if kept != nil && kept[k] {
			ids[k] = in[k]
			continue
		}
		ids[k] = b.b.Output(id, n)
		n++
	}
	return ids
}

// kind is the graph's name of what x does.
func (b *builder) kind(x *instruction) graph.Kind {
	if x.opcode == "fusion" || x.opcode == "while" || x.opcode == "conditional" {
		return graph.Kind(x.opcode)
	}
	if x.opcode == "reduce" && len(x.called) == 1 && x.called[0].root != nil {
		switch x.called[0].root.opcode {
		case "maximum":
			return "Max"
		case "minimum":
			return "Min"
		case "multiply":
			return "Prod"
		}
	}
	if k, ok := b.kinds[x.opcode]; ok {
		return k
	}
	if x.opcode == "custom-call" && !x.library().IsZero() {
		return x.libraryKind()
	}
	if x.opcode == "custom-call" && x.attr.target != "" {
		if !b.custom[x.attr.target] {
			b.custom[x.attr.target] = true
			why := ""
			if strings.HasPrefix(x.attr.target, cublas) || strings.HasPrefix(x.attr.target, cudnn) {
				why = ": their sizes cannot be read"
			}
			b.note("custom calls of %s cost the bytes of their operands and results alone%s", foreign.Brief(x.attr.target), why)
		}
		return graph.Kind("custom-call:" + foreign.Clean(x.attr.target))
	}
	return graph.Kind(foreign.Clean(x.opcode))
}

// inner returns the computations that x runs as a part of itself.
func (x *instruction) inner() []*computation {
	switch x.opcode {
	case "fusion", "while", "conditional", "call", "async-start":
		return x.called
	}
	return nil
}

// costOf returns the cost of x with all that it runs.
func (b *builder) costOf(x *instruction, depth int) (c cost, err error) {
	if depth > maxNesting {
		return c, fmt.Errorf("calls are nested deeper than %d", maxNesting)
	}
	inner := x.inner()
	if len(inner) == 0 {
		return x.own(b.kind(x)), nil
	}
	var parts []cost
	for _, k := range inner {
		part, err := b.costOfAll(k, depth+1)
		if err != nil {
			return c, fmt.Errorf("computation %s: %w", foreign.Brief(k.name), err)
		}
		parts = append(parts, part)
	}
	switch x.opcode {
	case "while":
		trips, err := b.tripsOf(x)
		if err != nil {
			return c, err
		}
		for _, part := range parts {
			c.add(part, float64(trips))
		}
	case "conditional":
		for _, part := range parts {
			if part.flops > c.flops || part.flops == c.flops && part.bytes >= c.bytes {
				c = part
			}
		}
	case "fusion": // only what goes in and out reaches the memory
		for _, part := range parts {
			c.add(part, 1)
		}
		c.bytes, c.live, c.kernels = float64(x.traffic(graph.ClassOther, x.shape.bytes())), x.made(), 1
	default:
		for _, part := range parts {
			c.add(part, 1)
		}
	}
	return c, nil
}

// costOfAll returns the cost of one execution of c, where all is fused that compilers fuse.
func (b *builder) costOfAll(c *computation, depth int) (sum cost, err error) {
	if known := b.costs[c]; known != nil {
		return *known, nil
	}
	inside := map[*instruction]units.Bytes{}
	for _, x := range c.list {
		switch x.opcode {
		case "parameter", "tuple", "get-tuple-element", "constant":
			continue
		}
		part, err := b.costOf(x, depth)
		if err != nil {
			return sum, fmt.Errorf("instruction %s: %w", foreign.Brief(x.name), err)
		}
		sum.add(part, 1)
		if len(x.inner()) > 0 && x.opcode != "fusion" {
			inside[x] = part.live
		}
	}
	saved, within := b.fused(c)
	sum.bytes, sum.live = max(sum.bytes-saved, 0), c.peak(within, inside)
	b.costs[c] = &sum
	return sum, nil
}
