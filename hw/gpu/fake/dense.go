package fake

import (
	"fmt"
	"unsafe"

	"placer/hw/gpu"
)

// dense gives b memory of the host, at its own address. What was not written is
// no zero but a number that shows.
func (b *block) dense() {
	const align = 512
	raw := make([]byte, b.size+align)
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(raw))))
	skip := (align - at%align) % align
	b.whole, b.base = raw[skip:skip+b.size:skip+b.size], gpu.Ptr(at+skip)
	for i := range b.whole {
		b.whole[i] = 0xff // not a number
	}
}

// Floats returns n numbers of device memory at p, for a Kernel. It panics if they
// are not allocated.
func (g *GPU) Floats(p uint64, n int) []float32 { return cells[float32](g, p, n) }

// Doubles is Floats of 64-bit numbers.
func (g *GPU) Doubles(p uint64, n int) []float64 { return cells[float64](g, p, n) }

// Ints is Floats of 32-bit integers.
func (g *GPU) Ints(p uint64, n int) []int32 { return cells[int32](g, p, n) }

func cells[T any](g *GPU, p uint64, n int) []T {
	if n == 0 {
		return nil
	}
	var t T
	size := uint64(unsafe.Sizeof(t))
	b, err := g.at(gpu.Ptr(p), uint64(n)*size, size)
	if err != nil {
		panic(fmt.Sprintf("fake: %v", err))
	}
	if b.whole == nil {
		panic("fake: memory without Config.Kernels holds no numbers")
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b.whole[gpu.Ptr(p)-b.base])), n)
}

// product computes a product of f32 in memory that holds all data.
func (g *GPU) product(p *gpu.Product) {
	if p.Type != gpu.F32 && p.Type != gpu.TF32 {
		return
	}
	a, b, c := p.Operands()
	product(p, g.Floats(uint64(p.A), int(a.Span(p.Batch))), g.Floats(uint64(p.B), int(b.Span(p.Batch))), g.Floats(uint64(p.C), int(c.Span(p.Batch))))
}

// product computes p over its operands' elements.
func product[T float32 | float64](p *gpu.Product, A, B, C []T) {
	a, b, c := p.Operands()
	ai, ak, bk, bj := a.Row, 1, b.Row, 1
	if p.Layout.TransA {
		ai, ak = 1, a.Row
	}
	if p.Layout.TransB {
		bk, bj = 1, b.Row
	}
	row := make([]float64, p.N)
	for n := range p.Batch {
		A, B, C := A[n*a.Step:], B[n*b.Step:], C[n*c.Step:]
		for i := range p.M {
			clear(row)
			for k := range p.K {
				x := float64(A[i*ai+k*ak])
				for j := range row {
					row[j] += x * float64(B[k*bk+j*bj])
				}
			}
			for j, x := range row {
				if p.Layout.Add {
					x += float64(C[i*c.Row+j])
				}
				C[i*c.Row+j] = T(x)
			}
		}
	}
}
