package torch

import (
	"fmt"
	"slices"

	"placer/graph"
)

// A rank's columns of an nn.Linear are neighbours: the first T-th of them, the second. The strategy's
// graph has them by heads, wherever they are: a product that makes queries, keys and values has some
// of each on every rank. Where a model takes such a product apart, each part is cut by itself, and
// File.Parts says how many columns are whose.

// parts returns the sizes of the parts into which n columns of tensor t, its last dimension, are
// taken, in their order, n alone where they stay together. The error says where a rank's columns
// are no neighbours in a part.
func (c *cuts) parts(t graph.TensorID, n int64) ([]int64, error) {
	var taken []graph.TensorID                                         // parts of columns
	var by graph.OpID                                                  // one of the ops that take them
	queue, seen := []graph.TensorID{t}, map[graph.TensorID]int64{t: 0} // 0, or the heads of a tensor
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, v := range c.g.Consumers(x) {
			if c.g.Op(v).Phase != graph.Forward || !moves(c.g.Op(v).Kind) {
				continue
			}
			for u, end := c.g.Outputs(v); u < end; u++ {
				if _, ok := seen[u]; ok {
					continue
				}
				if seen[x] == 0 && c.takes(x, u) {
					seen[u], by = 0, v
					taken = append(taken, u)
					continue
				}
				heads, err := c.follow(x, u, n, seen[x])
				if k := c.equal(u, n); err != nil && seen[x] == 0 && k > 1 {
					return repeated(n/k, k), nil
				}
				if err != nil && seen[x] > 0 && n/seen[x]%c.ranks == 0 && len(c.g.Tensor(x).Shape) > len(c.g.Tensor(u).Shape) {
					return repeated(n/seen[x], seen[x]), nil
				}
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.g.Op(v).Name, err)
				}
				seen[u] = heads
				queue = append(queue, u)
			}
		}
	}
	if len(taken) == 0 {
		return []int64{n}, nil
	}
	var found []int64
	left := n
	for _, u := range taken {
		size := last(c.g.Tensor(u).Shape)
		left -= size
		if size%c.ranks != 0 {
			return nil, fmt.Errorf("%s: %d of its %d columns are taken, which %d ranks cannot share out", c.g.Op(by).Name, size, n, c.ranks)
		}
		sizes, err := c.parts(u, size)
		if err != nil {
			return nil, err
		}
		found = append(found, sizes...)
	}
	if left != 0 {
		return nil, fmt.Errorf("%s: of its %d columns parts of %d in all are taken, and a rank has some of each column's part", c.g.Op(by).Name, n, n-left)
	}
	return found, nil
}

// takes reports whether u is some of the last dimension of x.
func (c *cuts) takes(x, u graph.TensorID) bool {
	a, b := c.g.Tensor(x).Shape, c.g.Tensor(u).Shape
	return len(a) == len(b) && len(a) > 0 && slices.Equal(a[:len(a)-1], b[:len(b)-1]) && last(b) < last(a)
}

// equal returns the number of equal parts of n columns that the end of u's shape has, as [3, heads,
// width]; 0 where there are none, or ranks cannot share out what is next.
func (c *cuts) equal(u graph.TensorID, n int64) int64 {
	shape := c.g.Tensor(u).Shape
	for k, rest := len(shape)-1, n; k >= 0 && rest%max(1, shape[k]) == 0; k-- {
		if rest /= max(1, shape[k]); rest > 1 {
			continue
		}
		if k+1 < len(shape) && shape[k+1]%c.ranks == 0 && (k+2 == len(shape) || c.split.Heads == 0 || shape[k+1]%c.split.Heads == 0) {
			return shape[k]
		}
		return 0
	}
	return 0
}

func repeated(size, times int64) []int64 { return slices.Repeat([]int64{size}, int(times)) }

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
			case elements(shape) > elements(c.g.Tensor(t).Shape): // of which t is a part
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
