package device

import (
	"slices"

	"placer/hw/gpu"
	"placer/nn"
)

// linear takes x1..xk, W1..Wk, b.
type linear nn.LinearOp

func (l linear) forward(e *engine, in []mat, out mat) {
	e.d.linear(l.Activation, in[:l.Pairs], in[l.Pairs:2*l.Pairs], in[2*l.Pairs], out)
}

// linear writes out = f(Σ xs ws + b).
func (d *Device) linear(f nn.Activation, xs, ws []mat, b, out mat) {
	for i, x := range xs {
		d.multiply(gpu.Product{Batch: 1, M: out.n, N: out.d, K: x.d, A: x.Ptr, B: ws[i].Ptr, C: out.Ptr, Layout: gpu.Layout{Add: i > 0}})
	}
	d.each(kBiasAct, out.size(), uint64(out.Ptr), uint64(b.Ptr), uint64(out.size()), uint64(out.d), uint64(f))
}

func (l linear) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	z := grad
	if l.Activation != nn.Identity {
		z = e.d.scratch(keyGrad, 4*out.size())
		e.d.each(kActBack, out.size(), uint64(z), uint64(out.Ptr), uint64(grad), uint64(out.size()), uint64(l.Activation))
	}
	e.linearBack(in[:l.Pairs], in[l.Pairs:2*l.Pairs], in[2*l.Pairs], mat{Ptr: z, n: out.n, d: out.d})
}

// linearBack takes the gradient z before the activation to inputs, weights and bias.
func (e *engine) linearBack(xs, ws []mat, b, z mat) {
	for i, x := range xs {
		if dx, add := e.grad(x); dx != 0 {
			e.d.multiply(gpu.Product{Batch: 1, M: z.n, N: x.d, K: z.d, A: z.Ptr, B: ws[i].Ptr, C: dx, Layout: gpu.Layout{TransB: true, Add: add}})
		}
		e.weightBack(x, ws[i], z)
	}
	db, add := e.grad(b)
	e.d.colsum(z.Ptr, z.n, z.d, db, 1, add)
}

func (e *engine) weightBack(x, w, z mat) {
	dw, add := e.grad(w)
	e.d.multiply(gpu.Product{Batch: 1, M: x.d, N: z.d, K: z.n, A: x.Ptr, B: z.Ptr, C: dw, Layout: gpu.Layout{TransA: true, Add: add}})
}

// layerNorm takes a [, b], gain, bias.
type layerNorm struct{ mean, scale room }

func (k *layerNorm) rooms() []*room { return []*room{&k.mean, &k.scale} }

// parts returns b, 0 if there is none, and the places of gain and bias.
func (k *layerNorm) parts(in []mat) (b gpu.Ptr, gain int) {
	if len(in) == 4 {
		return in[1].Ptr, 2
	}
	return 0, 1
}

func (k *layerNorm) forward(e *engine, in []mat, out mat) {
	b, g := k.parts(in)
	mean, scale := e.d.grow(&k.mean, 4*out.n), e.d.grow(&k.scale, 4*out.n)
	e.d.eachRow(kLayerNorm, out.n, uint64(in[0].Ptr), uint64(b), uint64(in[g].Ptr), uint64(in[g+1].Ptr), uint64(out.Ptr), uint64(mean), uint64(scale), uint64(out.n), uint64(out.d))
}

func (k *layerNorm) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	b, g := k.parts(in)
	da, addA := e.grad(in[0])
	var db gpu.Ptr
	var addB bool
	if b != 0 {
		db, addB = e.grad(in[1])
	}
	gh := e.d.scratch(keyGrad, 4*out.size())
	e.d.eachRow(kLayerNormBack, out.n, uint64(in[0].Ptr), uint64(b), uint64(in[g].Ptr), uint64(k.mean.ptr), uint64(k.scale.ptr), uint64(grad),
		uint64(da), flag(addA), uint64(db), flag(addB), uint64(gh), uint64(out.n), uint64(out.d))
	dg, add := e.grad(in[g])
	e.d.colsum(gh, out.n, out.d, dg, 1, add)
	dbias, add := e.grad(in[g+1])
	e.d.colsum(grad, out.n, out.d, dbias, 1, add)
}

// mul takes a, b, of which b may be stacked copies of the shape of a.
type mul struct{}

func (mul) forward(e *engine, in []mat, out mat) {
	e.d.each(kMulRep, out.size(), uint64(out.Ptr), uint64(in[0].Ptr), uint64(in[1].Ptr), uint64(out.size()), uint64(in[0].size()), 0)
}

func (mul) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	n, na := out.size(), in[0].size()
	if da, add := e.grad(in[0]); da != 0 {
		e.d.each(kMulSum, na, uint64(da), uint64(grad), uint64(in[1].Ptr), uint64(na), uint64(n), flag(add))
	}
	if db, add := e.grad(in[1]); db != 0 {
		e.d.each(kMulRep, n, uint64(db), uint64(in[0].Ptr), uint64(grad), uint64(n), uint64(na), flag(add))
	}
}

// addRepeated takes x, a.
type addRepeated struct{}

func (addRepeated) forward(e *engine, in []mat, out mat) {
	e.d.each(kAddRep, out.size(), uint64(out.Ptr), uint64(in[0].Ptr), uint64(in[1].Ptr), uint64(out.size()), uint64(in[1].size()))
}

