package onnx

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxValue bounds the elements of constants that are decoded and computed with:
// shapes, axes, ranges of positions.
const maxValue = 1024

// value is a small constant: i where the elements are integers or booleans, f
// where they are floats.
type value struct {
	i []int64
	f []float64
}

func intValue(i ...int64) *value { return &value{i: append([]int64{}, i...)} }

func (v *value) len() int { return len(v.i) + len(v.f) }

// at returns element k as a float.
func (v *value) at(k int) float64 {
	if v.f != nil {
		return v.f[k]
	}
	return float64(v.i[k])
}

// uniform reports whether v is known and has several elements, all equal: exporters write
// so the scales and offsets that a normalisation does not have.
func (v *value) uniform() bool {
	for k := 1; v != nil && k < v.len(); k++ {
		if v.at(k) != v.at(0) {
			return false
		}
	}
	return v != nil && v.len() > 1
}

// ints returns the elements as integers, ok where they all are.
func (v *value) ints() (list []int64, ok bool) {
	if v.f == nil {
		return v.i, true
	}
	for _, x := range v.f {
		if x != math.Trunc(x) || math.Abs(x) > 1<<62 {
			return nil, false
		}
		list = append(list, int64(x))
	}
	return list, true
}

// decode returns the elements of t, nil where they are too many, cannot be read from another
// file, or are of a type that shapes are not made of.
func (t *initializer) decode() *value {
	n := int64(1)
	for _, d := range t.dims {
		if n *= d; n > maxValue {
			return nil
		}
	}
	if t.sparse >= 0 {
		return nil
	}
	v, data := &value{}, t.data
	switch e := elem(t.elem); e {
	case elemFloat, elemDouble, elemHalf, elemBrain:
		v.f = make([]float64, 0, n)
	case elemInt64, elemInt32, elemBool, elemUint8, elemInt8, 12, 13:
		v.i = make([]int64, 0, n)
	default:
		return nil
	}
	if t.external != nil {
		f, ok := t.external.elements(elem(t.elem), n)
		if !ok {
			return nil
		}
		data = []field{f}
	}
	for _, f := range data {
		if !v.add(elem(t.elem), f) {
			return nil
		}
	}
	if int64(v.len()) != n {
		return nil
	}
	return v
}

// rawData is the field of little-endian elements; the other data fields hold numbers,
// and each element type has its own.
const rawData = 9

// add appends the elements in one data field.
func (v *value) add(e elem, f field) bool {
	b := f.sub.data
	if f.num == rawData {
		for size := int(elems[e].bits / 8); len(b) >= size && v.len() <= maxValue; b = b[size:] {
			var word [8]byte
			copy(word[:], b[:size])
			v.append(e, binary.LittleEndian.Uint64(word[:]))
		}
		return len(b) == 0
	}
	if want := dataField(e); want != f.num && (want != 0 || f.num != 5 && f.num != 7 && f.num != 11) {
		return false
	}
	if f.typ != protowire.BytesType {
		v.append(e, f.number)
		return true
	}
	for len(b) > 0 && v.len() <= maxValue {
		var x uint64
		n := -1
		switch f.num {
		case 4:
			var y uint32
			y, n = protowire.ConsumeFixed32(b)
			x = uint64(y)
		case 10:
			x, n = protowire.ConsumeFixed64(b)
		case 5, 7, 11:
			x, n = protowire.ConsumeVarint(b)
		}
		if n < 0 {
			return false
		}
		v.append(e, x)
		b = b[n:]
	}
	return len(b) == 0
}

// dataField is the field that holds floats of type e; 0 for integers, of which
// there are three.
func dataField(e elem) protowire.Number {
	switch e {
	case elemFloat:
		return 4
	case elemDouble:
		return 10
	case elemHalf, elemBrain:
		return 5
	}
	return 0
}

// append adds the element of type e whose bits are x.
func (v *value) append(e elem, x uint64) {
	switch e {
	case elemFloat:
		v.f = append(v.f, float64(math.Float32frombits(uint32(x))))
	case elemDouble:
		v.f = append(v.f, math.Float64frombits(x))
	case elemHalf:
		v.f = append(v.f, half(uint16(x)))
	case elemBrain:
		v.f = append(v.f, float64(math.Float32frombits(uint32(x)<<16)))
	case elemInt32:
		v.i = append(v.i, int64(int32(x)))
	case elemInt8:
		v.i = append(v.i, int64(int8(x)))
	default:
		v.i = append(v.i, int64(x))
	}
}

// half converts an IEEE 754 half.
func half(h uint16) float64 {
	sign, exp, frac := float64(1), int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}
