package sequential

import (
	"math/rand/v2"

	"placer/nn"
	"placer/nn/vec"
	"placer/transformerxl"
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
//
// With an encoder a unit has an embedding as well: a query, a key and context. It is
// added to what h_d reads, W_e (query, key, context), and
//
//	score_d += learned (query . sum over the units v on d of w_v key_v) / sqrt(A)
//
// with w_v the share of v's work in a device's mean load: what the unit has to do with
// those that are there. While a placement is refined, units not decided yet are where
// the one before has them.
type network struct {
	params                                    *nn.Params
	backend                                   *nn.Backend
	encoder                                   *encoder // nil: none
	ws, c, wp, wy, b, wh, wm, e, last, linear *nn.Param
	we                                        *nn.Param // [E,H] of the embedding; nil without encoder
	hidden                                    int
	unguided                                  bool // guides among the features are 0
}

// priorWeight is the score of the device that the prior chooses: two devices with
// nothing else to tell them apart follow it 19 times in 20.
const priorWeight = 3

// newNetwork adds the weights of a network to ps.
func newNetwork(config Config, ps *nn.Params, random *rand.Rand, backend *nn.Backend) *network {
	hidden := config.Hidden
	n := &network{params: ps, backend: backend, hidden: hidden, unguided: config.Unguided}
	n.ws, n.c = ps.Glorot("static", random, numUnitFeatures, hidden), ps.Constant("static_bias", 0, 1, hidden)
	n.wp = ps.Glorot("unit", random, hidden, hidden)
	n.wy, n.b = ps.Glorot("dynamic", random, numDeviceFeatures, hidden), ps.Constant("dynamic_bias", 0, 1, hidden)
	n.wh, n.wm = ps.Glorot("device", random, hidden, hidden), ps.Glorot("mean", random, hidden, hidden)
	n.e = ps.Constant("device_bias", 0, 1, hidden)
	n.last = ps.Normal("score", random, 0.01, hidden, 1)
	n.linear = ps.Constant("straight", 0, numDeviceFeatures, 1)
	if config.Encoder != nil {
		n.we = ps.Glorot("embedding", random, embeddingWidth, hidden)
		n.encoder = newEncoder(*config.Encoder, ps, random, backend)
	}
	return n
}

// changed says that the weights are other ones.
func (n *network) changed() {
	if n.encoder != nil {
		n.encoder.changed()
	}
}

// pass holds what a forward pass leaves for the backward pass. Letters: U units,
// G decisions, D devices, H hidden, E columns of an embedding, A of a query or a key.
type pass struct {
	n              *network
	s              *instance
	devices        int
	embedding      nn.Mat // [U,E], of the encoder
	p, q           nn.Mat // [U,H] relu(W_s x + c), and W_p p + W_e embedding + b
	h, m, k        nn.Mat // [G*D,H], [G,H], [G*D,H]
	mm             nn.Mat // [G,H] W_m m + e
	scores         []float32
	dh, dm, dq, dp nn.Mat
	dEmbedding     nn.Mat // [U,E]
	fixedEncoder   bool   // the encoder keeps its weights: no gradient flows into it
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

// encode computes what depends on the units of s alone.
func (f *pass) encode(s *instance) {
	n, u := f.n, s.part.NumUnits()
	f.s = s
	f.p, f.q = grow(f.p, u, n.hidden), grow(f.q, u, n.hidden)
	n.product(nn.Mat{N: u, D: numUnitFeatures, V: s.features}, n.ws, 0, f.p)
	for i := range u {
		vec.ReluBias(f.p.Row(i), n.c.Value)
	}
	n.product(f.p, n.wp, 0, f.q)
	if n.encoder != nil {
		f.embedding = n.encoder.embed(s)
		n.product(f.embedding, n.we, 1, f.q)
	}
	for i := range u {
		vec.Add(f.q.Row(i), f.q.Row(i), n.b.Value)
	}
}

// query and key are those of unit u, [A].
func (f *pass) query(u int32) []float32 { return f.embedding.Row(int(u))[:affinityWidth] }
func (f *pass) key(u int32) []float32 {
	return f.embedding.Row(int(u))[affinityWidth : 2*affinityWidth]
}

// forward returns the scores, [G*D], of the devices for decisions on units unit, [G],
// with device features y, [G*D,F], and, with an encoder, the keys of what the devices
// hold, [G*D,A]. The result is valid until the next call.
func (f *pass) forward(unit []int32, y, keys []float32, devices int) []float32 {
	n, g := f.n, len(unit)
	f.devices = devices
	rows := g * devices
	f.h, f.m, f.k, f.mm = grow(f.h, rows, n.hidden), grow(f.m, g, n.hidden), grow(f.k, rows, n.hidden), grow(f.mm, g, n.hidden)
	n.product(nn.Mat{N: rows, D: numDeviceFeatures, V: y}, n.wy, 0, f.h)
	inverse := 1 / float32(devices)
	for i, u := range unit {
		m, q := f.m.Row(i), f.q.Row(int(u))
		clear(m)
		for d := range devices {
			h := f.h.Row(i*devices + d)
			vec.ReluBias(h, q)
			vec.Axpy(m, h, inverse)
		}
	}
	n.product(f.m, n.wm, 0, f.mm)
	for i := range g {
		vec.Add(f.mm.Row(i), f.mm.Row(i), n.e.Value)
	}
	n.product(f.h, n.wh, 0, f.k)
	f.scores = resized(f.scores, rows)
	for i := range rows {
		k, row := f.k.Row(i), featuresOf(y, i)
		vec.ReluBias(k, f.mm.Row(i/devices))
		learned := vec.Dot(k, n.last.Value) + vec.Dot(row, n.linear.Value)
		if n.encoder != nil {
			learned += affinityScale * vec.Dot(f.query(unit[i/devices]), keysOf(keys, i))
		}
		f.scores[i] = row[learnedFeature]*learned + priorWeight*row[priorFeature]
	}
	return f.scores
}

// affinityScale is 1/sqrt(A).
const affinityScale = 1. / 4

// keysOf returns row i of the keys that devices hold, [A].
func keysOf(keys []float32, i int) []float32 {
	return keys[i*affinityWidth : (i+1)*affinityWidth]
}

// featuresOf returns row i of device features y.
func featuresOf(y []float32, i int) []float32 {
	return y[i*numDeviceFeatures : (i+1)*numDeviceFeatures]
}

// backward adds the gradient of the weights for the gradient of the last
// forward's scores, [G*D], but for what flows into the units' part, which it
// collects for encodeBackward. It overwrites what forward left, and with an encoder the
// keys, [G*D,A], by their gradient.
func (f *pass) backward(unit []int32, y, keys, grad []float32) {
	n, g, rows := f.n, f.m.N, f.h.N
	scaled := make([]float32, n.hidden)
	f.dh, f.dm = grow(f.dh, rows, n.hidden), grow(f.dm, g, n.hidden)
	for i := range rows {
		k, row := f.k.Row(i), featuresOf(y, i)
		g := grad[i] * row[learnedFeature]
		vec.Axpy(n.last.Grad, k, g)
		vec.Axpy(n.linear.Grad, row, g)
		if n.encoder != nil {
			u, held := unit[i/f.devices], keysOf(keys, i)
			if !f.fixedEncoder {
				vec.Axpy(f.dEmbedding.Row(int(u))[:affinityWidth], held, g*affinityScale)
			}
			copy(held, f.query(u))
			vec.Scale(held, g*affinityScale)
		}
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

// learnsEmbedding reports whether an encoder takes a gradient.
func (f *pass) learnsEmbedding() bool { return f.n.encoder != nil && !f.fixedEncoder }

// startBackward clears what encodeBackward will take.
func (f *pass) startBackward() {
	f.dq = grow(f.dq, f.q.N, f.q.D)
	clear(f.dq.V)
	if f.learnsEmbedding() {
		f.dEmbedding = grow(f.dEmbedding, f.q.N, embeddingWidth)
		clear(f.dEmbedding.V)
	}
}

// encodeBackward ends the backward passes of the decisions on the units.
func (f *pass) encodeBackward() {
	n := f.n
	if n.encoder != nil {
		n.back(f.embedding, f.dq, n.we, nn.Mat{})
	}
	if f.learnsEmbedding() {
		n.backend.Gemm(false, true, f.dq.N, embeddingWidth, n.hidden, f.dq.V, n.hidden, n.we.Value, n.hidden, 1, f.dEmbedding.V, embeddingWidth)
		n.encoder.backward(f.s, map[string]nn.Mat{transformerxl.Placement: f.dEmbedding})
	}
	for i := range f.dq.N {
		vec.Add(n.b.Grad, n.b.Grad, f.dq.Row(i))
	}
	f.dp = grow(f.dp, f.p.N, f.p.D)
	n.back(f.p, f.dq, n.wp, f.dp)
	vec.ReluBack(f.dp.V, f.p.V, f.dp.V)
	for i := range f.dp.N {
		vec.Add(n.c.Grad, n.c.Grad, f.dp.Row(i))
	}
	n.back(nn.Mat{N: f.p.N, D: numUnitFeatures, V: f.s.features}, f.dp, n.ws, nn.Mat{})
}
