package cpsat

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of ConstraintProto: the kinds of constraints. TestFieldNumbers has where
// all these numbers come from.
const (
	fieldBoolOr     = 3
	fieldLinear     = 12
	fieldInterval   = 19
	fieldNoOverlap  = 20
	fieldLinMax     = 27
	fieldExactlyOne = 29
)

// Marshal returns m as a serialized CpModelProto.
func (m *Model) Marshal() ([]byte, error) {
	if m.err != nil {
		return nil, m.err
	}
	var out []byte
	for _, v := range m.variables {
		out = message(out, 2, packed(nil, 2, v.low, v.high))
	}
	for _, c := range m.constraints {
		var body []byte
		body = packed(body, 2, c.onlyIf...)
		body = message(body, c.field, c.body)
		out = message(out, 3, body)
	}
	if e := m.objective; e != nil {
		var body []byte
		vars, factors := e.split()
		body = packed(body, 1, vars...)
		if e.offset != 0 {
			body = double(body, 2, float64(e.offset))
		}
		body = packed(body, 4, factors...)
		out = message(out, 4, body)
	}
	if len(m.hintVars) > 0 {
		out = message(out, 6, packed(packed(nil, 1, m.hintVars...), 2, m.hintValues...))
	}
	return out, nil
}

// split returns the variables and the factors of the terms.
func (e Linear) split() (vars []Var, factors []int64) {
	for _, t := range e.terms {
		vars, factors = append(vars, t.v), append(factors, t.factor)
	}
	return vars, factors
}

// expression is a LinearExpressionProto.
func expression(e Linear) []byte {
	e = e.merged()
	vars, factors := e.split()
	out := packed(packed(nil, 1, vars...), 2, factors...)
	return integer(out, 3, e.offset)
}

// linearConstraint is a LinearConstraintProto: low <= terms of e <= high, where
// e's own offset is already in low and high; that of its negated literals is not.
func linearConstraint(e Linear, low, high int64) []byte {
	f := e.merged()
	vars, factors := f.split()
	more := f.offset - e.offset
	return packed(packed(packed(nil, 1, vars...), 2, factors...), 3, shifted(low, more), shifted(high, more))
}

// literalList is a BoolArgumentProto.
func literalList(vs []Var) []byte { return packed(nil, 1, vs...) }

// linMax is a LinearArgumentProto.
func linMax(target Linear, es []Linear) []byte {
	out := message(nil, 1, expression(target))
	for _, e := range es {
		out = message(out, 2, expression(e))
	}
	return out
}

// interval is an IntervalConstraintProto.
func interval(start, size, end Linear) []byte {
	return message(message(message(nil, 4, expression(start)), 5, expression(end)), 6, expression(size))
}

// intervalList is a NoOverlapConstraintProto.
func intervalList(xs []Interval) []byte { return packed(nil, 1, xs...) }

func message(b []byte, field int, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(field), protowire.BytesType), body)
}

// packed appends a repeated integer field, nothing if there are no values.
func packed[T ~int32 | ~int64](b []byte, field int, values ...T) []byte {
	if len(values) == 0 {
		return b
	}
	var body []byte
	for _, v := range values {
		body = protowire.AppendVarint(body, uint64(int64(v)))
	}
	return message(b, field, body)
}

// integer appends an integer field, nothing if it is 0.
func integer(b []byte, field int, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(field), protowire.VarintType), uint64(v))
}

func boolean(b []byte, field int, v bool) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(field), protowire.VarintType), protowire.EncodeBool(v))
}

func double(b []byte, field int, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, protowire.Number(field), protowire.Fixed64Type), math.Float64bits(v))
}
