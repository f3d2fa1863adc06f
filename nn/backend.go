package nn

import (
	"errors"
	"sync"

	"placer/internal/faults"
	"placer/nn/blas"
)

// Config says how matrices are multiplied and on how many goroutines.
type Config struct {
	// Product, if not nil, multiplies matrices; Libraries are not tried then.
	Product blas.Gemm
	// Libraries are the BLAS libraries to try in turn before the product in Go.
	// nil means blas.Candidates where the product in Go is gonum's, and none
	// where it is a blas.Native, which is as fast on the policy network's shapes
	// and does not vary with what is installed. An empty slice means none.
	Libraries []string
	// Workers is the number of goroutines that share the rows of a matrix; more
	// than Pieces are of little use.
	Workers int
	// Device, if not nil, runs compiled graphs and the optimiser; Product and
	// Workers then serve objectives on the host alone.
	Device Device
}

// Default returns one worker and the automatic choice of a product.
func Default() Config { return Config{Workers: 1} }

// validate reports every fault of c.
func (c Config) validate() error {
	var all faults.List
	all.If(c.Workers < 1, "nn: workers is %d, want at least 1", c.Workers)
	return errors.Join(all...)
}

// Backend does the arithmetic: a matrix product and workers. It holds no other
// state and may be shared by graphs, also by graphs that run at the same time.
type Backend struct {
	gemm    blas.Gemm
	workers int
	missing error
	device  Device
}

// NewBackend chooses a matrix product as c says.
func NewBackend(c Config) (*Backend, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Product != nil {
		return &Backend{gemm: c.Product, workers: c.Workers, device: c.Device}, nil
	}
	b := &Backend{gemm: blas.InGo(), workers: c.Workers, device: c.Device}
	if _, slow := b.gemm.(blas.Gonum); slow && c.Libraries == nil {
		c.Libraries = blas.Candidates()
	}
	if len(c.Libraries) > 0 {
		l, err := blas.Open(c.Libraries...)
		if err != nil {
			b.missing = err
			return b, nil
		}
		b.gemm = l
	}
	return b, nil
}

// Name says which device or matrix product is in use.
func (b *Backend) Name() string {
	if b.device != nil {
		return b.device.Name()
	}
	return b.gemm.Name()
}

// Device returns the device that graphs run on, nil for none.
func (b *Backend) Device() Device { return b.device }

// Missing tells why the product in Go is in use although a library was asked
// for; it is nil otherwise.
func (b *Backend) Missing() error { return b.missing }

// Gemm computes C = op(A) op(B) + beta C; see blas.Gemm.
func (b *Backend) Gemm(transA, transB bool, m, n, k int, a []float32, lda int, x []float32, ldx int, beta float32, c []float32, ldc int) {
	b.gemm.Sgemm(transA, transB, m, n, k, 1, a, lda, x, ldx, beta, c, ldc)
}

const (
	// pieceRows rows of 128 columns are 128 KiB: they stay in the second-level
	// cache between the steps of one operation.
	pieceRows = 256
	// Pieces is the number of partial sums of a reduction over rows. It does not
	// follow the number of workers, so results do not either.
	Pieces = 8
)

// pieceCount is the number of partial sums that n rows fill.
func pieceCount(n int) int { return min(Pieces, (n+pieceRows-1)/pieceRows) }

// Rows calls f for blocks of rows that cover [0,n). Blocks of one piece come in
// rising order on one worker; first marks the first of them. Pieces run at the
// same time on different workers.
func (b *Backend) Rows(n int, f func(worker, piece int, first bool, lo, hi int)) {
	b.Each(pieceCount(n), func(worker, piece int) {
		for lo := piece * pieceRows; lo < n; lo += Pieces * pieceRows {
			f(worker, piece, lo == piece*pieceRows, lo, min(lo+pieceRows, n))
		}
	})
}

// Each calls f for every item of [0,n); worker w takes items w, w+workers, ...
// in this order.
func (b *Backend) Each(n int, f func(worker, item int)) {
	p := min(b.workers, n)
	if p <= 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	var wait sync.WaitGroup
	for w := 1; w < p; w++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := w; i < n; i += p {
				f(w, i)
			}
		}()
	}
	for i := 0; i < n; i += p {
		f(0, i)
	}
	wait.Wait()
}
