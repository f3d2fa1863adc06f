package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"placer/hw/gpu"
	"placer/internal/dynlib"
)

// cublas is a loaded cuBLAS.
type cublas struct {
	create, destroy, setStream, setWorkspace, setSMs, gemm, gemmBatched uintptr

	version int
	lt      *lt // nil where there is no cublasLt
	handles map[gpu.Handle]*handle
	scalars [2]struct{ one, zero [8]byte } // f32, f64
}

var (
	_ gpu.BLAS      = (*cublas)(nil)
	_ gpu.SMLimiter = (*cublas)(nil)
)

type handle struct {
	stream    gpu.Stream
	workspace gpu.Ptr
	bytes     uint64
	sms       int32 // 0 for all
	lt        ltHandle
}

// OpenBLAS loads the cuBLAS at path, or if path is empty the newest one found that
// a driver of this CUDA version runs, 0 for any.
func OpenBLAS(path string, version int) (gpu.BLAS, error) {
	h, err := openBLAS(path, version)
	if err != nil {
		return nil, err
	}
	b := &cublas{handles: map[gpu.Handle]*handle{}}
	binary.LittleEndian.PutUint32(b.scalars[0].one[:], math.Float32bits(1))
	binary.LittleEndian.PutUint64(b.scalars[1].one[:], math.Float64bits(1))
	if err := dynlib.Find(h, dynlib.Symbols{
		"cublasCreate_v2": &b.create, "cublasDestroy_v2": &b.destroy, "cublasSetStream_v2": &b.setStream,
		"cublasSetWorkspace_v2": &b.setWorkspace, "cublasGemmEx": &b.gemm, "cublasGemmStridedBatchedEx": &b.gemmBatched,
	}); err != nil {
		return nil, fmt.Errorf("cuBLAS is too old: %w", err)
	}
	if at, err := dynlib.LookUp(h, "cublasSetSmCountTarget"); err == nil { // from 11.5 on
		b.setSMs = at
	}
	b.lt = openLt(h)
	return b, b.readVersion(h)
}

// readVersion asks for the version, which is part of a measurement's name before
// there is a handle to ask with.
func (b *cublas) readVersion(library uintptr) error {
	var property uintptr
	if err := dynlib.Find(library, dynlib.Symbols{"cublasGetProperty": &property}); err != nil {
		return fmt.Errorf("cuBLAS is too old: %w", err)
	}
	for part := range uintptr(3) { // major, minor, patch
		var n int32
		if err := status(property, part, uintptr(unsafe.Pointer(&n))); err != nil {
			return fmt.Errorf("cublasGetProperty: %w", err)
		}
		b.version = 100*b.version + int(n)
	}
	return nil
}

// Version is as gpu.BLAS says.
func (b *cublas) Version() int { return b.version }

func (b *cublas) NewHandle() (gpu.Handle, error) {
	var h gpu.Handle
	if err := status(b.create, uintptr(unsafe.Pointer(&h))); err != nil {
		return 0, err
	}
	b.handles[h] = &handle{}
	return h, nil
}

func (b *cublas) DestroyHandle(h gpu.Handle) error {
	if x := b.handles[h]; x != nil {
		b.lt.close(x)
		delete(b.handles, h)
	}
	return status(b.destroy, uintptr(h))
}

func (b *cublas) SetStream(h gpu.Handle, s gpu.Stream) error {
	if b.handles[h] == nil {
		return gpu.Status(1)
	}
	x := b.handles[h]
	x.stream, x.workspace, x.bytes = s, 0, 0
	return status(b.setStream, uintptr(h), uintptr(s))
}

func (b *cublas) SetWorkspace(h gpu.Handle, p gpu.Ptr, n uint64) error {
	if b.handles[h] == nil {
		return gpu.Status(1)
	}
	b.handles[h].workspace, b.handles[h].bytes = p, n
	return status(b.setWorkspace, uintptr(h), uintptr(p), uintptr(n))
}

// LimitSMs is as gpu.SMLimiter says. A library that lacks it chooses for all.
func (b *cublas) LimitSMs(h gpu.Handle, sms int) error {
	if b.handles[h] == nil {
		return gpu.Status(1)
	}
	if b.setSMs == 0 {
		return nil
	}
	b.handles[h].sms = int32(sms)
	return status(b.setSMs, uintptr(h), uintptr(sms))
}

// kinds are cudaDataType_t of the operands and cublasComputeType_t; the same in
// cuBLAS 11, 12 and 13.
var kinds = [gpu.NumDTypes]struct{ data, compute uintptr }{gpu.F32: {0, 68}, gpu.TF32: {0, 77}, gpu.F16: {2, 68}, gpu.BF16: {14, 68}, gpu.F64: {1, 70}}

// Multiply hands the product over as that of the transposes, because cuBLAS
// stores by column: C' [N,M] = B' [N,K] * A' [K,M].
func (b *cublas) Multiply(h gpu.Handle, p *gpu.Product) error {
	if b.handles[h] == nil {
		return gpu.Status(1)
	}
	if p.Type == gpu.F8 {
		return b.lt.multiply(b.handles[h], p)
	}
	const anyAlgorithm = ^uintptr(0)
	k := kinds[p.Type]
	c := &b.scalars[0]
	if p.Type == gpu.F64 {
		c = &b.scalars[1]
	}
	m, n, d := uintptr(p.M), uintptr(p.N), uintptr(p.K)
	x, y, z := p.Operands()
	ta, tb, beta := flag(p.Layout.TransA), flag(p.Layout.TransB), &c.zero
	if p.Layout.Add {
		beta = &c.one
	}
	if p.Batch == 1 {
		return status(b.gemm, uintptr(h), tb, ta, n, m, d, uintptr(unsafe.Pointer(&c.one)),
			uintptr(p.B), k.data, uintptr(y.Row), uintptr(p.A), k.data, uintptr(x.Row), uintptr(unsafe.Pointer(beta)), uintptr(p.C), k.data, uintptr(z.Row), k.compute, anyAlgorithm)
	}
	return status(b.gemmBatched, uintptr(h), tb, ta, n, m, d, uintptr(unsafe.Pointer(&c.one)),
		uintptr(p.B), k.data, uintptr(y.Row), uintptr(y.Step), uintptr(p.A), k.data, uintptr(x.Row), uintptr(x.Step), uintptr(unsafe.Pointer(beta)),
		uintptr(p.C), k.data, uintptr(z.Row), uintptr(z.Step), uintptr(p.Batch), k.compute, anyAlgorithm)
}

// flag is cublasOperation_t: 1 transposes.
func flag(x bool) uintptr {
	if x {
		return 1
	}
	return 0
}
