package sequential

import (
	"math/rand/v2"

	"placer/nn"
	"placer/nn/vec"
)

// network scores each device for a unit. It reads the unit's features x [S] and, per
// device d, the features of the unit on it y_d [F]:
//
//	p   = relu(W_s x + c)
//	h_d = relu(W_p p + W_y y_d + b)
//	m   = mean over d of h_d
//	k_d = relu(W_h h_d + W_m m + e)
//	score_d = learned (w . k_d + v . y_d) + priorWeight prior_d
//
// where learned and prior_d are features. All devices share the weights and see the
// others through m alone, so a network serves any number of devices, and naming them
// otherwise changes nothing.
type network struct {
	params                                    *nn.Params
	backend                                   *nn.Backend
	ws, c, wp, wy, b, wh, wm, e, last, linear *nn.Param
	hidden                                    int
	zero                                      []float32 // [H]
}

// priorWeight is the score of the device that the prior chooses: two devices with
// nothing else to tell them apart follow it 19 times in 20.
const priorWeight = 3

func newNetwork(hidden int, random *rand.Rand, backend *nn.Backend) *network {
	ps := nn.NewParams()
	n := &network{params: ps, backend: backend, hidden: hidden, zero: make([]float32, hidden)}
	n.ws, n.c = ps.Glorot("static", random, numUnitFeatures, hidden), ps.Constant("static_bias", 0, 1, hidden)
	n.wp = ps.Glorot("unit", random, hidden, hidden)
	n.wy, n.b = ps.Glorot("dynamic", random, numDeviceFeatures, hidden), ps.Constant("dynamic_bias", 0, 1, hidden)
	n.wh, n.wm = ps.Glorot("device", random, hidden, hidden), ps.Glorot("mean", random, hidden, hidden)
	n.e = ps.Constant("device_bias", 0, 1, hidden)
	n.last = ps.Normal("score", random, 0.01, hidden, 1)
	n.linear = ps.Constant("straight", 0, numDeviceFeatures, 1)
	return n
}

// pass holds what a forward pass leaves for the backward pass. Letters: U units,
// G decisions, D devices, H hidden.
type pass struct {
	n              *network
	devices        int
	p, q           nn.Mat // [U,H] relu(W_s x + c), and W_p p + b
	h, m, k        nn.Mat // [G*D,H], [G,H], [G*D,H]
	mm             nn.Mat // [G,H] W_m m + e
	scores         []float32
	dh, dm, dq, dp nn.Mat
}

// grow returns m with n rows of d columns, its elements undefined.
func grow(m nn.Mat, n, d int) nn.Mat {
	if cap(m.V) < n*d {
		m.V = make([]float32, n*d)
	}
	return nn.Mat{N: n, D: d, V: m.V[:n*d]}
}

// product sets c = beta c + a w.
func (n *network) product(a nn.Mat, w *nn.Param, beta float32, c nn.Mat) {
	n.backend.Gemm(false, false, a.N, c.D, a.D, a.V, a.D, w.Value, c.D, beta, c.V, c.D)
}

// back adds aᵀ g to w's gradient and, unless d is empty, sets d = g wᵀ.
func (n *network) back(a, g nn.Mat, w *nn.Param, d nn.Mat) {
	n.backend.Gemm(true, false, a.D, g.D, a.N, a.V, a.D, g.V, g.D, 1, w.Grad, g.D)
	if d.V != nil {
		n.backend.Gemm(false, true, a.N, a.D, g.D, g.V, g.D, w.Value, g.D, 0, d.V, a.D)
	}
}

// encode computes what depends on the unit features x, [U,S], alone.
func (f *pass) encode(x []float32) {
	n, u := f.n, len(x)/numUnitFeatures
	f.p, f.q = grow(f.p, u, n.hidden), grow(f.q, u, n.hidden)
	n.product(nn.Mat{N: u, D: numUnitFeatures, V: x}, n.ws, 0, f.p)
	for i := range u {
		vec.ReluBias(f.p.Row(i), n.c.Value)
	}
	n.product(f.p, n.wp, 0, f.q)
	for i := range u {
		vec.Add(f.q.Row(i), f.q.Row(i), n.b.Value)
	}
}

