package onnx

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is an encoded protobuf message and where it lies in the file. Its
// bytes alias the file.
type message struct {
	data []byte
	at   int // offset in the file
}

// field is one field of a message: number holds varints and fixed values, sub
// what is length-delimited.
type field struct {
	num    protowire.Number
	typ    protowire.Type
	number uint64
	sub    message
}

// fields calls f for every field of m, in order. what names the message in
// errors, which give the offset in the file.
func (m message) fields(what string, f func(field) error) error {
	b := m.data
	for len(b) > 0 {
		at := m.at + len(m.data) - len(b)
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("byte %d: %s: no field begins here", at, what)
		}
		b = b[n:]
		x := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			x.number, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			x.number = uint64(v)
		case protowire.Fixed64Type:
			x.number, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			size, k := protowire.ConsumeVarint(b)
			if k < 0 || size > uint64(len(b)-k) {
				return fmt.Errorf("byte %d: %s: field %d is longer than what is left of %s: the file is truncated or damaged", at, what, num, what)
			}
			n = k + int(size)
			x.sub = message{b[k:n:n], m.at + len(m.data) - len(b) + k}
		default:
			return fmt.Errorf("byte %d: %s: field %d has wire type %d, which ONNX does not use", at, what, num, typ)
		}
		if n < 0 {
			return fmt.Errorf("byte %d: %s: field %d is cut short", at, what, num)
		}
		b = b[n:]
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

// text returns a string field; the result does not alias the file.
func (f field) text() string { return string(f.sub.data) }

// ints appends the integers of a repeated field, packed or not.
func (f field) ints(list []int64) ([]int64, error) {
	if f.typ == protowire.VarintType {
		return append(list, int64(f.number)), nil
	}
	for b := f.sub.data; len(b) > 0; {
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, fmt.Errorf("byte %d: a list of integers is cut short", f.sub.at+len(f.sub.data)-len(b))
		}
		list = append(list, int64(x))
		b = b[n:]
	}
	return list, nil
}

// wants reports an error unless f has the wire type typ.
func (f field) wants(typ protowire.Type, what string) error {
	if f.typ != typ {
		return fmt.Errorf("byte %d: %s: field %d has wire type %d, want %d", f.sub.at, what, f.num, f.typ, typ)
	}
	return nil
}
