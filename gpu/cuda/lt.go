package cuda

import (
	"unsafe"

	"placer/gpu"
)

// lt is cublasLt, which has the products of 8-bit floats that cuBLAS lacks.
type lt struct {
	create, descCreate, descSet, layoutCreate, prefCreate, prefSet, heuristic, matmul uintptr

	handle    uintptr
	plans     map[[3]int]*ltPlan
	one, zero [8]byte
}

// ltPlan is a product of one shape: its description, operands and algorithm.
type ltPlan struct {
	desc, a, b, c uintptr
	algorithm     [96]byte // cublasLtMatmulHeuristicResult_t starts with the algorithm
}

// openLt returns nil where there is no cublasLt. cuBLAS, at path, has loaded it
// from beside itself already, so that its name alone finds it.
func openLt(path string) *lt {
	names := []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"}
	if path != "" {
		names = append(names, path)
	}
	h, err := open(names)
	if err != nil {
		return nil
	}
	l := &lt{plans: map[[3]int]*ltPlan{}}
	l.one[2], l.one[3] = 0x80, 0x3f
	if find(h, []symbol{{&l.create, "cublasLtCreate"}, {&l.descCreate, "cublasLtMatmulDescCreate"}, {&l.descSet, "cublasLtMatmulDescSetAttribute"},
		{&l.layoutCreate, "cublasLtMatrixLayoutCreate"}, {&l.prefCreate, "cublasLtMatmulPreferenceCreate"}, {&l.prefSet, "cublasLtMatmulPreferenceSetAttribute"},
		{&l.heuristic, "cublasLtMatmulAlgoGetHeuristic"}, {&l.matmul, "cublasLtMatmul"}}) != nil {
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
	if l.handle == 0 {
		if err := status(l.create, uintptr(unsafe.Pointer(&l.handle))); err != nil {
			return err
		}
	}
	x, ok := l.plans[[3]int{p.M, p.N, p.K}]
	if !ok {
		var err error
		if x, err = l.plan(h, p); err != nil {
			return err
		}
		l.plans[[3]int{p.M, p.N, p.K}] = x
	}
	return status(l.matmul, l.handle, x.desc, uintptr(unsafe.Pointer(&l.one)), uintptr(p.B), x.a, uintptr(p.A), x.b, uintptr(unsafe.Pointer(&l.zero)),
		uintptr(p.C), x.c, uintptr(p.C), x.c, uintptr(unsafe.Pointer(&x.algorithm)), uintptr(h.workspace), uintptr(h.bytes), uintptr(h.stream))
}

func (l *lt) plan(h *handle, p *gpu.Product) (*ltPlan, error) {
	const (
		e4m3, bf16, f32, computeF32 = 28, 14, 0, 68
		transposeA, transposed      = 3, 1 // CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T
		maxWorkspace                = 1    // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
	)
	x := &ltPlan{}
	m, n, k := uintptr(p.N), uintptr(p.M), uintptr(p.K)
	op, bytes := int32(transposed), h.bytes
	var pref uintptr
	var found int32
	for _, f := range []func() error{
		func() error { return status(l.descCreate, uintptr(unsafe.Pointer(&x.desc)), computeF32, f32) },
		func() error { return status(l.descSet, x.desc, transposeA, uintptr(unsafe.Pointer(&op)), 4) },
		func() error { return status(l.layoutCreate, uintptr(unsafe.Pointer(&x.a)), e4m3, k, m, k) },
		func() error { return status(l.layoutCreate, uintptr(unsafe.Pointer(&x.b)), e4m3, k, n, k) },
		func() error { return status(l.layoutCreate, uintptr(unsafe.Pointer(&x.c)), bf16, m, n, m) },
		func() error { return status(l.prefCreate, uintptr(unsafe.Pointer(&pref))) },
		func() error { return status(l.prefSet, pref, maxWorkspace, uintptr(unsafe.Pointer(&bytes)), 8) },
		func() error {
			return status(l.heuristic, l.handle, x.desc, x.a, x.b, x.c, x.c, pref, 1, uintptr(unsafe.Pointer(&x.algorithm)), uintptr(unsafe.Pointer(&found)))
		},
	} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	if found == 0 {
		return nil, notSupported
	}
	return x, nil
}
