package onnx

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/units"
)

// control infers If, Loop and Scan.
func (c *call) control(op string) error {
	switch op {
	case "If":
		return c.branch()
	case "Loop":
		return c.loop()
	}
	return c.scan()
}

// branch costs what the dearer branch costs, or the one whose condition is
// known to hold. A branch whose shapes depend on data leaves the other.
func (c *call) branch() error {
	var best *body
	var failed error
	cond, known := c.known(0)
	known = known && len(cond) == 1
	for k, name := range []string{"then_branch", "else_branch"} {
		if known && (cond[0] != 0) != (k == 0) {
			continue
		}
		b, g, err := c.subgraph(name, nil)
		if err != nil {
			failed = err
			continue
		}
		if len(g.outputs) < len(c.out) {
			return fmt.Errorf("graph %s has %d outputs, want %d", name, len(g.outputs), len(c.out))
		}
		if best != nil && b.total() <= best.total() {
			continue
		}
		best = b
		for k := range c.out {
			*c.out[k] = *b.scope.find(g.outputs[k].name)
			if !known {
				c.out[k].value = nil
			}
		}
	}
	switch {
	case best == nil && failed != nil:
		return failed
	case failed != nil:
		c.imp.note("%s: one branch is left out: %v", brief(c.node.op+" "+c.node.name), failed)
	}
	if best != nil {
		c.take(best, 1)
	}
	return nil
}

func (b *body) total() (f units.FLOPs) {
	for _, p := range b.products {
		f += p.FLOPs() * units.FLOPs(p.times)
	}
	return b.flops + f
}

// changing returns the shape and type of t without its elements: inside of a
// loop they change.
func changing(t *tensor) *tensor { return &tensor{elem: t.elem, shape: t.shape, why: t.why} }

// loop: trip count, condition, carried values; the body takes iteration,
// condition and carried values, and gives condition, carried values and one
// slice of each list to be collected.
func (c *call) loop() error {
	carried := max(len(c.in)-2, 0)
	trips := c.trips()
	inputs := []*tensor{{elem: elemInt64, shape: graph.Shape{}}, {elem: elemBool, shape: graph.Shape{}}}
	for k := range carried {
		inputs = append(inputs, changing(c.input(k+2)))
	}
	b, g, err := c.subgraph("body", inputs)
	if err != nil {
		var depends dataDependent
		if errors.As(err, &depends) && len(c.out) <= carried {
			c.imp.note("%s is left out, and its results count as what it begins with: %v", brief(c.node.op+" "+c.node.name), err)
			return c.unchanged(inputs[2:])
		}
		return err
	}
	if len(g.outputs) < 1+len(c.out) || len(c.out) < carried {
		return fmt.Errorf("graph body has %d outputs for %d carried values and %d results", len(g.outputs), carried, len(c.out))
	}
	c.take(b, trips)
	return c.results(b, g, 1, func(k int, s graph.Shape) graph.Shape {
		if k >= carried {
			s = join([]int64{trips}, s)
		}
		return s
	})
}

// unchanged gives the outputs types and shapes of the carried values, and the node no cost.
func (c *call) unchanged(carried []*tensor) error {
	for k := range c.out {
		if carried[k].shape == nil {
			return fmt.Errorf("input %d has no shape%s", k+2, carried[k].why)
		}
		c.set(k, carried[k].elem, carried[k].shape)
	}
	c.flops, c.bytes = 0, 0
	return nil
}

// results gives output k the shape that collected makes of that of output first+k of
// the body.
func (c *call) results(b *body, g *protoGraph, first int, collected func(k int, s graph.Shape) graph.Shape) error {
	for k := range c.out {
		t := b.scope.find(g.outputs[first+k].name)
		if t.shape == nil {
			return fmt.Errorf("graph body: output %d has no shape%s", first+k, t.why)
		}
		c.set(k, t.elem, collected(k, t.shape))
	}
	return nil
}

// trips returns the trip count of a loop, 1 where it is not known.
func (c *call) trips() int64 {
	if v, ok := c.known(0); ok && len(v) == 1 && v[0] <= graph.MaxRepeats {
		return max(v[0], 0)
	}
	c.imp.note("%s: the number of iterations is not known and taken as 1: a lower bound", brief(c.node.op+" "+c.node.name))
	return 1
}

// scan: states, then sequences that the body takes slice by slice.
func (c *call) scan() error {
	if c.opset() < 9 {
		return fmt.Errorf("operator Scan of operator set %d is not supported, 9 and later are", c.opset())
	}
	m := int(min(max(c.node.int("num_scan_inputs", 0), 0), int64(len(c.in))))
	states := len(c.in) - m
	if m < 1 {
		return fmt.Errorf("num_scan_inputs is %d of %d inputs", c.node.int("num_scan_inputs", 0), len(c.in))
	}
	axes := c.perAxis("scan_input_axes", m, 0)
	var inputs []*tensor
	length := int64(0)
	for k := range c.in {
		t := changing(c.input(k))
		if k >= states {
			s := c.ranked(k, 1, maxRank)
			axis := c.axis(axes[k-states], len(s))
			length, t.shape = s[axis], join(s[:axis], s[axis+1:])
		}
		inputs = append(inputs, t)
	}
	b, g, err := c.subgraph("body", inputs)
	if err != nil {
		return err
	}
	if len(g.outputs) < len(c.out) || len(c.out) < states {
		return fmt.Errorf("graph body has %d outputs for %d states and %d results", len(g.outputs), states, len(c.out))
	}
	outAxes := c.perAxis("scan_output_axes", len(c.out)-states, 0)
	c.take(b, length)
	return c.results(b, g, 0, func(k int, s graph.Shape) graph.Shape {
		if k >= states {
			axis := c.axis(outAxes[k-states], len(s)+1)
			s = join(s[:axis], []int64{length}, s[axis:])
		}
		return s
	})
}
