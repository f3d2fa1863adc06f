package workloads

import (
	"placer/graph"
	"placer/units"
)

// convolve convolves each column of x, [B*S,C], by itself over kernel tokens, and applies the
// activation.
func (n *serving) convolve(path string, l int, x tensor, kernel int64, bias bool) (y tensor) {
	n.module(path, l, func() {
		rows, columns := n.dim(x, 0), n.dim(x, 1)
		read := []tensor{x, n.parameter("weight", false, columns, 1, kernel)}
		if bias {
			read = append(read, n.parameter("bias", false, columns))
		}
		if n.s.Past > 0 {
			read = append(read, n.kept("conv_cache", n.of(n.s.Batch, columns, kernel-1)))
		}
		y = n.op(graph.CausalConv, n.like(x), read...)
		n.inPlace(y, read, units.FLOPs(2*kernel*columns*rows))
	})
	return y
}

// recurrence is the product m of what is read with a state, [B,heads,...] in f32, which it updates:
// so many columns for each head, [B,S,heads,columns].
func (n *serving) recurrence(m graph.GEMM, columns int64, state graph.Tensor, read []tensor) tensor {
	b, heads := state.Shape[0], state.Shape[1]
	state.DType = graph.F32
	if n.s.Past > 0 {
		read = append(read, n.kept("state_cache", state))
	}
	y := n.product("BatchMatMul", m, n.of(b, heads, n.s.Seq, columns), read...)
	n.inPlace(y, read, m.FLOPs())
	return n.reshape(y, b, n.s.Seq, heads, columns)
}

// kept adds what is kept from step to step in the place of itself: x, which the next op reads and
// writes.
func (n *serving) kept(name string, x graph.Tensor) tensor {
	x.Resident = true
	n.group++
	c := n.add(name, "VariableV2", nil, x)
	n.b.At(c).Resident, n.b.At(c).Group = bytesOf(x), n.group
	return n.b.Output(c, 0)
}

// inPlace says what the op of y does: f operations, and to move what it reads and y, and the last
// it reads once more where that is kept.
func (n *serving) inPlace(y tensor, read []tensor, f units.FLOPs) {
	o := n.b.At(n.b.TensorAt(y).Producer)
	o.FLOPs, o.Bytes = f, n.bytes(y)
	for _, t := range read {
		o.Bytes += n.bytes(t)
	}
	if n.s.Past > 0 {
		o.Bytes, o.Group = o.Bytes+n.bytes(read[len(read)-1]), n.group
	}
}
