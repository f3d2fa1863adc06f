package device

import (
	"math"

	"placer/hw/gpu"
	"placer/nn"
	"placer/transformerxl"
)

// attention takes x, W, b. A row of qkv holds 3 Heads Width columns.
type attention struct {
	transformerxl.AttentionOp
	qkv, lse room // kept for the backward pass
}

func (k *attention) rooms() []*room { return []*room{&k.qkv, &k.lse} }

// probRoom bounds the probabilities of attention that are there at a time, in
// elements.
const probRoom = 64 << 20

// group is count segments of n rows each, from row lo on, one behind the other.
// Each attends to m rows, the first of them past rows before its own.
type group struct{ lo, n, m, count int }

func (g group) past() int { return g.m - g.n }
func (g group) mem() int  { return g.lo - g.past() }

// groups puts equal neighbours among the segments together, as many as leave the
// probabilities of heads heads within room elements.
func groups(all []transformerxl.Segment, heads, room int) (out []group) {
	for _, s := range all {
		g := group{int(s.Low), int(s.High - s.Low), int(s.High - s.Memory), 1}
		if len(out) > 0 {
			last := &out[len(out)-1]
			if last.n == g.n && last.m == g.m && last.lo+last.count*g.n == g.lo && (last.count+1)*heads*g.n*g.m <= room {
				last.count++
				continue
			}
		}
		out = append(out, g)
	}
	return out
}

// side is an operand of the products of every segment and head of a group: the
// first, and how many elements lie between segments and between heads.
type side struct {
	at            gpu.Ptr
	segment, head int
}

// products runs p for every segment and head.
func (k *attention) products(d *Device, g group, p gpu.Product, a, b, c side) {
	outer, batch := k.Heads, g.count
	step := func(s side) (outer, inner int) { return s.head, s.segment }
	if k.Heads > g.count {
		outer, batch = g.count, k.Heads
		step = func(s side) (outer, inner int) { return s.segment, s.head }
	}
	p.Batch = batch
	for i := range outer {
		at := func(s side, inner *int) gpu.Ptr {
			far, near := step(s)
			*inner = near
			return s.at + gpu.Ptr(4*i*far)
		}
		p.A, p.B, p.C = at(a, &p.Layout.StepA), at(b, &p.Layout.StepB), at(c, &p.Layout.StepC)
		d.multiply(p)
	}
}

// sides of a group's operands: rows of p [segment][head][n][m]; columns of a
// matrix of width row from row r and column c on.
func (k *attention) prob(g group, p gpu.Ptr, column int) side {
	return side{p + gpu.Ptr(4*column), k.Heads * g.n * g.m, g.n * g.m}
}

func (k *attention) rows(g group, p gpu.Ptr, r, row, c int) side {
	return side{p + gpu.Ptr(4*(r*row+c)), g.n * row, k.Width}
}

func (k *attention) scale() float32 { return float32(1 / math.Sqrt(float64(k.Width))) }

// scores writes q k' of g into p.
func (k *attention) scores(d *Device, g group, p gpu.Ptr) {
	all, row := k.Heads*k.Width, 3*k.Heads*k.Width
	k.products(d, g, gpu.Product{M: g.n, N: g.m, K: k.Width, Layout: gpu.Layout{TransB: true, RowA: row, RowB: row, RowC: g.m}},
		k.rows(g, k.qkv.ptr, g.lo, row, 0), k.rows(g, k.qkv.ptr, g.mem(), row, all), k.prob(g, p, 0))
}

func (k *attention) forward(e *engine, in []mat, out mat) {
	d, all, row := e.d, k.Heads*k.Width, 3*k.Heads*k.Width
	qkv, lse := d.grow(&k.qkv, 4*out.n*row), d.grow(&k.lse, 4*out.n*k.Heads)
	d.linear(nn.Identity, in[:1], in[1:2], in[2], mat{Ptr: qkv, n: out.n, d: row})
	for _, g := range groups(*k.Segments, k.Heads, probRoom) {
		total := g.count * k.Heads * g.n
		p := d.scratch(keyProb, 4*total*g.m)
		k.scores(d, g, p)
		d.eachRow(kSoftmax, total, uint64(p), uint64(lse), uint64(total), uint64(g.m), uint64(g.n), uint64(k.Heads), uint64(g.lo), bits(k.scale()))
		k.products(d, g, gpu.Product{M: g.n, N: k.Width, K: g.m, Layout: gpu.Layout{RowA: g.m, RowB: row, RowC: all}},
			k.prob(g, p, 0), k.rows(g, qkv, g.mem(), row, 2*all), k.rows(g, out.Ptr, g.lo, all, 0))
	}
}

