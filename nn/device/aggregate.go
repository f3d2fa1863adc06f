package device

import (
	"placer/graphsage"
	"placer/hw/gpu"
	"placer/nn"
)

// aggregate takes h, W, b: the maximum over each node's list of sigmoid(h W + b).
type aggregate struct {
	graphsage.AggregateOp
	given                                *graphsage.Neighbours // the lists on the device
	start, index, back, readers, winners room
}

func (k *aggregate) rooms() []*room {
	return []*room{&k.start, &k.index, &k.back, &k.readers, &k.winners}
}

func (k *aggregate) forward(e *engine, in []mat, out mat) {
	d := e.d
	if lists := *k.Lists; lists != k.given {
		back := readers(lists)
		for _, x := range []struct {
			r *room
			v []int32
		}{{&k.start, lists.Start}, {&k.index, lists.Index}, {&k.back, back.Start}, {&k.readers, back.Index}} {
			upload(d, d.grow(x.r, 4*len(x.v)), x.v)
		}
		if d.err == nil {
			k.given = lists
		}
	}
	z := mat{Ptr: d.scratch(keyHidden, 4*out.size()), n: out.n, d: out.d}
	d.linear(nn.Sigmoid, in[:1], in[1:2], in[2], z)
	d.each(kGatherMax, out.size(), uint64(z.Ptr), uint64(k.start.ptr), uint64(k.index.ptr), uint64(out.Ptr), uint64(d.grow(&k.winners, 4*out.size())), uint64(out.n), uint64(out.d))
}

func (k *aggregate) backward(e *engine, in []mat, out mat, grad gpu.Ptr) {
	z := e.d.scratch(keyHidden, 4*out.size())
	e.d.each(kGatherBack, out.size(), uint64(z), uint64(out.Ptr), uint64(grad), uint64(k.winners.ptr), uint64(k.back.ptr), uint64(k.readers.ptr), uint64(out.n), uint64(out.d))
	e.linearBack(in[:1], in[1:2], in[2], mat{Ptr: z, n: out.n, d: out.d})
}

// readers returns, for each node, the nodes whose lists name it, each once, so
// that a gradient is gathered rather than scattered.
func readers(n *graphsage.Neighbours) *graphsage.Neighbours {
	nodes := len(n.Start) - 1
	r := &graphsage.Neighbours{Start: make([]int32, nodes+1)}
	last := make([]int32, nodes) // 1 + the latest reader of each node
	each := func(f func(v, u int32)) {
		clear(last)
		for v := range int32(nodes) {
			for _, u := range n.Index[n.Start[v]:n.Start[v+1]] {
				if last[u] != v+1 {
					last[u] = v + 1
					f(v, u)
				}
			}
		}
	}
	each(func(_, u int32) { r.Start[u+1]++ })
	for v := range nodes {
		r.Start[v+1] += r.Start[v]
	}
	r.Index = make([]int32, r.Start[nodes])
	at := append([]int32(nil), r.Start...)
	each(func(v, u int32) {
		r.Index[at[u]] = v
		at[u]++
	})
	return r
}