// forward returns the scores, [G*D], of the devices for decisions on units unit, [G],
// with device features y, [G*D,F]. The result is valid until the next call.
func (f *pass) forward(unit []int32, y []float32, devices int) []float32 {
	n, g := f.n, len(unit)
	f.devices = devices
	rows := g * devices
	f.h, f.m, f.k, f.mm = grow(f.h, rows, n.hidden), grow(f.m, g, n.hidden), grow(f.k, rows, n.hidden), grow(f.mm, g, n.hidden)
	for i, u := range unit {
		for d := range devices {
			copy(f.h.Row(i*devices+d), f.q.Row(int(u)))
		}
	}
	n.product(nn.Mat{N: rows, D: numDeviceFeatures, V: y}, n.wy, 1, f.h)
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
	n.product(f.m, n.wm, 0, f.mm)
	for i := range g {
		vec.Add(f.mm.Row(i), f.mm.Row(i), n.e.Value)
		for d := range devices {
			copy(f.k.Row(i*devices+d), f.mm.Row(i))
		}
	}
	n.product(f.h, n.wh, 1, f.k)
	if cap(f.scores) < rows {
		f.scores = make([]float32, rows)
	}
	f.scores = f.scores[:rows]
	for i := range rows {
		k, row := f.k.Row(i), featuresOf(y, i)
		vec.ReluBias(k, n.zero)
		f.scores[i] = row[learnedFeature]*(vec.Dot(k, n.last.Value)+vec.Dot(row, n.linear.Value)) + priorWeight*row[priorFeature]
	}
	return f.scores
}

// featuresOf returns row i of device features y.
func featuresOf(y []float32, i int) []float32 {
	return y[i*numDeviceFeatures : (i+1)*numDeviceFeatures]
}

// backward adds the gradient of the weights for the gradient of the last
// forward's scores, [G*D], but for what flows into the units' part, which it
// collects for encodeBackward. It overwrites what forward left.
func (f *pass) backward(unit []int32, y, grad []float32) {
	n, g, rows := f.n, f.m.N, f.h.N
	scaled := make([]float32, n.hidden)
	f.dh, f.dm = grow(f.dh, rows, n.hidden), grow(f.dm, g, n.hidden)
	for i := range rows {
		k, row := f.k.Row(i), featuresOf(y, i)
		g := grad[i] * row[learnedFeature]
		vec.Axpy(n.last.Grad, k, g)
		vec.Axpy(n.linear.Grad, row, g)
		copy(scaled, n.last.Value)
		vec.Scale(scaled, g)
		vec.ReluBack(k, k, scaled) // now the gradient of k
	}
	for i := range g {
		s := f.mm.Row(i) // now the gradient of mm
		clear(s)
		for d := range f.devices {
			vec.Add(s, s, f.k.Row(i*f.devices+d))
		}
		vec.Add(n.e.Grad, n.e.Grad, s)
	}
	n.back(f.h, f.k, n.wh, f.dh)
	n.back(f.m, f.mm, n.wm, f.dm)
	inverse := 1 / float32(f.devices)
	for i, u := range unit {
		for d := range f.devices {
			h, dh, dq := f.h.Row(i*f.devices+d), f.dh.Row(i*f.devices+d), f.dq.Row(int(u))
			vec.Axpy(dh, f.dm.Row(i), inverse)
			vec.ReluBack(dh, h, dh)
			vec.Add(dq, dq, dh)
		}
	}
	n.back(nn.Mat{N: rows, D: numDeviceFeatures, V: y}, f.dh, n.wy, nn.Mat{})
}

// startBackward clears what encodeBackward will take.
func (f *pass) startBackward() {
	f.dq = grow(f.dq, f.q.N, f.q.D)
	clear(f.dq.V)
}

// encodeBackward ends the backward passes of the decisions on the units with
// features x, [U,S].
func (f *pass) encodeBackward(x []float32) {
	n := f.n
	for i := range f.dq.N {
		vec.Add(n.b.Grad, n.b.Grad, f.dq.Row(i))
	}
	f.dp = grow(f.dp, f.p.N, f.p.D)
	n.back(f.p, f.dq, n.wp, f.dp)
	vec.ReluBack(f.dp.V, f.p.V, f.dp.V)
	for i := range f.dp.N {
		vec.Add(n.c.Grad, n.c.Grad, f.dp.Row(i))
	}
	n.back(nn.Mat{N: f.p.N, D: numUnitFeatures, V: x}, f.dp, n.ws, nn.Mat{})
}
