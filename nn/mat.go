package nn

import "fmt"

// Mat is a dense row-major matrix of N rows and D columns. Copies share V.
type Mat struct {
	N, D int
	V    []float32 // [N*D]
}

// NewMat returns a zero matrix.
func NewMat(n, d int) Mat { return Mat{n, d, make([]float32, n*d)} }

// Row returns row i; writing to it writes to the matrix.
func (m Mat) Row(i int) []float32 { return m.V[i*m.D : i*m.D+m.D : i*m.D+m.D] }

// Rows returns rows lo up to hi as a matrix that shares them.
func (m Mat) Rows(lo, hi int) Mat { return Mat{hi - lo, m.D, m.V[lo*m.D : hi*m.D]} }

// Clone returns a copy with its own elements.
func (m Mat) Clone() Mat { return Mat{m.N, m.D, append([]float32(nil), m.V...)} }

// String gives the shape.
func (m Mat) String() string { return fmt.Sprintf("[%d,%d]", m.N, m.D) }

// want panics unless m has the shape [n,d] and as many elements.
func (m Mat) want(who string, n, d int) {
	if m.N != n || m.D != d || len(m.V) != n*d {
		panic(fmt.Sprintf("nn: %s: matrix %s of %d elements, want [%d,%d]", who, m, len(m.V), n, d))
	}
}
