package workloads

import (
	"math"
	"strings"

	"placer/graph"
	"placer/units"
)

// mlp is a multilayer perceptron of x, [R,d].
func (n *serving) mlp(m *MLP, l int, x tensor) (y tensor) {
	switch {
	case m.Experts != nil:
		return n.mixture(m, l, x)
	case m.Fused.Name != "": // one kernel reads both halves
		y = n.linear(m.Path+"."+m.Fused.Name, l, x, 2*m.Width, m.Fused.Bias)
		n.module(m.Path, l, func() { y = n.op(m.Activation, n.of(n.dim(x, 0), m.Width), y) })
	case m.Gate.Name != "":
		g := n.linear(m.Path+"."+m.Gate.Name, l, x, m.Width, m.Gate.Bias)
		u := n.linear(m.Path+"."+m.Up.Name, l, x, m.Width, m.Up.Bias)
		n.module(m.Path, l, func() { y = n.binary("Mul", n.unary(m.Activation, g), u) })
	default:
		y = n.linear(m.Path+"."+m.Up.Name, l, x, m.Width, m.Up.Bias)
		n.module(m.Path, l, func() { y = n.unary(m.Activation, y) })
	}
	return n.linear(m.Path+"."+m.Down.Name, l, y, n.d.Hidden, m.Down.Bias)
}

// mixture sends each row of x, [R,d], to some experts, and all to those that are shared.
// Experts are chosen evenly. One kernel computes the products of all experts that rows are
// sent to, and reads the weights of these alone.
func (n *serving) mixture(m *MLP, l int, x tensor) (y tensor) { return n.routed(m, l, x, x) }

// routed is a mixture of x, [R,d], whose router reads another tensor.
func (n *serving) routed(m *MLP, l int, read, x tensor) (y tensor) {
	e, rows := m.Experts, n.dim(x, 0)
	var scores, weight, chosen tensor
	router := m.Path + "." + e.Router.Name
	if e.Scaled {
		parent := router[:strings.LastIndexByte(router, '.')]
		read = n.norm(Norm{Path: parent + ".norm", Kind: "RMSNorm"}, l, read)
		n.module(parent, l, func() { read = n.binary("Mul", read, n.parameter("scale", false, n.d.Hidden)) })
	}
	n.module(router, l, func() {
		p := n.matmul(read, n.parameter("weight", false, n.d.Hidden, e.Count))
		if e.Router.Bias {
			p = n.bias(p, n.parameter("bias", false, e.Count))
		}
		p = n.softmax(p)
		if e.Correction && e.Statics == "" {
			p = n.binary("Add", p, n.state("e_score_correction_bias", false, e.Count))
		}
		scores = p
	})
	if e.Statics != "" {
		n.module(router+"."+e.Statics, l, func() {
			scores = n.binary("Add", scores, n.parameter("e_score_correction_bias", false, 1, e.Count))
		})
	}
	n.module(router, l, func() {
		top := n.add("TopK", "TopK", []tensor{scores}, n.of(rows, e.PerToken), ints(rows, e.PerToken))
		weight, chosen = n.b.Output(top, 0), n.b.Output(top, 1)
	})
	if e.Scaled {
		n.module(router[:strings.LastIndexByte(router, '.')], l, func() {
			weight = n.op("Mul", n.like(weight), weight, n.parameter("per_expert_scale", false, e.Count))
		})
	}
	in, columns := x, n.d.Hidden
	if e.Latent > 0 {
		in, columns = n.linear(m.Path+".fc1_latent_proj", l, x, e.Latent, e.Bias), e.Latent
	}
	n.module(m.Path+"."+e.Path, l, func() {
		h := n.op("GatherV2", n.of(rows*e.PerToken, columns), in, chosen)
		if e.Plain {
			h = n.grouped(e, "up_proj", h, e.Width)
		} else {
			h = n.grouped(e, "gate_up_proj", h, 2*e.Width)
		}
		h = n.op(e.Activation, n.of(rows*e.PerToken, e.Width), h)
		h = n.grouped(e, "down_proj", h, columns)
		y = n.op("UnsortedSegmentSum", n.like(in), h, chosen, weight)
	})
	if e.Latent > 0 {
		y = n.linear(m.Path+".fc2_latent_proj", l, y, n.d.Hidden, e.Bias)
	}
	if e.Shared == nil {
		return y
	}
	z := n.mlp(e.Shared, l, x)
	if e.SharedGate.Name != "" {
		g := n.linear(m.Path+"."+e.SharedGate.Name, l, x, 1, e.SharedGate.Bias)
		n.module(m.Path, l, func() { z = n.binary("Mul", z, n.unary("Sigmoid", g)) })
	}
	n.module(m.Path, l, func() { y = n.binary("Add", y, z) })
	return y
}

// grouped is the product of x, [rows sent,in], with the experts' weights of that name.
func (n *serving) grouped(e *Experts, name string, x tensor, out int64) tensor {
	sent, in := n.dim(x, 0), n.dim(x, 1)
	busy := e.busy(sent / e.PerToken)
	w := n.parameter(name, true, e.Count, in, out)
	m := graph.GEMM{Batch: busy, M: (sent + busy - 1) / busy, N: out, K: in}
	y := n.times(n.product("BatchMatMul", m, n.of(sent, out), x, w), name, e.Count, in, out)
	o := n.b.At(n.b.TensorAt(y).Producer)
	o.FLOPs = graph.GEMM{Batch: 1, M: sent, N: out, K: in}.FLOPs()
	o.Bytes = n.bytes(x) + bytesOf(n.of(sent, out)) + n.bytes(w)/units.Bytes(e.Count)*units.Bytes(busy)
	if e.Bias {
		y = n.op("BiasAdd", n.like(y), y, n.parameter(name+"_bias", false, e.Count, out))
	}
	return y
}

// busy is how many experts at least one of the rows is sent to, in the mean.
func (e *Experts) busy(rows int64) int64 {
	idle := math.Pow(1-float64(e.PerToken)/float64(e.Count), float64(rows))
	return min(max(int64(math.Round(float64(e.Count)*(1-idle))), e.PerToken), e.Count)
}
