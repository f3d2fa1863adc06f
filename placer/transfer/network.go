package transfer

import (
	"math/rand/v2"

	"placer/nn"
	"placer/nn/vec"
)

// network scores each device for the unit whose turn it is. It reads the unit's
// static columns x [S] and, per device d, the dynamic columns y_d [F]:
//
//	p   = relu(W_s x + c)
//	h_d = relu(W_p p + W_y y_d + b)
//	m   = mean over d of h_d
//	k_d = relu(W_h h_d + W_m m + e)
//	score_d = own (w . k_d + v . y_d) + trust advice_d
//
// All devices share the weights and see the others through m alone, so a network
// serves any number of devices, and naming them otherwise changes nothing.
type network struct {
	params                                      *nn.Params
	backend                                     *nn.Backend
	ws, c, wp, wy, b, wh, wm, e, last, straight *nn.Param
	hidden                                      int
	zero, scaled                                []float32 // [H] zeros, and scratch
}

func newNetwork(hidden int, random *rand.Rand, backend *nn.Backend) *network {
	ps := nn.NewParams()
	n := &network{params: ps, backend: backend, hidden: hidden, zero: make([]float32, hidden), scaled: make([]float32, hidden)}
	n.ws, n.c = ps.Glorot("static", random, numStatic, hidden), ps.Constant("static_bias", 0, 1, hidden)
	n.wp = ps.Glorot("unit", random, hidden, hidden)
	n.wy, n.b = ps.Glorot("dynamic", random, numDynamic, hidden), ps.Constant("dynamic_bias", 0, 1, hidden)
	n.wh, n.wm = ps.Glorot("device", random, hidden, hidden), ps.Glorot("mean", random, hidden, hidden)
	n.e = ps.Constant("device_bias", 0, 1, hidden)
	n.last = ps.Normal("score", random, 0.01, hidden, 1)
	n.straight = ps.Constant("straight", 0, numDynamic, 1)
	return n
}

// pass holds what a forward pass leaves for the backward pass. Letters: U units,
// G decisions, D devices, H hidden.
type pass struct {
	n          *network
	devices    int
	p, q       nn.Mat // [U,H] relu(W_s x + c), and W_p p + b
	h, m, k    nn.Mat // [G*D,H], [G,H], [G*D,H]
	mm         nn.Mat // [G,H] W_m m + e
	scores     []float32
	dh, dm, dq nn.Mat
	dp         nn.Mat
}

// grow returns m with n rows of d columns, its elements undefined.
func grow(m nn.Mat, n, d int) nn.Mat {
	if cap(m.V) < n*d {
		m.V = make([]float32, n*d)
	}
	return nn.Mat{N: n, D: d, V: m.V[:n*d]}
}

// product sets c = a w, or adds it.
func (n *network) product(a nn.Mat, w *nn.Param, c nn.Mat, add bool) {
	beta := float32(0)
	if add {
		beta = 1
	}
	n.backend.Gemm(false, false, a.N, c.D, a.D, a.V, a.D, w.Value, c.D, beta, c.V, c.D)
}

// into adds aᵀ g to w's gradient and, unless d is empty, sets d = g wᵀ.
func (n *network) into(a, g nn.Mat, w *nn.Param, d nn.Mat) {
	n.backend.Gemm(true, false, a.D, g.D, a.N, a.V, a.D, g.V, g.D, 1, w.Grad, g.D)
	if d.V != nil {
		n.backend.Gemm(false, true, a.N, a.D, g.D, g.V, g.D, w.Value, g.D, 0, d.V, a.D)
	}
}

// units computes what depends on the static columns x, [U,S], alone.
func (f *pass) units(x []float32) {
	n := f.n
	u := len(x) / numStatic
	f.p, f.q = grow(f.p, u, n.hidden), grow(f.q, u, n.hidden)
	n.product(nn.Mat{N: u, D: numStatic, V: x}, n.ws, f.p, false)
	for i := range u {
		vec.ReluBias(f.p.Row(i), n.c.Value)
	}
	n.product(f.p, n.wp, f.q, false)
	for i := range u {
		vec.Add(f.q.Row(i), f.q.Row(i), n.b.Value)
	}
}

