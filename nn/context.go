package nn

// Context is what a kernel gets besides its matrices: the backend and scratch
// memory. Operations of a graph run one after another, so all of them share one
// Context; what a scratch buffer holds is lost when the operation returns.
type Context struct {
	*Backend
	shared [][]float32
	worker [][][]float32
	piece  [Pieces][][]float32

	training bool // a backward pass may follow: if not, a kernel keeps nothing
}

// NewContext returns a context without scratch memory yet; a Graph makes its own.
func NewContext(b *Backend) *Context {
	return &Context{Backend: b, worker: make([][][]float32, b.workers)}
}

// Shared returns scratch buffer key with n elements, contents undefined.
func (c *Context) Shared(key, n int) []float32 { return grown(&c.shared, key, n) }

// Kept returns n elements that stay until the backward pass: the kernel's own,
// which *own holds, when training, and scratch buffer key of Shared otherwise.
func (c *Context) Kept(own *[]float32, key, n int) []float32 {
	if !c.training {
		return c.Shared(key, n)
	}
	if len(*own) != n {
		*own = make([]float32, n)
	}
	return *own
}

// OfWorker returns scratch buffer key of one worker.
func (c *Context) OfWorker(worker, key, n int) []float32 { return grown(&c.worker[worker], key, n) }

// OfPiece returns scratch buffer key of one partial sum.
func (c *Context) OfPiece(piece, key, n int) []float32 { return grown(&c.piece[piece], key, n) }

func grown(b *[][]float32, key, n int) []float32 {
	for len(*b) <= key {
		*b = append(*b, nil)
	}
	if cap((*b)[key]) < n {
		(*b)[key] = make([]float32, n)
	}
	return (*b)[key][:n]
}
