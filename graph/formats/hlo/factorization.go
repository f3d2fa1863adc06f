package hlo

import (
	"math"
	"strings"

	"placer/graph"
)

// factorization returns the arithmetic of a factorisation of square matrices, or of a solution
// by a triangular one, as that of a product: n^3/3 of Cholesky's, 2 n^3/3 of LU, 4 n^3/3 of
// Householder's reflectors and as many of the matrix that they make, n^2 m of m right-hand sides
// (Golub and Van Loan, Matrix Computations). They are instructions, or calls of LAPACK, cuSOLVER
// and cuBLAS by their routines' names. Zero for all else.
func (x *instruction) factorization() graph.GEMM {
	if len(x.operands) < 1 || x.operands[0].shape.is {
		return graph.GEMM{}
	}
	name := x.opcode
	if name == "custom-call" {
		name = x.attr.target
		if !strings.HasPrefix(name, "lapack_") && !strings.HasPrefix(name, "cusolver_") && !strings.HasPrefix(name, "cublas_") {
			return graph.GEMM{}
		}
	}
	a := x.operands[0].shape.dims
	if len(a) < 2 {
		return graph.GEMM{}
	}
	rows, n := a[len(a)-2], a[len(a)-1]
	g := graph.GEMM{Batch: 1, M: rows, K: n}
	for _, d := range a[:len(a)-2] {
		g.Batch *= d
	}
	part := func(share float64) int64 { return max(int64(math.Round(float64(n)*share)), 1) }
	switch {
	case name == "cholesky", strings.Contains(name, "potrf"):
		g.N = part(1. / 6)
	case strings.Contains(name, "getrf"):
		g.N = part(1. / 3)
	case strings.Contains(name, "geqrf"), strings.Contains(name, "orgqr"), strings.Contains(name, "ungqr"):
		g.N = part(2. / 3)
		if rows > n { // 2 m n^2 - 2 n^3/3
			g.N = part(1 - float64(n)/float64(3*rows))
		}
	case name == "triangular-solve", strings.Contains(name, "trsm"):
		if len(x.operands) < 2 || x.operands[1].shape.is || g.Batch*n == 0 {
			return graph.GEMM{}
		}
		g.M, g.N = x.operands[1].shape.elements()/(g.Batch*n), part(1./2)
	default:
		return graph.GEMM{}
	}
	if g.Batch < 1 || g.M < 1 || g.K < 1 {
		return graph.GEMM{}
	}
	return g
}
