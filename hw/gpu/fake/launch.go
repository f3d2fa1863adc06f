package fake

import (
	"encoding/binary"
	"fmt"

	"placer/hw/gpu"
	"placer/hw/gpu/kernel"
)

// Launch knows the kernels of hw/gpu/kernel and those of Config.Kernels by name.
func (g *GPU) Launch(f gpu.Func, grid, block uint32, s gpu.Stream, args []uint64) error {
	fn, ok := g.funcs[f]
	x, err := g.stream(s)
	if !ok || err != nil {
		return gpu.InvalidHandle
	}
	if fn.dev != x.dev {
		return fmt.Errorf("fake: a kernel of device %d on a stream of device %d: %w", fn.dev, x.dev, gpu.InvalidHandle)
	}
	name := fn.name
	if grid == 0 || block == 0 || block > 1024 {
		return gpu.InvalidValue
	}
	if k, ok := g.cfg.Kernels[name]; ok {
		return g.enqueue(s, g.cfg.Launch, func() { k(g, grid, block, args) })
	}
	want := map[string]int{"fill": 5, "rw": 5, "spin": 1, "nop": 0}
	if n, ok := want[name]; !ok || len(args) != n {
		return fmt.Errorf("fake: kernel %s with %d arguments: %w", name, len(args), gpu.InvalidValue)
	}
	switch name {
	case "fill":
		return g.fill(gpu.Ptr(args[0]), args[1], uint32(args[2]), uint32(args[3]), uint32(args[4]), s)
	case "rw":
		return g.rw(gpu.Ptr(args[0]), 16*args[1], gpu.Ptr(args[2]), 16*args[3], args[4], s)
	case "spin":
		return g.enqueue(s, g.cfg.Launch+float64(args[0]), func() {})
	}
	return g.enqueue(s, g.cfg.Launch, func() {})
}

func (g *GPU) fill(p gpu.Ptr, n uint64, seed, keep, set uint32, s gpu.Stream) error {
	b, err := g.reach(s, p, 4*n, 4)
	if err != nil {
		return err
	}
	t := gpu.F32
	for t < gpu.NumDTypes {
		if k, x := kernel.Masks(t); k == keep && x == set {
			break
		}
		t++
	}
	return g.enqueue(s, g.cfg.Launch+ns(int(4*n), g.cfg.Bandwidth), func() {
		if 4*n > moved || t == gpu.NumDTypes {
			return
		}
		data := make([]byte, 4*n)
		for i := range n {
			binary.LittleEndian.PutUint32(data[4*i:], kernel.Word(i, t, seed))
		}
		b.write(p, data)
	})
}

// rw moves data where it is a plain copy.
func (g *GPU) rw(in gpu.Ptr, nin uint64, out gpu.Ptr, nout, fma uint64, s gpu.Stream) error {
	from, err := g.reach(s, in, nin, 16)
	if err != nil {
		return err
	}
	to, err := g.reach(s, out, nout, 16)
	if err != nil {
		return err
	}
	on, err := g.stream(s)
	if err != nil {
		return err
	}
	work := max(float64(nin+nout)/(on.bandwidth*g.cfg.Bandwidth), float64(8*fma)*float64(nin/16)/(on.arithmetic*g.cfg.VectorFLOPs))
	return g.enqueue(s, g.cfg.Launch+work*1e9, func() {
		if nin == nout && fma == 0 && nin <= moved {
			to.write(out, from.read(in, nin))
		}
	})
}

type handle struct {
	stream    gpu.Stream
	workspace uint64
}

// BLAS returns the cuBLAS of g.
func (g *GPU) BLAS() gpu.BLAS { return (*blas)(g) }

type blas GPU

func (b *blas) Version() int { return 120400 }

func (b *blas) NewHandle() (gpu.Handle, error) {
	g := (*GPU)(b)
	if _, err := g.dev(); err != nil {
		return 0, gpu.Status(1)
	}
	h := gpu.Handle(g.handle())
	g.handles[h] = &handle{}
	return h, nil
}

func (b *blas) DestroyHandle(h gpu.Handle) error {
	if remove(b.handles, h) != nil {
		return gpu.Status(1)
	}
	return nil
}

func (b *blas) SetStream(h gpu.Handle, s gpu.Stream) error {
	if b.handles[h] == nil {
		return gpu.Status(1)
	}
	*b.handles[h] = handle{stream: s}
	return nil
}

func (b *blas) SetWorkspace(h gpu.Handle, p gpu.Ptr, n uint64) error {
	if b.handles[h] == nil {
		return gpu.Status(1)
	}
	if _, err := (*GPU)(b).at(p, n, 256); err != nil {
		return err
	}
	b.handles[h].workspace = n
	return nil
}

func (b *blas) Multiply(h gpu.Handle, p *gpu.Product) error {
	g := (*GPU)(b)
	x := g.handles[h]
	switch {
	case x == nil:
		return gpu.Status(1)
	case p.Batch < 1 || p.M < 1 || p.N < 1 || p.K < 1:
		return gpu.Status(7)
	case g.cfg.FLOPs[p.Type] == 0:
		return gpu.Status(15)
	}
	st, err := g.stream(x.stream)
	if err != nil {
		return err
	}
	if st.cap != nil && x.workspace == 0 {
		return fmt.Errorf("fake: a product in a capture needs a workspace of its own: %w", gpu.Code(900))
	}
	na, nb, nc := p.Bytes()
	a, y, c := p.Operands()
	align := p.Type.Size() // of operands with a layout; plain ones are aligned as vectors are
	if p.Layout == (gpu.Layout{}) {
		align = 16
	}
	var blocks [3]*block
	for i, o := range []struct {
		p    gpu.Ptr
		o    gpu.Operand
		size uint64
	}{{p.A, a, p.Type.Size()}, {p.B, y, p.Type.Size()}, {p.C, c, p.Type.OutSize()}} {
		if o.o.Row < o.o.Columns || p.Batch > 1 && o.o.Step < 1 {
			return gpu.Status(7)
		}
		var err error
		if blocks[i], err = g.reach(x.stream, o.p, o.o.Span(p.Batch)*o.size, align); err != nil {
			return err
		}
	}
	if p.Layout.Add {
		nc *= 2 // read before it is written
	}
	flops := 2 * float64(p.Batch) * float64(p.M) * float64(p.N) * float64(p.K)
	work := max(flops/(st.arithmetic*g.cfg.FLOPs[p.Type]), float64(na+nb+nc)/(st.bandwidth*g.cfg.Bandwidth))
	q := *p
	return g.enqueue(x.stream, g.cfg.Launch+work*1e9, func() {
		if g.cfg.Kernels != nil {
			g.product(&q)
		} else if flops <= 1<<18 {
			multiply(&q, blocks)
		}
	})
}

// multiply computes products on the host, of pages. F8, whose second operand lies
// otherwise, is not for it.
func multiply(p *gpu.Product, blocks [3]*block) {
	if p.Type == gpu.F8 {
		return
	}
	a, b, c := p.Operands()
	size := p.Type.Size()
	var v [3][]float64
	for i, at := range []gpu.Ptr{p.A, p.B, p.C} {
		n := [3]gpu.Operand{a, b, c}[i].Span(p.Batch)
		data := blocks[i].read(at, n*size)
		for k := range int(n) {
			v[i] = append(v[i], p.Type.Element(data, k))
		}
	}
	product(p, v[0], v[1], v[2])
	out := make([]byte, size*uint64(len(v[2])))
	for k, x := range v[2] {
		p.Type.SetElement(out, k, x)
	}
	blocks[2].write(p.C, out)
}
