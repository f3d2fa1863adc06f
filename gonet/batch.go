package gonet

import (
	"errors"
	"fmt"

	"placer/graphsage"
	"placer/nn"
)

// Batch is the input of one run: N nodes of one or more graphs, and R = Copies N
// rows of decisions about them, copy after copy.
type Batch struct {
	X          nn.Mat                // [N,F]
	Neighbours *graphsage.Neighbours // of N nodes; must not change afterwards
	// Bounds are the first rows of the graphs and N at the end, [G+1]; nil means
	// one graph. Attention and values stay within a graph.
	Bounds []int32
	// Copies is the number of decisions worked on side by side; 0 means 1. More
	// than 1 is of use only with Previous.
	Copies int
	// Previous is the decision before, [Copies N], -1 for none; nil means none
	// at all. Only networks with Iterations above 1 read it.
	Previous []int32
	// Allowed forbids choices: nil allows all, [A] holds for every node, [N A]
	// for each on its own.
	Allowed []bool
	// Free is added to the logits, [N,A], if not nil: logits of this very problem
	// that belong to the parameters but not to the network. See Network.AddFree.
	Free *nn.Param
}

func (b *Batch) copies() int { return max(b.Copies, 1) }

func (b *Batch) graphs() int {
	if b.Bounds == nil {
		return 1
	}
	return len(b.Bounds) - 1
}

// bounds returns the row bounds of every graph in every one of k copies.
func (b *Batch) bounds(k int) []int32 {
	one := b.Bounds
	n := int32(b.X.N)
	if one == nil {
		one = []int32{0, n}
	}
	all := []int32{0}
	for i := range int32(k) {
		for _, x := range one[1:] {
			all = append(all, i*n+x)
		}
	}
	return all
}

// check reports every fault of b for a network of configuration c.
func (b *Batch) check(c Config) error {
	n, a := b.X.N, c.Decision.Choices
	if n < 1 || b.X.D != c.Embedding.Features || len(b.X.V) != n*b.X.D {
		return fmt.Errorf("gonet: features %s with %d elements, want [N,%d]", b.X, len(b.X.V), c.Embedding.Features)
	}
	if b.Neighbours == nil {
		return errors.New("gonet: batch without neighbours")
	}
	all := []error{b.Neighbours.Check(n), nn.CheckMask(b.Allowed, n, a)}
	if b.Bounds != nil {
		bad := len(b.Bounds) < 2 || b.Bounds[0] != 0 || int(b.Bounds[len(b.Bounds)-1]) != n
		for i := 1; i < len(b.Bounds); i++ {
			bad = bad || b.Bounds[i] <= b.Bounds[i-1]
		}
		if bad {
			all = append(all, fmt.Errorf("bounds %v do not cut %d nodes into graphs", b.Bounds, n))
		}
	}
	if c.Iterations == 1 && (b.copies() > 1 || b.Previous != nil) {
		all = append(all, fmt.Errorf("%d copies and %d previous decisions for a network with one iteration", b.copies(), len(b.Previous)))
	}
	if b.Previous != nil && len(b.Previous) != b.copies()*n {
		all = append(all, fmt.Errorf("%d previous decisions for %d copies of %d nodes", len(b.Previous), b.copies(), n))
	}
	for i, p := range b.Previous {
		if p < -1 || int(p) >= a {
			all = append(all, fmt.Errorf("previous decision %d is %d, want -1 to %d", i, p, a-1))
			break
		}
	}
	if b.Free != nil && (len(b.Free.Shape) != 2 || b.Free.Shape[0] != n || b.Free.Shape[1] != a) {
		all = append(all, fmt.Errorf("free logits %v, want [%d %d]", b.Free.Shape, n, a))
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("gonet: %w", err)
	}
	return nil
}
