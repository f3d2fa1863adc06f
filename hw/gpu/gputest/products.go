package gputest

import (
	"encoding/binary"
	"errors"
	"math"

	"placer/hw/gpu"
)

// products compares f32 products with the host's.
func products(x *session) {
	h := must(x.b.NewHandle())
	defer x.b.DestroyHandle(h)
	x.ok("SetStream", x.b.SetStream(h, x.s))
	for _, p := range []gpu.Product{
		{Type: gpu.F32, Batch: 1, M: 1, N: 1, K: 1}, {Type: gpu.F32, Batch: 1, M: 64, N: 48, K: 32}, {Type: gpu.F32, Batch: 3, M: 16, N: 8, K: 24},
		{Type: gpu.TF32, Batch: 1, M: 32, N: 64, K: 16},
		{Type: gpu.F32, Batch: 1, M: 20, N: 12, K: 28, Layout: gpu.Layout{TransA: true}}, {Type: gpu.F32, Batch: 1, M: 20, N: 12, K: 28, Layout: gpu.Layout{TransB: true, Add: true}},
		{Type: gpu.F32, Batch: 1, M: 9, N: 7, K: 5, Layout: gpu.Layout{TransA: true, TransB: true, Add: true}},
		{Type: gpu.F32, Batch: 3, M: 9, N: 11, K: 5, Layout: gpu.Layout{TransB: true, RowA: 15, RowB: 17, RowC: 33, StepA: 5, StepB: 11 * 17, StepC: 11}},
		{Type: gpu.F32, Batch: 2, M: 6, N: 5, K: 8, Layout: gpu.Layout{TransA: true, Add: true, RowA: 13, RowB: 10, RowC: 9, StepA: 8 * 13, StepB: 5, StepC: 6 * 9}},
	} {
		compare(x, h, p)
	}
	if l, ok := x.b.(gpu.SMLimiter); ok { // as for a part of the device
		sms := must(x.d.Attribute(0, gpu.SMCount))
		x.ok("LimitSMs", l.LimitSMs(h, sms/2))
		compare(x, h, gpu.Product{Type: gpu.F32, Batch: 1, M: 200, N: 100, K: 30})
		x.ok("LimitSMs", l.LimitSMs(h, 0))
	}
	ran := 0
	for t := gpu.F32; t < gpu.NumDTypes; t++ {
		p := gpu.Product{Type: t, Batch: 1, M: 32, N: 16, K: 64}
		na, nb, nc := p.Bytes()
		p.A, p.B, p.C = x.alloc(na), x.alloc(nb), x.alloc(nc)
		x.ok("Fill", x.k.Fill(x.d, x.s, p.A, na, t, 1))
		x.ok("Fill", x.k.Fill(x.d, x.s, p.B, nb, t, 2))
		err := x.b.Multiply(h, &p)
		var s gpu.Status
		if err != nil && !errors.As(err, &s) {
			x.Errorf("%v: %v", t, err)
		}
		if err == nil {
			ran++
			x.values(&p)
		} else {
			x.Logf("%v: %v", t, err)
		}
		x.ok("SyncStream", x.d.SyncStream(x.s))
		for _, q := range []gpu.Ptr{p.A, p.B, p.C} {
			x.ok("Free", x.d.Free(q))
		}
	}
	if ran < 4 || x.b.Version() < 110000 {
		x.Errorf("%d element types ran on cuBLAS %d", ran, x.b.Version())
	}
}

// values compares the result of a plain product of any type with the host's.
func (x *session) values(p *gpu.Product) {
	tolerance := [gpu.NumDTypes]float64{gpu.F32: 1e-5, gpu.TF32: 2e-3, gpu.F16: 2e-3, gpu.BF16: 1e-2, gpu.F64: 1e-12, gpu.F8: 1e-2}[p.Type]
	na, nb, nc := p.Bytes()
	a, b, c := x.download(p.A, int(na)), x.download(p.B, int(nb)), x.download(p.C, int(nc))
	for i := range p.M {
		for j := range p.N {
			sum, size := 0.0, 0.0
			for k := range p.K {
				at := k*p.N + j
				if p.Type == gpu.F8 {
					at = j*p.K + k
				}
				y := p.Type.Element(a, i*p.K+k) * p.Type.Element(b, at)
				sum, size = sum+y, size+math.Abs(y)
			}
			if got := p.Type.Out().Element(c, i*p.N+j); !(math.Abs(got-sum) <= tolerance*size) {
				x.Errorf("%v [%d,%d,%d]: element %d,%d is %v, want %v", p.Type, p.M, p.N, p.K, i, j, got, sum)
				return
			}
		}
	}
}