// forward returns the scores, [G*D], of the devices for decisions on unit of[g],
// [G], with dynamic columns y, [G*D,F]. The result is valid until the next call.
func (f *pass) forward(of []int32, y []float32, devices int) []float32 {
	n, g := f.n, len(of)
	f.devices = devices
	rows := g * devices
	f.h, f.m, f.k, f.mm = grow(f.h, rows, n.hidden), grow(f.m, g, n.hidden), grow(f.k, rows, n.hidden), grow(f.mm, g, n.hidden)
	for i, u := range of {
		for d := range devices {
			copy(f.h.Row(i*devices+d), f.q.Row(int(u)))
		}
	}
	n.product(nn.Mat{N: rows, D: numDynamic, V: y}, n.wy, f.h, true)
	inverse := 1 / float32(devices)
	for i := range g {
		m := f.m.Row(i)
		clear(m)
		for d := range devices {
			h := f.h.Row(i*devices + d)
			vec.ReluBias(h, n.zero)
			vec.Axpy(m, h, inverse)
		}
	}
	n.product(f.m, n.wm, f.mm, false)
	for i := range g {
		vec.Add(f.mm.Row(i), f.mm.Row(i), n.e.Value)
		for d := range devices {
			copy(f.k.Row(i*devices+d), f.mm.Row(i))
		}
	}
	n.product(f.h, n.wh, f.k, true)
	if cap(f.scores) < rows {
		f.scores = make([]float32, rows)
	}
	f.scores = f.scores[:rows]
	for i := range rows {
		k := f.k.Row(i)
		vec.ReluBias(k, n.zero)
		row := y[i*numDynamic : (i+1)*numDynamic]
		f.scores[i] = row[own]*(vec.Dot(k, n.last.Value)+vec.Dot(row, n.straight.Value)) + trust*row[advised]
	}
	return f.scores
}

// backward adds the gradient of the weights for the gradient of the last
// forward's scores, [G*D], but for what flows into the units' part, which it
// collects for unitsBackward. It overwrites what forward left.
func (f *pass) backward(of []int32, y, grad []float32) {
	n, g, rows := f.n, f.m.N, f.h.N
	scaled := n.scaled
	f.dh, f.dm = grow(f.dh, rows, n.hidden), grow(f.dm, g, n.hidden)
	for i := range rows {
		row := y[i*numDynamic : (i+1)*numDynamic]
		g := grad[i] * row[own]
		vec.Axpy(n.last.Grad, f.k.Row(i), g)
		vec.Axpy(n.straight.Grad, row, g)
		copy(scaled, n.last.Value)
		vec.Scale(scaled, g)
		vec.ReluBack(f.k.Row(i), f.k.Row(i), scaled) // now the gradient of k
	}
	for i := range g {
		s := f.mm.Row(i) // now the gradient of mm
		clear(s)
		for d := range f.devices {
			vec.Add(s, s, f.k.Row(i*f.devices+d))
		}
		vec.Add(n.e.Grad, n.e.Grad, s)
	}
	n.into(f.h, f.k, n.wh, f.dh)
	n.into(f.m, f.mm, n.wm, f.dm)
	inverse := 1 / float32(f.devices)
	for i, u := range of {
		for d := range f.devices {
			r := i*f.devices + d
			vec.Axpy(f.dh.Row(r), f.dm.Row(i), inverse)
			vec.ReluBack(f.dh.Row(r), f.h.Row(r), f.dh.Row(r))
			vec.Add(f.dq.Row(int(u)), f.dq.Row(int(u)), f.dh.Row(r))
		}
	}
	n.into(nn.Mat{N: rows, D: numDynamic, V: y}, f.dh, n.wy, nn.Mat{})
}

// startBackward clears what unitsBackward will take.
func (f *pass) startBackward() {
	f.dq = grow(f.dq, f.q.N, f.q.D)
	clear(f.dq.V)
}

// unitsBackward ends the backward passes of the decisions on the units with
// static columns x.
func (f *pass) unitsBackward(x []float32) {
	n := f.n
	for i := range f.dq.N {
		vec.Add(n.b.Grad, n.b.Grad, f.dq.Row(i))
	}
	f.dp = grow(f.dp, f.p.N, f.p.D)
	n.into(f.p, f.dq, n.wp, f.dp)
	vec.ReluBack(f.dp.V, f.p.V, f.dp.V)
	for i := range f.dp.N {
		vec.Add(n.c.Grad, n.c.Grad, f.dp.Row(i))
	}
	n.into(nn.Mat{N: f.p.N, D: numStatic, V: x}, f.dp, n.ws, nn.Mat{})
}
