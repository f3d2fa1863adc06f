package blas

import "sync"

// Native is our own product in Go assembly, for amd64 processors with AVX2 and
// FMA or with AVX-512. It packs op(B) into panels of a few columns and walks the
// rows of op(A) in place, which suits the tall, narrow matrices of the policy
// network.
type Native struct {
	name         string
	wide, narrow tile      // narrow: for matrices C of no more columns than it has
	pool         sync.Pool // of *workspace
}

// tile is the part of C, of so many rows and columns, that one kernel call computes. An
// element of C is the same whatever the tile: all sum it up in the same order.
type tile struct {
	rows, columns int
	kernel        kernel
}

// kernel adds to (or with store, sets) the tile c, with rows ldc bytes apart, the
// product of k columns of op(A) and k rows of a packed panel b. Element (i,p) of
// op(A) is rowStride i + colStride p bytes behind a.
type kernel func(k int, a *float32, rowStride, colStride int, b, c *float32, ldc int, store bool)

type workspace struct {
	b, a, c []float32
}

// depth is the number of rows of op(B) packed at a time: a panel of 32 columns
// then takes 32 KiB.
const depth = 256

// InGo returns the fastest product that needs no library: a Native one where the
// processor has the instructions, else gonum's.
func InGo() Gemm {
	if all := natives(); len(all) > 0 {
		return all[0]
	}
	return Gonum{}
}

// Name says which instructions are used.
func (n *Native) Name() string { return n.name }

// Sgemm is as Gemm says.
func (n *Native) Sgemm(transA, transB bool, m, cols, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	check(transA, transB, m, cols, k, len(a), lda, len(b), ldb, len(c), ldc)
	if m == 0 || cols == 0 {
		return
	}
	if beta != 0 && beta != 1 || k == 0 {
		scale(c, m, cols, ldc, beta)
		beta = 1
	}
	w, _ := n.pool.Get().(*workspace)
	if w == nil {
		w = new(workspace)
	}
	t := &n.wide
	if cols <= n.narrow.columns {
		t = &n.narrow
	}
	for p := 0; p < k; p += depth {
		d := min(depth, k-p)
		at := p * ldb
		if transB {
			at = p
		}
		panels := b[at:]
		if transB || cols != t.columns || ldb != t.columns || alpha != 1 { // else it is a panel
			panels = w.pack(b[at:], ldb, transB, d, cols, t.columns, alpha)
		}
		t.multiply(w, panels, transA, m, cols, d, p, a, lda, c, ldc, beta == 0 && p == 0)
	}
	n.pool.Put(w)
}

func scale(c []float32, m, n, ldc int, beta float32) {
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}

func sized(b []float32, n int) []float32 {
	if cap(b) < n {
		return make([]float32, n)
	}
	return b[:n]
}

// pack returns rows 0 to d of op(B) [.,cols], times alpha, in panels of width columns, row
// after row, filled up with zeros. They are w's.
func (w *workspace) pack(b []float32, ldb int, trans bool, d, cols, width int, alpha float32) []float32 {
	w.b = sized(w.b, (cols+width-1)/width*d*width)
	to := w.b
	for j := 0; j < cols; j += width {
		panel := to[j*d : j*d+width*d]
		n := min(width, cols-j)
		if n < width {
			clear(panel)
		}
		if trans {
			for i := range n {
				src := b[(j+i)*ldb : (j+i)*ldb+d]
				for p, v := range src {
					panel[p*width+i] = v
				}
			}
		} else {
			for p := range d {
				copy(panel[p*width:p*width+n], b[p*ldb+j:p*ldb+j+n])
			}
		}
		if alpha != 1 {
			for i := range panel {
				panel[i] *= alpha
			}
		}
	}
	return to
}

// multiply runs the kernel over the tiles of C for d rows in panels b, the rows of
// op(B) from p on. Tiles at the lower and right edge go through a whole tile
// elsewhere, so that no kernel touches what is not ours.
func (t *tile) multiply(w *workspace, b []float32, transA bool, m, cols, d, p int, a []float32, lda int, c []float32, ldc int, store bool) {
	rowStride, colStride := lda*4, 4
	if transA {
		rowStride, colStride = 4, lda*4
	}
	first := func(i int) int {
		if transA {
			return p*lda + i
		}
		return i*lda + p
	}
	whole := m - m%t.rows
	if whole < m { // the last rows of op(A), filled up with zeros
		w.a = sized(w.a, t.rows*d)
		clear(w.a)
		for i := whole; i < m; i++ {
			at, row := first(i), w.a[(i-whole)*d:(i-whole+1)*d]
			if !transA {
				copy(row, a[at:at+d])
				continue
			}
			for l := range row {
				row[l] = a[at+l*lda]
			}
		}
	}
	w.c = sized(w.c, t.rows*t.columns)
	for j := 0; j < cols; j += t.columns {
		panel := &b[j*d]
		width := min(t.columns, cols-j)
		for i := 0; i < m; i += t.rows {
			from, rs, cs, height := &w.a, d*4, 4, m-i
			var start *float32
			if i < whole {
				start, rs, cs, height = &a[first(i)], rowStride, colStride, t.rows
			} else {
				start = &(*from)[0]
			}
			if height == t.rows && width == t.columns {
				t.kernel(d, start, rs, cs, panel, &c[i*ldc+j], ldc*4, store)
				continue
			}
			t.kernel(d, start, rs, cs, panel, &w.c[0], t.columns*4, true)
			for y := range height {
				dst, src := c[(i+y)*ldc+j:(i+y)*ldc+j+width], w.c[y*t.columns:]
				if store {
					copy(dst, src)
					continue
				}
				for x := range dst {
					dst[x] += src[x]
				}
			}
		}
	}
}
