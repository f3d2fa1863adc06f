package torch

import (
	"placer/graph"
	"placer/graph/strategy"
)

// collectivesOf counts what rank 0 takes part in and sends in a folded step: every collective of
// its stage, and each of its tensors once for each other rank that reads it.
func collectivesOf(x *strategy.Step) (c Collectives) {
	for _, k := range x.Collectives {
		if !k.On(0) || k.Axis == strategy.NormAxis { // PyTorch's is of other numbers: each mesh dimension's
			continue
		}
		switch k.Kind {
		case strategy.AllReduce:
			c.AllReduce.add(int64(k.Bytes))
		case strategy.AllGather:
			c.AllGather.add(int64(k.Bytes))
		case strategy.ReduceScatter:
			c.ReduceScatter.add(int64(k.Bytes))
		case strategy.AllToAll:
			c.AllToAll.add(int64(k.Bytes))
		}
	}
	g := x.Graph
	for t := range graph.TensorID(g.NumTensors()) {
		if x.Rank[g.Tensor(t).Producer] != 0 {
			continue
		}
		var sent [256]bool
		for _, v := range g.Consumers(t) {
			if r := x.Rank[v]; r != 0 && !sent[r] {
				sent[r] = true
				c.Send.add(int64(g.Tensor(t).Bytes))
			}
		}
	}
	return c
}

func (c *Calls) add(bytes int64) { c.Calls, c.Bytes = c.Calls+1, c.Bytes+bytes }
