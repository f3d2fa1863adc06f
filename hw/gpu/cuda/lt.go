package cuda

import (
	"unsafe"

	"placer/hw/gpu"
	"placer/internal/dynlib"
)

// lt is cublasLt, which has the products of 8-bit floats that cuBLAS lacks.
type lt struct {
	create, destroy, descCreate, descDestroy, descSet, layoutCreate, layoutDestroy, prefCreate, prefDestroy, prefSet, heuristic, matmul uintptr

	one, zero [8]byte
}

// ltHandle is what a cuBLAS handle has of cublasLt: its handle, which belongs to
// the context it is made in, and plans, which count on the handle's workspace.
type ltHandle struct {
	handle uintptr
	plans  map[ltKey]*ltPlan
}

type ltKey struct {
	m, n, k   int
	workspace uint64
	sms       int32
}

// ltPlan is a product of one shape: its description, operands and algorithm.
type ltPlan struct {
	desc, a, b, c uintptr
	algorithm     [96]byte // cublasLtMatmulHeuristicResult_t starts with the algorithm
}

// openLt returns nil where there is no cublasLt. It looks in what cuBLAS, h, has
// loaded: a library found by its name might be that of another version.
func openLt(h uintptr) *lt {
	l := &lt{}
	l.one[2], l.one[3] = 0x80, 0x3f
	if dynlib.Find(h, dynlib.Symbols{"cublasLtCreate": &l.create, "cublasLtDestroy": &l.destroy, "cublasLtMatmulDescCreate": &l.descCreate, "cublasLtMatmulDescDestroy": &l.descDestroy,
		"cublasLtMatrixLayoutDestroy": &l.layoutDestroy, "cublasLtMatmulPreferenceDestroy": &l.prefDestroy, "cublasLtMatmulDescSetAttribute": &l.descSet,
		"cublasLtMatrixLayoutCreate": &l.layoutCreate, "cublasLtMatmulPreferenceCreate": &l.prefCreate, "cublasLtMatmulPreferenceSetAttribute": &l.prefSet,
		"cublasLtMatmulAlgoGetHeuristic": &l.heuristic, "cublasLtMatmul": &l.matmul}) != nil {
		return nil
	}
	return l
}

const notSupported = gpu.Status(15)

// multiply runs one product of e4m3 operands into bf16. The library wants the
// first operand transposed: as columns, B [N,K] by rows is [K,N].
func (l *lt) multiply(h *handle, p *gpu.Product) error {
	if l == nil || p.Batch != 1 {
		return notSupported
	}
	if h.lt.handle == 0 {
		var made uintptr
		if err := status(l.create, uintptr(unsafe.Pointer(&made))); err != nil {
			return err
		}
		h.lt = ltHandle{made, map[ltKey]*ltPlan{}}
	}
	key := ltKey{p.M, p.N, p.K, h.bytes, h.sms}
	x, ok := h.lt.plans[key]
	if !ok {
		x = &ltPlan{}
		if err := l.plan(h, p, x); err != nil {
			l.drop(x)
			return err
		}
		h.lt.plans[key] = x
	}
	return status(l.matmul, h.lt.handle, x.desc, uintptr(unsafe.Pointer(&l.one)), uintptr(p.B), x.a, uintptr(p.A), x.b, uintptr(unsafe.Pointer(&l.zero)),
		uintptr(p.C), x.c, uintptr(p.C), x.c, uintptr(unsafe.Pointer(&x.algorithm)), uintptr(h.workspace), uintptr(h.bytes), uintptr(h.stream))
}

// close gives back what h has of cublasLt.
func (l *lt) close(h *handle) {
	if l == nil || h.lt.handle == 0 {
		return
	}
	for _, x := range h.lt.plans {
		l.drop(x)
	}
	_ = status(l.destroy, h.lt.handle)
	h.lt = ltHandle{}
}

// drop gives back the parts of x that there are.
func (l *lt) drop(x *ltPlan) {
	for _, layout := range []uintptr{x.a, x.b, x.c} {
		if layout != 0 {
			_ = status(l.layoutDestroy, layout)
		}
	}
	if x.desc != 0 {
		_ = status(l.descDestroy, x.desc)
	}
}

// plan fills x.
func (l *lt) plan(h *handle, p *gpu.Product, x *ltPlan) error {
	const (
		e4m3, bf16, f32, computeF32 = 28, 14, 0, 68
		transposeA, transposed      = 3, 1 // CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T
		smCount                     = 15   // CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET
		maxWorkspace                = 1    // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
	)
	m, n, k := uintptr(p.N), uintptr(p.M), uintptr(p.K)
	op, bytes, sms := int32(transposed), h.bytes, h.sms
	var pref uintptr
	var found int32
	defer func() {
		if pref != 0 {
			_ = status(l.prefDestroy, pref)
		}
	}()
	for _, f := range []func() error{
		func() error { return status(l.descCreate, uintptr(unsafe.Pointer(&x.desc)), computeF32, f32) },
		func() error { return status(l.descSet, x.desc, transposeA, uintptr(unsafe.Pointer(&op)), 4) },
		func() error {
			if sms == 0 {
				return nil
			}
			return status(l.descSet, x.desc, smCount, uintptr(unsafe.Pointer(&sms)), 4)
		},
		func() error { return status(l.layoutCreate, uintptr(unsafe.Pointer(&x.a)), e4m3, k, m, k) },
		func() error { return status(l.layoutCreate, uintptr(unsafe.Pointer(&x.b)), e4m3, k, n, k) },
		func() error { return status(l.layoutCreate, uintptr(unsafe.Pointer(&x.c)), bf16, m, n, m) },
		func() error { return status(l.prefCreate, uintptr(unsafe.Pointer(&pref))) },
		func() error { return status(l.prefSet, pref, maxWorkspace, uintptr(unsafe.Pointer(&bytes)), 8) },
		func() error {
			return status(l.heuristic, h.lt.handle, x.desc, x.a, x.b, x.c, x.c, pref, 1, uintptr(unsafe.Pointer(&x.algorithm)), uintptr(unsafe.Pointer(&found)))
		},
	} {
		if err := f(); err != nil {
			return err
		}
	}
	if found == 0 {
		return notSupported
	}
	return nil
}
