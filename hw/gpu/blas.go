package gpu

// Handle is a cuBLAS handle: a stream, a workspace, the choice of kernels.
type Handle uint64

// DType is an element type of a matrix product.
type DType uint8

// Element types: of the operands and, TF32 apart, of the result. Sums are kept
// in f32, those of F64 in f64. F8 is e4m3 with a result of bf16.
const (
	F32 DType = iota
	TF32
	F16
	BF16
	F64
	F8
	NumDTypes
)

var dtypeNames = [NumDTypes]string{"f32", "tf32", "f16", "bf16", "f64", "f8"}
var dtypeSizes = [NumDTypes]uint64{4, 4, 2, 2, 8, 1}

func (t DType) String() string { return dtypeNames[t] }

// Size returns the bytes of an element of an operand.
func (t DType) Size() uint64 { return dtypeSizes[t] }

// OutSize returns the bytes of an element of the result.
func (t DType) OutSize() uint64 {
	if t == F8 {
		return 2
	}
	return dtypeSizes[t]
}

// Product is Batch products C = A*B of row-major [M,K] and [K,N], one behind the
// other in memory. An F8 product reads B as [N,K] and takes no layout.
type Product struct {
	Type           DType
	Batch, M, N, K int
	A, B, C        Ptr
	Layout         Layout
}

// Layout says how the operands of a Product lie in memory, and what becomes of
// the result. The zero value is the plain product.
type Layout struct {
	TransA, TransB bool // A is kept as [K,M], B as [N,K]
	Add            bool // C += A*B
	// Elements from one row to the next; 0 where rows touch.
	RowA, RowB, RowC int
	// Elements from one of Batch matrices to the next; 0 where they touch.
	StepA, StepB, StepC int
}

// Operand is a matrix of a Product as it lies in memory: Rows of Columns elements.
type Operand struct{ Rows, Columns, Row, Step int }

// Operands returns the layout of A, B and C with every number filled in.
func (p *Product) Operands() (a, b, c Operand) {
	l := p.Layout
	a, b, c = Operand{p.M, p.K, l.RowA, l.StepA}, Operand{p.K, p.N, l.RowB, l.StepB}, Operand{p.M, p.N, l.RowC, l.StepC}
	if l.TransA {
		a.Rows, a.Columns = p.K, p.M
	}
	if l.TransB {
		b.Rows, b.Columns = p.N, p.K
	}
	for _, o := range []*Operand{&a, &b, &c} {
		if o.Row == 0 {
			o.Row = o.Columns
		}
		if o.Step == 0 {
			o.Step = o.Rows * o.Row
		}
	}
	return a, b, c
}

// Span returns the elements from the first of batch matrices to the end of the
// last.
func (o Operand) Span(batch int) uint64 {
	return uint64((batch-1)*o.Step + (o.Rows-1)*o.Row + o.Columns)
}

// Bytes returns the sizes of the three operands.
func (p *Product) Bytes() (a, b, c uint64) {
	n := uint64(p.Batch)
	return n * uint64(p.M) * uint64(p.K) * p.Type.Size(), n * uint64(p.K) * uint64(p.N) * p.Type.Size(), n * uint64(p.M) * uint64(p.N) * p.Type.OutSize()
}

// BLAS is what the project asks of cuBLAS. Errors of the library are of type
// Status, perhaps wrapped.
type BLAS interface {
	// Version returns the version of the library, 130000 for 13.0.
	Version() int
	// NewHandle makes a handle in the current context.
	NewHandle() (Handle, error)
	DestroyHandle(Handle) error
	// SetStream chooses the stream, and drops the workspace.
	SetStream(Handle, Stream) error
	// SetWorkspace gives the handle memory of its own, which capturing needs.
	SetWorkspace(Handle, Ptr, uint64) error
	// Multiply runs p on the handle's stream. Types and shapes that the library or
	// the device lacks are NOT_SUPPORTED.
	Multiply(Handle, *Product) error
}

// SMLimiter is implemented by a BLAS that can choose its kernels for a Part of a
// device; it takes all multiprocessors of the device for its own otherwise.
type SMLimiter interface {
	LimitSMs(h Handle, sms int) error
}
