package blas

import "fmt"

// Gemm computes C = alpha op(A) op(B) + beta C with C [m,n], op(A) [m,k] and
// op(B) [k,n]; op transposes where transA or transB is set. With beta 0, C is
// written without being read. It panics if a slice is too short, and may be
// called from several goroutines on disjoint C.
type Gemm interface {
	Sgemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int)
	// Name says which implementation this is, for reports.
	Name() string
}

// check panics unless every access of the product stays inside its slice.
func check(transA, transB bool, m, n, k, lenA, lda, lenB, ldb, lenC, ldc int) {
	if m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("blas: sgemm of negative size m=%d n=%d k=%d", m, n, k))
	}
	rowsA, colsA := m, k
	if transA {
		rowsA, colsA = k, m
	}
	rowsB, colsB := k, n
	if transB {
		rowsB, colsB = n, k
	}
	operand("A", rowsA, colsA, lenA, lda)
	operand("B", rowsB, colsB, lenB, ldb)
	operand("C", m, n, lenC, ldc)
}

func operand(name string, rows, cols, length, ld int) {
	if ld < cols || ld < 1 || ld > 1<<30 {
		panic(fmt.Sprintf("blas: sgemm: %s [%d,%d] has leading dimension %d", name, rows, cols, ld))
	}
	if rows > 0 && cols > 0 && length < ld*(rows-1)+cols {
		panic(fmt.Sprintf("blas: sgemm: %s [%d,%d] with leading dimension %d needs %d elements, has %d", name, rows, cols, ld, ld*(rows-1)+cols, length))
	}
}
