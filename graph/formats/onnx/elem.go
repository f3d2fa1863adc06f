package onnx

import (
	"fmt"

	"placer/graph"
	"placer/units"
)

// elem is an element type: TensorProto.DataType.
type elem int32

// Element types by their numbers in the standard.
const (
	elemNone   elem = 0
	elemFloat  elem = 1
	elemUint8  elem = 2
	elemInt8   elem = 3
	elemInt32  elem = 6
	elemInt64  elem = 7
	elemString elem = 8
	elemBool   elem = 9
	elemHalf   elem = 10
	elemDouble elem = 11
	elemBrain  elem = 16
)

// elems maps the numbers to the nearest type of package graph and the true
// width in bits. Types that have no counterpart get one that computes alike.
var elems = [...]struct {
	name  string
	dtype graph.DType
	bits  int64
}{
	1: {"float", graph.F32, 32}, 2: {"uint8", graph.I8, 8}, 3: {"int8", graph.I8, 8}, 4: {"uint16", graph.I32, 16}, 5: {"int16", graph.I32, 16},
	6: {"int32", graph.I32, 32}, 7: {"int64", graph.I64, 64}, 8: {"string", 0, 0}, 9: {"bool", graph.Bool, 8}, 10: {"float16", graph.F16, 16},
	11: {"double", graph.F64, 64}, 12: {"uint32", graph.I32, 32}, 13: {"uint64", graph.I64, 64}, 14: {"complex64", graph.F64, 64}, 15: {"complex128", graph.F64, 128},
	16: {"bfloat16", graph.BF16, 16}, 17: {"float8e4m3fn", graph.F8, 8}, 18: {"float8e4m3fnuz", graph.F8, 8}, 19: {"float8e5m2", graph.F8, 8}, 20: {"float8e5m2fnuz", graph.F8, 8},
	21: {"uint4", graph.I8, 4}, 22: {"int4", graph.I8, 4}, 23: {"float4e2m1", graph.F8, 4}, 24: {"float8e8m0", graph.F8, 8}, 25: {"uint2", graph.I8, 2}, 26: {"int2", graph.I8, 2},
}

func (e elem) known() bool { return e > 0 && int(e) < len(elems) && elems[e].bits > 0 }

func (e elem) String() string {
	if e > 0 && int(e) < len(elems) {
		return elems[e].name
	}
	return fmt.Sprintf("element type %d", int32(e))
}

func (e elem) dtype() graph.DType { return elems[e].dtype }

// float reports whether e has fractions, and gradients.
func (e elem) float() bool {
	switch {
	case e == elemFloat, e == elemHalf, e == elemDouble, e >= 14 && e <= 20, e == 23, e == 24:
		return true
	}
	return false
}

// smallFloat reports whether e is a float of at most 8 bits that stands, times a scale,
// for a larger one: the float8 types and float4. float8e8m0 is a type of scales.
func (e elem) smallFloat() bool { return e >= 17 && e <= 20 || e == 23 }

// quantized reports whether e is a number of at most 8 bits that stands for a float.
func (e elem) quantized() bool {
	return e == elemUint8 || e == elemInt8 || e == 21 || e == 22 || e == 25 || e == 26 || e.smallFloat()
}

// bytes returns the size of n elements.
func (e elem) bytes(n int64) units.Bytes {
	bits := elems[e].bits
	if bits >= 8 {
		return units.Bytes(n * (bits / 8))
	}
	per := 8 / bits
	return units.Bytes(n/per + min(1, n%per))
}
