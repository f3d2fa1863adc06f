package hlo

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph/formats/foreign"
)

// The messages of xla/service/hlo.proto and xla/xla_data.proto are read field by field:
// an instruction has a hundred fields, of which costs need ten.

// field is one field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // of a field with a length
	value  uint64 // of a varint
}

// fields calls use with the fields of a message.
func fields(data []byte, use func(f field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("a field's tag is damaged")
		}
		data = data[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return fmt.Errorf("field %d is damaged or cut off", number)
		}
		data = data[n:]
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

// ints adds the numbers of a repeated field, packed or not.
func ints(f field, to []int64) []int64 {
	if f.kind == protowire.VarintType {
		return append(to, int64(f.value))
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			break
		}
		to, b = append(to, int64(v)), b[n:]
	}
	return to
}

// inHloProto returns the HloModuleProto of an HloProto; data itself where it is one.
func inHloProto(data []byte) []byte {
	number, kind, n := protowire.ConsumeTag(data)
	if n > 0 && number == 1 && kind == protowire.BytesType {
		if inner, m := protowire.ConsumeBytes(data[n:]); m > 0 && isModule(inner) {
			return inner
		}
	}
	return data
}

// isModule reports whether data is an HloModuleProto: it has a computation with an
// instruction that has a name and an opcode.
func isModule(data []byte) bool {
	found := false
	for len(data) > 0 && !found {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		m := protowire.ConsumeFieldValue(number, kind, data[n:])
		if m < 0 || number <= 3 && kind != protowire.BytesType {
			return false
		}
		if number == 3 {
			body, _ := protowire.ConsumeBytes(data[n:])
			found = hasInstruction(body)
			if !found {
				return false
			}
		}
		data = data[n+m:]
	}
	return found
}

// hasInstruction reports whether a computation's message has a well-formed instruction
// as the first field 2.
func hasInstruction(body []byte) bool {
	for len(body) > 0 {
		number, kind, n := protowire.ConsumeTag(body)
		if n < 0 {
			return false
		}
		m := protowire.ConsumeFieldValue(number, kind, body[n:])
		if m < 0 || number <= 2 && kind != protowire.BytesType {
			return false
		}
		if number == 2 {
			inner, _ := protowire.ConsumeBytes(body[n:])
			has := map[protowire.Number]bool{}
			err := fields(inner, func(f field) error { has[f.number] = f.kind == protowire.BytesType; return nil })
			return err == nil && has[1] && has[2] && has[3]
		}
		body = body[n+m:]
	}
	return false
}

// opened is a computation whose references are numbers still.
type opened struct {
	c    *computation
	root int64
	refs []refs
}

// refs are the numbers that an instruction refers to.
type refs struct{ id, operands, control, called []int64 }