func (addRepeated) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	for _, x := range in {
		e.sumRepeats(x, grad, out.size())
	}
}

// sumRepeats adds the stacked copies in grad, n elements, to the gradient of x.
func (e *engine) sumRepeats(x mat, grad gpu.Ptr, n int) {
	if dx, add := e.grad(x); dx != 0 {
		e.d.each(kSumRep, x.size(), uint64(dx), uint64(grad), uint64(x.size()), uint64(n), flag(add))
	}
}

// reshape takes x.
type reshape struct{}

func (reshape) forward(e *engine, in []mat, out mat) {
	e.d.each(kSumRep, out.size(), uint64(out.Ptr), uint64(in[0].Ptr), uint64(out.size()), uint64(out.size()), 0)
}

func (reshape) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	e.sumRepeats(in[0], grad, out.size())
}

// embedding takes h and the table.
type embedding struct {
	nn.EmbeddingOp
	index room
}

func (k *embedding) rooms() []*room { return []*room{&k.index} }

func (k *embedding) forward(e *engine, in []mat, out mat) {
	index := e.d.grow(&k.index, 4*out.n)
	upload(e.d, index, *k.Index)
	e.d.each(kEmbed, out.size(), uint64(in[0].Ptr), uint64(in[1].Ptr), uint64(index), uint64(out.Ptr), uint64(out.size()), uint64(in[0].size()), uint64(out.d))
}

func (k *embedding) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	e.sumRepeats(in[0], grad, out.size())
	a := in[1].n
	blocks := (out.n + embedRows - 1) / embedRows
	part := e.d.scratch(keyGrad, 4*blocks*a*out.d)
	e.d.launch(kEmbedBack, uint64(blocks), wide(out.d), uint64(grad), uint64(k.index.ptr), uint64(part), uint64(out.n), uint64(out.d), embedRows, uint64(a))
	dt, add := e.grad(in[1])
	e.d.colsum(part, blocks, a*out.d, dt, 1, add)
}

// mask takes x.
type mask struct {
	nn.MaskOp
	allowed room
	given   []bool // as it is on the device
	words   []int32
}

func (k *mask) rooms() []*room { return []*room{&k.allowed} }

func (k *mask) forward(e *engine, in []mat, out mat) {
	if now := *k.Allowed; len(now) > 0 && !slices.Equal(now, k.given) {
		k.words = slices.Grow(k.words[:0], len(now))[:len(now)]
		for i, ok := range now {
			k.words[i] = int32(flag(ok))
		}
		upload(e.d, e.d.grow(&k.allowed, 4*len(now)), k.words)
		if k.given = k.given[:0]; e.d.err == nil {
			k.given = append(k.given, now...)
		}
	}
	k.run(e, out.Ptr, in[0].Ptr, out.size(), nn.Masked, false)
}

func (k *mask) run(e *engine, dst, src gpu.Ptr, n int, value float32, add bool) {
	e.d.each(kMask, n, uint64(dst), uint64(src), uint64(k.allowed.ptr), uint64(n), uint64(len(*k.Allowed)), bits(value), flag(add))
}

func (k *mask) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	if dx, add := e.grad(in[0]); dx != 0 {
		k.run(e, dx, grad, out.size(), 0, add)
	}
}

// concat takes matrices to stand beside each other.
type concat struct{}

func (concat) forward(e *engine, in []mat, out mat) {
	at := gpu.Ptr(0)
	for _, x := range in {
		e.d.each(kColumns, x.size(), uint64(out.Ptr+4*at), uint64(out.d), uint64(x.Ptr), uint64(x.d), uint64(x.n), uint64(x.d), 0)
		at += gpu.Ptr(x.d)
	}
}

func (concat) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	at := gpu.Ptr(0)
	for _, x := range in {
		if dx, add := e.grad(x); dx != 0 {
			e.d.each(kColumns, x.size(), uint64(dx), uint64(x.d), uint64(grad+4*at), uint64(out.d), uint64(x.n), uint64(x.d), flag(add))
		}
		at += gpu.Ptr(x.d)
	}
}

// meanRows takes x.
type meanRows nn.MeanRowsOp

// group returns where rows bounds[i] of a matrix at p begin, and how many they are.
func (k meanRows) group(p gpu.Ptr, i, columns int) (gpu.Ptr, int) {
	b := *k.Bounds
	return p + gpu.Ptr(4*int(b[i])*columns), int(b[i+1] - b[i])
}

func (k meanRows) forward(e *engine, in []mat, out mat) {
	for i := range out.n {
		x, rows := k.group(in[0].Ptr, i, out.d)
		e.d.colsum(x, rows, out.d, out.Ptr+gpu.Ptr(4*i*out.d), 1/float32(max(rows, 1)), false)
	}
}

func (k meanRows) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	if k.Stop {
		return
	}
	dx, add := e.grad(in[0])
	for i := range out.n {
		x, rows := k.group(dx, i, out.d)
		e.d.each(kSpread, rows*out.d, uint64(x), uint64(grad)+uint64(4*i*out.d), uint64(rows*out.d), uint64(out.d), bits(1/float32(max(rows, 1))), flag(add))
	}
}
