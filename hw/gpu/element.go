package gpu

import (
	"encoding/binary"
	"math"
)

// Out returns the type of a product's result.
func (t DType) Out() DType {
	if t == F8 {
		return BF16
	}
	return t
}

// formats are the bits of exponent and fraction of the types that Go lacks.
var formats = [NumDTypes]struct{ exponent, fraction int }{F16: {5, 10}, BF16: {8, 7}, F8: {4, 3}}

// Element returns number i of type t in b. Of f16, bf16 and f8, infinities are no
// numbers.
func (t DType) Element(b []byte, i int) float64 {
	switch t {
	case F32, TF32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	case F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	bits := int(b[i])
	if t != F8 {
		bits = int(binary.LittleEndian.Uint16(b[2*i:]))
	}
	f := formats[t]
	x, bias := bits>>f.fraction&(1<<f.exponent-1), 1<<(f.exponent-1)-1
	switch v := float64(bits&(1<<f.fraction-1)) / float64(int(1)<<f.fraction); {
	case x == 1<<f.exponent-1 && (t != F8 || v == 7./8): // e4m3 has no infinity and one NaN
		return math.NaN()
	case x == 0:
		return sign(bits>>(f.exponent+f.fraction), math.Ldexp(v, 1-bias))
	default:
		return sign(bits>>(f.exponent+f.fraction), math.Ldexp(1+v, x-bias))
	}
}

func sign(negative int, x float64) float64 {
	if negative != 0 {
		return -x
	}
	return x
}

// SetElement rounds x to number i of type t in b, where it is in the range of
// normal numbers; smaller ones become 0. F8, which no result has, is not for it.
func (t DType) SetElement(b []byte, i int, x float64) {
	switch t {
	case F32, TF32:
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
		return
	case F64:
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
		return
	}
	f := formats[t]
	part, power := math.Frexp(math.Abs(x)) // part in [1/2,1)
	digits := int(math.RoundToEven(math.Ldexp(part, f.fraction+1)))
	// A fraction that is rounded up to 1 carries into the exponent.
	bits := (power-2+1<<(f.exponent-1)-1)<<f.fraction + digits
	if x == 0 || bits < 1<<f.fraction {
		bits = 0
	}
	if math.Signbit(x) {
		bits |= 1 << (f.exponent + f.fraction)
	}
	binary.LittleEndian.PutUint16(b[2*i:], uint16(bits))
}
