package torch

import (
	"fmt"

	"placer/graph"
)

// A rank's columns of an nn.Linear are neighbours: the first T-th of them, the second. The strategy's
// graph has them by heads, wherever they are: a product that makes queries, keys and values has some
// of each on every rank. Where a model takes columns apart or puts them together, the two differ.

// columns reports where the columns of product i are taken apart otherwise than by heads.
func (c *cuts) columns(i graph.OpID) error {
	n := c.g.Op(i).GEMM.N
	first, _ := c.g.Outputs(i)
	queue, seen := []graph.TensorID{first}, map[graph.TensorID]int64{first: 0} // 0, or the heads of a tensor
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		for _, v := range c.g.Consumers(t) {
			if c.g.Op(v).Phase != graph.Forward || !moves(c.g.Op(v).Kind) {
				continue
			}
			for u, end := c.g.Outputs(v); u < end; u++ {
				if _, ok := seen[u]; ok {
					continue
				}
				heads, err := c.follow(t, u, n, seen[t])
				if err != nil {
					return fmt.Errorf("%s: %w", c.g.Op(v).Name, err)
				}
				seen[u] = heads
				queue = append(queue, u)
			}
		}
	}
	return nil
}

// follow returns the heads in which u, made of t, has n columns, 0 while they are one dimension. t
// has so many heads.
func (c *cuts) follow(t, u graph.TensorID, n, heads int64) (int64, error) {
	x, y := c.g.Tensor(t).Shape, c.g.Tensor(u).Shape
	a, b := elements(x), elements(y)
	switch {
	case heads == 0 && last(y) == n:
		return 0, nil
	case heads == 0 && a == b:
		return c.heads(y, n)
	case heads == 0:
		return 0, fmt.Errorf("its columns %v become %v, and a rank's are neighbours, not some of each part (give each part a layer of its own)", x, y)
	case b >= a:
		return heads, nil
	case len(x) == len(y): // some of a dimension
		for k := range x[:len(x)-1] {
			if x[k] > y[k] && x[k] == heads {
				return 0, fmt.Errorf("of %v %v is taken, some of the heads", x, y)
			}
		}
	case a/b == heads && count(x, heads) > count(y, heads):
		return 0, fmt.Errorf("of %v %v is taken, and a rank's columns are neighbours, not some of each of %d parts (give each part a layer of its own)", x, y, heads)
	}
	return heads, nil
}

// heads returns the outermost of the dimensions that n columns are in the end of a shape.
func (c *cuts) heads(shape graph.Shape, n int64) (int64, error) {
	for k, rest := len(shape)-1, n; k >= 0 && rest%max(1, shape[k]) == 0; k-- {
		if rest /= max(1, shape[k]); rest > 1 {
			continue
		}
		parts := shape[k:]
		outer := parts[0]
		switch h := c.split.Heads; {
		case outer%c.ranks != 0, len(parts) > 2 && h > 0 && outer%h != 0, len(parts) > 2 && parts[0] == parts[1]:
			return 0, fmt.Errorf("its columns are %v of %v, of which the first is nothing that %d ranks share out (heads)", parts, shape, c.ranks)
		}
		return outer, nil
	}
	return 0, fmt.Errorf("its %d columns are not the last dimensions of %v", n, shape)
}

// inputs reports where what product i reads is put together of several tensors' columns.
func (c *cuts) inputs(i graph.OpID) error {
	x, _ := c.split.Factors(i)
	k := c.g.Op(i).GEMM.K
	queue, seen := []graph.TensorID{x}, map[graph.TensorID]bool{x: true}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		p := c.g.Tensor(t).Producer
		if !moves(c.g.Op(p).Kind) {
			continue
		}
		for _, u := range c.g.Inputs(p) {
			switch shape := c.g.Tensor(u).Shape; {
			case seen[u] || !c.split.Cut[u]:
			case last(shape) == k:
				seen[u] = true
				queue = append(queue, u)
			case elements(shape) < elements(c.g.Tensor(t).Shape):
				return fmt.Errorf("%s: %v is put into %v, of whose columns a rank has neighbours, not some of each part", c.g.Op(p).Name, shape, c.g.Tensor(t).Shape)
			case elements(shape) == elements(c.g.Tensor(t).Shape):
				if _, err := c.heads(shape, k); err != nil {
					return fmt.Errorf("%s: %w", c.g.Op(p).Name, err)
				}
			}
		}
	}
	return nil
}

// moves reports whether ops of a kind leave columns where they are, or move them.
func moves(k graph.Kind) bool {
	switch k.Class() {
	case graph.ClassElementwise, graph.ClassMeta, graph.ClassMove:
		return true
	}
	return false
}

func last(s graph.Shape) int64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1]
}

func elements(s graph.Shape) int64 {
	n, err := s.Elements()
	if err != nil {
		return 0
	}
	return n
}

// count returns how many dimensions of a shape are n.
func count(s graph.Shape, n int64) (k int) {
	for _, d := range s {
		if d == n {
			k++
		}
	}
	return k
}
