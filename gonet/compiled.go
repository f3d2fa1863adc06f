package gonet

import (
	"placer/graphsage"
	"placer/nn"
	"placer/transformerxl"
)

// compiled is the network for one shape. Its operations read the data below by
// pointer.
type compiled struct {
	nodes, copies, graphs int
	free                  *nn.Param

	graph    *nn.Graph
	x        *nn.Node
	given    *graphsage.Neighbours // as in the last batch
	lists    *graphsage.Neighbours // limited to the configured number
	boundsX  []int32               // of every copy of every graph
	ofH, ofX []transformerxl.Segment
	previous []int32
	allowed  []bool
}

// compiled returns the graph for b's shape, with a backward pass if train.
func (n *Network) compiled(b *Batch, train bool) (*compiled, error) {
	for i, c := range n.cache {
		if c.nodes != b.X.N || c.copies != b.copies() || c.graphs != b.graphs() || c.free != b.Free {
			continue
		}
		n.cache = append(n.cache[:i], n.cache[i+1:]...)
		if c.graph.Trains() || !train {
			n.cache = append(n.cache, c)
			return c, nil
		}
		break // it can only go forward: replace it
	}
	c, err := n.compile(b, train)
	if err != nil {
		return nil, err
	}
	n.cache = append(n.cache, c)
	if len(n.cache) > n.config.CachedGraphs {
		n.cache = append([]*compiled(nil), n.cache[1:]...)
	}
	return c, nil
}

func (n *Network) compile(b *Batch, train bool) (*compiled, error) {
	c := &compiled{nodes: b.X.N, copies: b.copies(), graphs: b.graphs(), free: b.Free}
	g := nn.NewGraph(n.backend)
	c.graph = g
	c.x = g.Input("features", b.X.N, b.X.D)
	h := n.encoder.Apply(g, c.x, &c.lists)
	x := h
	if n.state != nil {
		x = g.AddEmbedding(h, n.state, c.copies*c.nodes, &c.previous)
	}
	logits, states := n.decision.Apply(g, h, x, &c.ofH, &c.ofX)
	if c.free != nil {
		logits = g.AddRepeated(logits, g.Param(c.free))
	}
	logits = g.Mask(logits, &c.allowed)
	pooled := g.MeanRows(states, c.copies*c.graphs, &c.boundsX, n.config.DetachValue)
	v := g.Linear(nn.Relu, []*nn.Node{pooled}, n.value[:1], n.valueB[0])
	v = g.Linear(nn.Identity, []*nn.Node{v}, n.value[1:], n.valueB[1])
	return c, g.Compile(train, logits, v)
}

// set gives the graph the data of b.
func (c *compiled) set(b *Batch, config Config) {
	c.graph.SetInput(c.x, b.X)
	if c.given != b.Neighbours {
		c.given, c.lists = b.Neighbours, b.Neighbours.Limit(config.Embedding.MaxNeighbours)
	}
	s, m := config.Decision.Segment, config.Decision.Memory
	c.ofH = transformerxl.Segments(b.bounds(1), s, m)
	c.boundsX = b.bounds(c.copies)
	c.ofX = transformerxl.Segments(c.boundsX, s, m)
	c.allowed = b.Allowed
	c.previous = b.Previous
	if c.previous == nil && config.Iterations > 1 {
		c.previous = make([]int32, c.copies*c.nodes)
		for i := range c.previous {
			c.previous[i] = -1
		}
	}
}

func (c *compiled) output() Output {
	return Output{c.graph.Output(0), c.graph.Output(1).V}
}
