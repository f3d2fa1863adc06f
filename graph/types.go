package graph

import (
	"fmt"
	"math"

	"placer/units"
)

// OpID indexes ops, 0..N-1, in topological order.
type OpID int32

// TensorID indexes tensors, 0..T-1, ordered by producer, then by output slot.
type TensorID int32

// None is the absent op.
const None OpID = -1

// DType is an element type.
type DType uint8

// Element types. F32 is the zero value.
const (
	F32 DType = iota
	F16
	BF16
	F64
	TF32
	F8
	I8
	I32
	I64
	Bool
	F4
	numDTypes
)

var dtypeNames = [numDTypes]string{"f32", "f16", "bf16", "f64", "tf32", "f8", "i8", "i32", "i64", "bool", "f4"}
var dtypeSizes = [numDTypes]int64{4, 2, 2, 8, 4, 1, 1, 4, 8, 1, 1}

func (d DType) String() string {
	if d < numDTypes {
		return dtypeNames[d]
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Size returns the bytes of one element, of F4 that of two: it is a type of arithmetic.
func (d DType) Size() int64 { return dtypeSizes[d] }

// ParseDType reads a name that String prints.
func ParseDType(s string) (DType, error) {
	for i, n := range dtypeNames {
		if n == s {
			return DType(i), nil
		}
	}
	return 0, fmt.Errorf("unknown element type %q", s)
}

// Shape is a list of dimensions, outermost first; empty means a scalar.
type Shape []int64

// Elements returns the number of elements, or an error where it is negative or
// does not fit.
func (s Shape) Elements() (int64, error) {
	n := int64(1)
	for _, d := range s {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", s)
		}
		if d > 0 && n > math.MaxInt64/16/d {
			return 0, fmt.Errorf("shape %v is too large", s)
		}
		n *= d
	}
	return n, nil
}

// Equal reports whether s and t have the same dimensions.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] != t[i] {
			return false
		}
	}
	return true
}

// Phase says to which part of a training step an op belongs.
type Phase uint8

// Phases of a step. A graph that was not derived for training is all Forward.
const (
	Forward  Phase = iota
	Backward       // gradients
	Update         // optimizer
)

var phaseNames = [...]string{"forward", "backward", "update"}

func (p Phase) String() string { return phaseNames[p] }

// GEMM gives the matrix product an op amounts to: Batch products of [M,K] and
// [K,N]. A convolution is its implicit product: M = batch*height*width of the
// output, N = output channels, K = input channels per group * kernel area,
// Batch = groups. The zero value means that the op is no product.
type GEMM struct{ Batch, M, N, K int64 }

// FLOPs returns 2*Batch*M*N*K.
func (m GEMM) FLOPs() units.FLOPs {
	return units.FLOPs(2 * float64(m.Batch) * float64(m.M) * float64(m.N) * float64(m.K))
}

// IsZero reports whether the op is no product.
func (m GEMM) IsZero() bool { return m == GEMM{} }

// Op is one operation. Its inputs, outputs and control dependencies are in the
// graph.
type Op struct {
	Name  string // unique in the graph
	Kind  Kind
	Phase Phase
	DType DType // of the arithmetic
	// Precise says that a product of f32 is one, where a device could take tf32 for it.
	Precise bool
	FLOPs   units.FLOPs // of one step
	GEMM    GEMM        // of one iteration
	// Repeats is how many iterations the op runs one after another, each with kernels of
	// its own: a recurrent layer over time steps, a loop. 0 and 1 mean once; Build makes 1
	// to 0. FLOPs and Bytes are of all iterations. It means nothing for kinds that launch
	// no kernel.
	Repeats int64
	// Kernels is how many kernels one iteration launches, one after another; 0 and 1 mean
	// one; Build makes 1 to 0.
	Kernels int64
	// Bytes is the device-memory traffic of one execution when not fused: bytes
	// read plus bytes written. Build fills it from the kind's facts and the
	// tensors when it is negative.
	Bytes units.Bytes
	// Resident bytes are held on the op's device for the whole step: parameters,
	// optimizer slots, constants.
	Resident units.Bytes
	// Params counts the trainable parameters that the op holds (elements).
	Params int64
	// Workspace bytes are held while the op runs.
	Workspace units.Bytes
	// Layer is the model's layer, from 1, for the human expert's placement; 0
	// where the graph does not say. It is an annotation: nothing but that
	// baseline reads it.
	Layer int32
	// Group is the co-location group, from 1; ops of one group must share a
	// device. 0 for no constraint.
	Group int32
	// Forward is, for a backward op, the forward op whose gradient it computes;
	// None where unknown. It means nothing in the other phases.
	Forward OpID
	// Module is the path of the op's module in the model's source,
	// "transformer.h.3.attn"; "" is the model itself, or where the graph does not say.
	// It is an annotation and no part of the graph's hash.
	Module string
}

// MaxRepeats bounds the kernels that an op launches in all its iterations.
const MaxRepeats = 1 << 40

// Iterations returns how many iterations the op runs, and the kernels of each: at least 1.
func (o *Op) Iterations() (repeats, kernels int64) { return max(o.Repeats, 1), max(o.Kernels, 1) }

// Tensor is one output of an op.
type Tensor struct {
	Producer OpID // filled by Build
	DType    DType
	Shape    Shape // nil when only Bytes is known
	// Bytes is what the tensor occupies and what a transfer of it moves. Build
	// fills it from Shape and DType when it is negative.
	Bytes units.Bytes
	// Resident tensors are views of an op's Resident bytes (a variable, its
	// read): they occupy nothing more on the device of their producer.
	Resident bool
}