// parseProto reads an HloModuleProto.
func parseProto(data []byte) (*module, error) {
	m := newModule("")
	types := protoElems()
	byID := map[int64]*computation{}
	var all []*opened
	var entryID int64 = -1
	entryName := ""
	count := int32(0)
	err := fields(inHloProto(data), func(f field) error {
		switch f.number {
		case 1:
			m.name = foreign.Clean(string(f.bytes))
		case 2:
			entryName = string(f.bytes)
		case 6:
			entryID = int64(f.value)
		case 8: // HloInputOutputAliasProto{entries=1{output_shape_index=1, parameter_number=2}}
			return fields(f.bytes, func(e field) error {
				k, result := int64(0), []int64{}
				if e.number != 1 {
					return nil
				}
				err := fields(e.bytes, func(x field) error {
					switch x.number {
					case 1:
						result = ints(x, result)
					case 2:
						k = int64(x.value)
					}
					return nil
				})
				m.alias(k, append(result, 0)[0])
				return err
			})
		case 18: // HloBufferDonorProto{entries=1{parameter_number=1}}
			return fields(f.bytes, func(e field) error {
				k := int64(0)
				if e.number != 1 {
					return nil
				}
				err := fields(e.bytes, func(x field) error {
					if x.number == 1 {
						k = int64(x.value)
					}
					return nil
				})
				m.donate(k)
				return err
			})
		case 3:
			o, id, err := protoComputation(f.bytes, types, &count)
			if err != nil {
				return err
			}
			if byID[id] != nil {
				return fmt.Errorf("computation %s: an earlier one has id %d too", foreign.Brief(o.c.name), id)
			}
			byID[id] = o.c
			all = append(all, o)
			m.comps = append(m.comps, o.c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if err := o.resolve(byID); err != nil {
			return nil, err
		}
	}
	m.entry = byID[entryID]
	for _, c := range m.comps {
		if m.entry == nil && c.name == entryName {
			m.entry = c
		}
	}
	if m.entry == nil {
		return nil, fmt.Errorf("the module has no entry computation")
	}
	return m, nil
}

// resolve turns numbers into instructions and computations.
func (o *opened) resolve(comps map[int64]*computation) error {
	at := make(map[int64]*instruction, len(o.c.list))
	for i, x := range o.c.list {
		id := int64(-1)
		if len(o.refs[i].id) > 0 {
			id = o.refs[i].id[0]
		}
		if at[id] != nil {
			return fmt.Errorf("instruction %s: an earlier one has id %d too", foreign.Brief(x.name), id)
		}
		at[id] = x
	}
	for i, x := range o.c.list {
		for k, id := range o.refs[i].operands {
			if at[id] == nil {
				return fmt.Errorf("instruction %s: operand %d: no instruction of its computation has id %d", foreign.Brief(x.name), k, id)
			}
			x.operands = append(x.operands, at[id])
		}
		for _, id := range o.refs[i].control {
			if at[id] == nil {
				return fmt.Errorf("instruction %s waits for id %d, which its computation lacks", foreign.Brief(x.name), id)
			}
			x.control = append(x.control, at[id])
		}
		for _, id := range o.refs[i].called {
			if comps[id] == nil {
				return fmt.Errorf("instruction %s calls computation %d, which the module lacks", foreign.Brief(x.name), id)
			}
			x.called = append(x.called, comps[id])
		}
	}
	if len(o.c.list) == 0 {
		return fmt.Errorf("computation %s has no instructions", foreign.Brief(o.c.name))
	}
	if o.c.root = at[o.root]; o.c.root == nil {
		o.c.root = o.c.list[len(o.c.list)-1]
	}
	return o.c.order()
}

func protoComputation(data []byte, types map[int64]elem, count *int32) (*opened, int64, error) {
	o := &opened{c: &computation{}, root: -1}
	var id int64
	err := fields(data, func(f field) error {
		switch f.number {
		case 1:
			o.c.name = string(f.bytes)
		case 2:
			x, r, err := protoInstruction(f.bytes, types)
			if err != nil {
				return fmt.Errorf("instruction %s: %w", foreign.Brief(x.name), err)
			}
			x.id = *count
			*count++
			o.c.list, o.refs = append(o.c.list, x), append(o.refs, r)
		case 5:
			id = int64(f.value)
		case 6:
			o.root = int64(f.value)
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("computation %s: %w", foreign.Brief(o.c.name), err)
	}
	return o, id, nil
}

func protoInstruction(data []byte, types map[int64]elem) (*instruction, refs, error) {
	x := &instruction{}
	var r refs
	err := fields(data, func(f field) (err error) {
		switch f.number {
		case 1:
			x.name = string(f.bytes)
		case 2:
			x.opcode = string(f.bytes)
		case 3:
			x.shape, err = protoShape(f.bytes, types, 0)
		case 7: // OpMetadata.op_name
			err = fields(f.bytes, func(m field) error {
				if m.number == 2 {
					x.attr.scope = string(m.bytes)
				}
				return nil
			})
		case 8:
			x.attr.literal = protoLiteral(f.bytes)
		case 9, 13: // parameter_number, tuple_index
			x.attr.index = int64(f.value)
		case 15: // Window{dimensions=1}: WindowDimension.base_dilation
			x.attr.spread = 1
			err = fields(f.bytes, func(w field) error {
				if w.number != 1 {
					return nil
				}
				return fields(w.bytes, func(d field) error {
					if d.number == 6 && d.value >= 1 && d.value < 1<<31 && x.attr.spread < 1<<31 {
						x.attr.spread *= int64(d.value)
					}
					return nil
				})
			})
		case 16: // ConvolutionDimensionNumbers.kernel_output_feature_dimension
			x.attr.output = 1
			err = fields(f.bytes, func(d field) error {
				if d.number == 4 && d.value < 32 {
					x.attr.output = int(d.value) + 1
				}
				return nil
			})
		case 32: // fft_length
			x.attr.lengths = ints(f, x.attr.lengths)
		case 28:
			x.attr.target = string(f.bytes)
		case 30: // DotDimensionNumbers
			err = x.dotNumbers(f.bytes)
		case 90: // RaggedDotDimensionNumbers{dot_dimension_numbers=1, rhs_group_dimensions=3}
			err = fields(f.bytes, func(d field) error {
				switch d.number {
				case 1:
					return x.dotNumbers(d.bytes)
				case 3:
					x.attr.groupDims = ints(d, x.attr.groupDims)
				}
				return nil
			})
		case 35:
			r.id = []int64{int64(f.value)}
		case 36:
			r.operands = ints(f, r.operands)
		case 37:
			r.control = ints(f, r.control)
		case 38:
			r.called = ints(f, r.called)
		case 43:
			x.attr.trips = knownTrips(string(f.bytes))
			x.attr.config = string(f.bytes)
		case 50:
			x.attr.groups = int64(f.value)
		case 63:
			x.attr.direction = string(f.bytes)
		}
		return err
	})
	return x, r, err
}

// dotNumbers reads a DotDimensionNumbers.
func (x *instruction) dotNumbers(data []byte) error {
	return fields(data, func(d field) error {
		switch d.number {
		case 1:
			x.attr.contracting = ints(d, x.attr.contracting)
		case 2:
			x.attr.rightContracting = ints(d, x.attr.rightContracting)
		case 3:
			x.attr.batch = ints(d, x.attr.batch)
		case 4:
			x.attr.rightBatch = ints(d, x.attr.rightBatch)
		}
		return nil
	})
}

// protoShape reads a ShapeProto.
func protoShape(data []byte, types map[int64]elem, depth int) (s shape, err error) {
	if depth > maxNesting {
		return s, fmt.Errorf("tuples are nested deeper than %d", maxNesting)
	}
	kind := int64(0)
	dims := []int64{}
	err = fields(data, func(f field) error {
		switch f.number {
		case 2:
			kind = int64(f.value)
		case 3:
			dims = ints(f, dims)
		case 4:
			part, err := protoShape(f.bytes, types, depth+1)
			s.tuple = append(s.tuple, part)
			return err
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	if kind == 13 {
		s.is = true
		return s, nil
	}
	e, ok := types[kind]
	if !ok {
		return s, fmt.Errorf("element type %d is none of XLA's", kind)
	}
	return array(e, dims)
}

// protoElems are the element types by the numbers of xla.PrimitiveType.
func protoElems() map[int64]elem {
	all := elems()
	types := map[int64]elem{}
	for number, name := range map[int64]string{1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32", 12: "f64",
		14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz",
		26: "s2", 27: "u2", 28: "f8e4m3", 29: "f8e3m4", 32: "f4e2m1fn", 33: "f8e8m0fnu"} {
		types[number] = all[name]
	}
	return types
}

// protoLiteral returns the text of a scalar integer of a LiteralProto, "" otherwise.
func protoLiteral(data []byte) (text string) {
	// s32s=4, s64s=5, u32s=6, u64s=7 are repeated numbers.
	err := fields(data, func(f field) error {
		if f.number >= 4 && f.number <= 7 && len(f.bytes) <= 10 {
			if n := ints(f, nil); len(n) == 1 {
				text = fmt.Sprint(n[0])
			}
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return text
}