// backward computes the probabilities again. The gradient of keys and values of
// the memory joins after that of x is taken, and so reaches the weights only.
func (k *attention) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	d, w, all, row, qkv := e.d, k.Width, k.Heads*k.Width, 3*k.Heads*k.Width, k.qkv.ptr
	dq := d.scratch(keyHidden, 4*out.n*row)
	past := d.scratch(keyMemory, 4*out.n*2*all)
	d.each(kZero, out.n*2*all, uint64(past), uint64(out.n*2*all))
	for _, g := range groups(*k.Segments, k.Heads, probRoom) {
		total := g.count * k.Heads * g.n
		p, dp := d.scratch(keyProb, 4*total*g.m), d.scratch(keyProbGrad, 4*total*g.m)
		k.scores(d, g, p)
		d.eachRow(kSoftmaxAgain, total, uint64(p), uint64(k.lse.ptr), uint64(total), uint64(g.m), uint64(g.n), uint64(k.Heads), uint64(g.lo), bits(k.scale()))
		do := k.rows(g, grad, g.lo, all, 0)
		k.products(d, g, gpu.Product{M: g.n, N: g.m, K: w, Layout: gpu.Layout{TransB: true, RowA: all, RowB: row, RowC: g.m}},
			do, k.rows(g, qkv, g.mem(), row, 2*all), k.prob(g, dp, 0))
		d.eachRow(kSoftmaxBack, total, uint64(dp), uint64(p), uint64(grad), uint64(out.Ptr), uint64(total), uint64(g.m), uint64(g.n), uint64(k.Heads), uint64(w), uint64(g.lo), bits(k.scale()))
		// Queries, then keys and values: of the segment's own rows and of its memory's.
		k.products(d, g, gpu.Product{M: g.n, N: w, K: g.m, Layout: gpu.Layout{RowA: g.m, RowB: row, RowC: row}},
			k.prob(g, dp, 0), k.rows(g, qkv, g.mem(), row, all), k.rows(g, dq, g.lo, row, 0))
		query := k.rows(g, qkv, g.lo, row, 0)
		transposed := func(m, rowB, rowC int) gpu.Product {
			return gpu.Product{M: m, N: w, K: g.n, Layout: gpu.Layout{TransA: true, RowA: g.m, RowB: rowB, RowC: rowC}}
		}
		k.products(d, g, transposed(g.n, row, row), k.prob(g, dp, g.past()), query, k.rows(g, dq, g.lo, row, all))
		k.products(d, g, transposed(g.n, all, row), k.prob(g, p, g.past()), do, k.rows(g, dq, g.lo, row, 2*all))
		if g.past() > 0 {
			k.products(d, g, transposed(g.past(), row, 2*all), k.prob(g, dp, 0), query, k.rows(g, past, g.mem(), 2*all, 0))
			k.products(d, g, transposed(g.past(), all, 2*all), k.prob(g, p, 0), do, k.rows(g, past, g.mem(), 2*all, all))
		}
	}
	z := mat{Ptr: dq, n: out.n, d: row}
	if dx, add := e.grad(in[0]); dx != 0 {
		d.multiply(gpu.Product{Batch: 1, M: z.n, N: in[0].d, K: row, A: dq, B: in[1].Ptr, C: dx, Layout: gpu.Layout{TransB: true, Add: add}})
	}
	d.each(kAddMemory, out.n*2*all, uint64(dq), uint64(past), uint64(out.n), uint64(all))
	e.weightBack(in[0], in[1], z)
	db, add := e.grad(in[2])
	d.colsum(dq, out.n, row, db, 1, add)
}
