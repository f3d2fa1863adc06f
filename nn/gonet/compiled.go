package gonet

import (
	"slices"

	"placer/graphsage"
	"placer/nn"
	"placer/transformerxl"
)

// compiled is the network for one shape. Its operations read the data below by
// pointer.
type compiled struct {
	nodes, copies int
	instance      []*nn.Param
	tasks         []transformerxl.Task

	*nn.Graph
	x        *nn.Node
	given    *graphsage.Neighbours // as in the last batch
	lists    *graphsage.Neighbours // limited to the configured number
	boundsX  []int32               // of every copy
	ofH, ofX []transformerxl.Segment
	previous [][]int32 // [tasks and their kinds][R], indices into the states
	allowed  []bool
}

// prepare returns the graph for b's shape, with b's data and, if train, a backward pass. It
// keeps the graphs used last.
func (n *Network) prepare(b *Batch, train bool) (*compiled, error) {
	if err := b.check(n.config); err != nil {
		return nil, err
	}
	c, err := n.cached(b, train)
	if err != nil {
		return nil, err
	}
	c.set(b, n.config)
	return c, nil
}

// cached returns the graph for b's shape from the cache, or compiles it.
func (n *Network) cached(b *Batch, train bool) (*compiled, error) {
	return n.cache.Get(func(c *compiled) bool { return c.fits(b) }, train, func() (*compiled, error) { return n.compile(b, train) })
}

// fits reports whether c is for the shape of b and reads its instance logits.
func (c *compiled) fits(b *Batch) bool {
	return c.nodes == b.X.N && c.copies == b.copies() && slices.Equal(c.instance, b.InstanceLogits)
}

// compile returns the network for b's shape, in the order of the papers: the embedding of
// the graph, the decisions before, the decision network, the value.
func (n *Network) compile(b *Batch, train bool) (*compiled, error) {
	c := &compiled{nodes: b.X.N, copies: b.copies(), instance: b.InstanceLogits, tasks: n.config.Decision.Tasks()}
	g := nn.NewGraph(n.backend)
	c.Graph = g
	c.x = g.Input("features", b.X.N, b.X.D)
	h := n.encoder.Apply(g, c.x, &c.lists)
	x := h
	for i := range n.states {
		for range c.tasks[i].Kinds {
			c.previous = append(c.previous, make([]int32, c.copies*c.nodes))
		}
	}
	at := 0
	for i, state := range n.states {
		for range c.tasks[i].Kinds {
			x = g.AddEmbedding(x, state, c.copies*c.nodes, &c.previous[at])
			at++
		}
	}
	logits, states := n.decision.Apply(g, h, x, &c.ofH, &c.ofX)
	for i, t := range c.tasks {
		if c.instance != nil {
			logits[i] = g.AddRepeated(logits[i], g.Param(c.instance[i]))
		}
		if t.Name == transformerxl.Placement {
			logits[i] = g.Mask(logits[i], &c.allowed)
		}
		if t.Kinds > 1 {
			logits[i] = g.Reshape(logits[i], c.copies*c.nodes*t.Kinds, t.Levels)
		}
	}
	pooled := g.MeanRows(states, c.copies, &c.boundsX, n.config.DetachValue)
	v := n.value[1].Apply(g, nn.Identity, n.value[0].Apply(g, nn.Relu, pooled))
	return c, g.Compile(train, slices.Insert(logits, 1, v)...)
}

// set gives the graph the data of b.
func (c *compiled) set(b *Batch, config Config) {
	c.SetInput(c.x, b.X)
	if c.given != b.Neighbours {
		c.given, c.lists = b.Neighbours, b.Neighbours.Limit(config.Embedding.MaxNeighbours)
	}
	s, m := config.Decision.Segment, config.Decision.Memory
	c.ofH = transformerxl.Segments(b.bounds(1), s, m)
	c.boundsX = b.bounds(c.copies)
	c.ofX = transformerxl.Segments(c.boundsX, s, m)
	c.allowed = b.Allowed
	c.setPrevious(b.Previous)
}

// setPrevious deals out decisions, [copies][task][node][kind], as indices into
// the embeddings of each task and kind.
func (c *compiled) setPrevious(previous []int32) {
	if len(c.previous) == 0 {
		return
	}
	from := 0
	for k := range c.copies {
		to := 0
		for _, t := range c.tasks {
			for r := range c.nodes {
				for j := range t.Kinds {
					index := int32(-1)
					if previous != nil && previous[from] >= 0 {
						index = int32(j*t.Levels) + previous[from]
					}
					c.previous[to+j][k*c.nodes+r] = index
					from++
				}
			}
			to += t.Kinds
		}
	}
}

func (c *compiled) output() Output {
	o := Output{Values: c.Output(1).V}
	for i := range c.tasks {
		if i > 0 {
			i++ // output 1 are the values
		}
		o.Tasks = append(o.Tasks, c.Output(i))
	}
	o.Logits = o.Tasks[0]
	return o
}
