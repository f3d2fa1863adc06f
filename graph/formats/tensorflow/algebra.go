package tensorflow

import (
	"math"
	"strings"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/units"
)

// factorization returns the arithmetic of a factorisation, a solution or an inverse of matrices as
// that of a product: n^3/3 of Cholesky's, 2 n^3/3 of LU and 2 n^2 for each right-hand side, n^2 of a
// triangular one, 8 n^3/3 of a QR with its Q, 2 n^3 of an inverse (Golub and Van Loan, Matrix
// Computations). Zero for other operators.
func factorization(n *nodepb.NodeDef, in []output) graph.GEMM {
	if len(in) == 0 || len(in[0].shape) < 2 {
		return graph.GEMM{}
	}
	a := in[0].shape
	rows, size := a[len(a)-2], a[len(a)-1]
	g := graph.GEMM{Batch: elements(a[:len(a)-2]), M: rows, K: size}
	columns := func() int64 {
		if len(in) < 2 || len(in[1].shape) < 2 {
			return 0
		}
		return in[1].shape[len(in[1].shape)-1]
	}
	part := func(share float64) int64 { return max(int64(math.Round(float64(size)*share)), 1) }
	switch n.Op {
	case "Cholesky":
		g.N = part(1. / 6)
	case "MatrixSolve":
		g.N = part(1./3) + columns()
	case "MatrixTriangularSolve":
		g.M, g.N = columns(), part(1./2)
	case "Qr":
		g.N = part(4. / 3)
	case "MatrixInverse":
		g.N = size
	default:
		return graph.GEMM{}
	}
	return sound(g)
}

// fourier is the arithmetic of a fast Fourier transform: 5 n log2 n for n complex elements, and half
// of it where one side is real. 0 for other operators, and where sizes are not known.
func fourier(op string, in, outs []output) units.FLOPs {
	at := strings.Index(op, "FFT")
	if at < 0 || len(in) == 0 || len(outs) == 0 {
		return 0
	}
	whole, share := in[0].shape, 5.
	if strings.Contains(op[:at], "R") {
		share = 2.5
	}
	if strings.HasPrefix(op, "I") {
		whole = outs[0].shape
	}
	dims := map[string]int{"": 1, "2D": 2, "3D": 3}[op[at+3:]]
	if dims == 0 || len(whole) < dims || elements(whole) < 1 {
		return 0
	}
	return units.FLOPs(share * float64(elements(whole)) * math.Log2(float64(elements(whole[len(whole)-dims:]))))
}
