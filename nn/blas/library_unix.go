//go:build (linux || darwin || freebsd) && (amd64 || arm64)

package blas

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is a BLAS shared library.
type Library struct {
	name  string
	sgemm uintptr
	pool  sync.Pool // of *arguments
}

// arguments are what Fortran's sgemm takes by pointer. Calling it rather than
// cblas_sgemm keeps every argument an integer register's worth.
type arguments struct {
	transA, transB         byte
	m, n, k, lda, ldb, ldc int32
	alpha, beta            float32
}

func open(name string) (*Library, error) {
	h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	f, err := purego.Dlsym(h, "sgemm_")
	if err != nil {
		return nil, fmt.Errorf("has no sgemm: %w", err)
	}
	if threads, err := purego.Dlsym(h, "openblas_set_num_threads"); err == nil {
		purego.SyscallN(threads, 1)
	}
	l := &Library{name: name, sgemm: f}
	l.pool.New = func() any { return new(arguments) }
	return l, nil
}

// Name returns the name the library was opened by.
func (l *Library) Name() string { return l.name }

// Sgemm is as Gemm says. Fortran is column-major, so it computes the transposed
// product op(B)' op(A)'.
func (l *Library) Sgemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	check(transA, transB, m, n, k, len(a), lda, len(b), ldb, len(c), ldc)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 || m > 1<<30 || n > 1<<30 || k > 1<<30 {
		Gonum{}.Sgemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	g := l.pool.Get().(*arguments)
	*g = arguments{letter(transA), letter(transB), int32(m), int32(n), int32(k), int32(lda), int32(ldb), int32(ldc), alpha, beta}
	purego.SyscallN(l.sgemm,
		uintptr(unsafe.Pointer(&g.transB)), uintptr(unsafe.Pointer(&g.transA)),
		uintptr(unsafe.Pointer(&g.n)), uintptr(unsafe.Pointer(&g.m)), uintptr(unsafe.Pointer(&g.k)),
		uintptr(unsafe.Pointer(&g.alpha)), uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&g.ldb)),
		uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&g.lda)),
		uintptr(unsafe.Pointer(&g.beta)), uintptr(unsafe.Pointer(&c[0])), uintptr(unsafe.Pointer(&g.ldc)),
		1, 1) // lengths of the two strings
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	runtime.KeepAlive(c)
	l.pool.Put(g)
}

func letter(t bool) byte {
	if t {
		return 'T'
	}
	return 'N'
}