func compare(x *session, h gpu.Handle, p gpu.Product) {
	ao, bo, co := p.Operands()
	na, nb, nc := 4*ao.Span(p.Batch), 4*bo.Span(p.Batch), 4*co.Span(p.Batch)
	p.A, p.B, p.C = x.alloc(na), x.alloc(nb), x.alloc(nc)
	x.ok("Fill", x.k.Fill(x.d, x.s, p.A, na, p.Type, 11))
	x.ok("Fill", x.k.Fill(x.d, x.s, p.B, nb, p.Type, 12))
	x.ok("Fill", x.k.Fill(x.d, x.s, p.C, nc, p.Type, 13))
	before := floats(x.download(p.C, int(nc)))
	x.ok("Multiply", x.b.Multiply(h, &p))
	a, b, c := floats(x.download(p.A, int(na))), floats(x.download(p.B, int(nb))), floats(x.download(p.C, int(nc)))
	tolerance := 1e-5
	if p.Type == gpu.TF32 {
		tolerance = 2e-3 // 10 bits of mantissa
	}
	at := func(o gpu.Operand, trans bool, n, i, j int) int {
		if trans {
			i, j = j, i
		}
		return n*o.Step + i*o.Row + j
	}
	for n := range p.Batch {
		for i := range p.M {
			for j := range p.N {
				sum, size := 0.0, 0.0
				for k := range p.K {
					y := float64(a[at(ao, p.Layout.TransA, n, i, k)]) * float64(b[at(bo, p.Layout.TransB, n, k, j)])
					sum, size = sum+y, size+math.Abs(y)
				}
				if p.Layout.Add {
					sum += float64(before[at(co, false, n, i, j)])
				}
				if got := float64(c[at(co, false, n, i, j)]); !(math.Abs(got-sum) <= tolerance*(size+1)) {
					x.Errorf("%v [%d,%d,%d,%d] %+v: element %d,%d,%d is %v, want %v", p.Type, p.Batch, p.M, p.N, p.K, p.Layout, n, i, j, got, sum)
					return
				}
			}
		}
	}
	for _, q := range []gpu.Ptr{p.A, p.B, p.C} {
		x.ok("Free", x.d.Free(q))
	}
}

func capturedProduct(x *session) {
	h := must(x.b.NewHandle())
	defer x.b.DestroyHandle(h)
	x.ok("SetStream", x.b.SetStream(h, x.s))
	const space = 32 << 20
	w := x.alloc(space)
	defer x.d.Free(w)
	x.ok("SetWorkspace", x.b.SetWorkspace(h, w, space))
	p := gpu.Product{Type: gpu.F32, Batch: 1, M: 32, N: 32, K: 32}
	na, nb, nc := p.Bytes()
	p.A, p.B, p.C = x.alloc(na), x.alloc(nb), x.alloc(nc)
	x.ok("Fill", x.k.Fill(x.d, x.s, p.A, na, gpu.F32, 1))
	x.ok("Fill", x.k.Fill(x.d, x.s, p.B, nb, gpu.F32, 2))
	x.ok("Multiply", x.b.Multiply(h, &p))
	want := x.download(p.C, int(nc))
	x.ok("Fill", x.k.Fill(x.d, x.s, p.C, nc, gpu.F32, 9))
	x.ok("SyncStream", x.d.SyncStream(x.s))
	x.ok("BeginCapture", x.d.BeginCapture(x.s))
	x.ok("Multiply", x.b.Multiply(h, &p))
	g := must(x.d.EndCapture(x.s))
	e := must(x.d.Instantiate(g))
	x.ok("LaunchExec", x.d.LaunchExec(e, x.s))
	if string(x.download(p.C, int(nc))) != string(want) {
		x.Error("a captured product gives another result than the product itself")
	}
	x.ok("DestroyExec", x.d.DestroyExec(e))
	x.ok("DestroyGraph", x.d.DestroyGraph(g))
}

func floats(b []byte) []float32 {
	f := make([]float32, len(b)/4)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return f
}
