package gonet

import (
	"errors"
	"fmt"

	"placer/graphsage"
	"placer/internal/faults"
	"placer/nn"
	"placer/transformerxl"
)

// Batch is the input of one run: the N nodes of a graph, and R = Copies N rows of
// decisions about them, copy after copy.
type Batch struct {
	X          nn.Mat                // [N,F]
	Neighbours *graphsage.Neighbours // of N nodes; must not change afterwards
	// Copies is the number of decisions worked on side by side; 0 means 1. More
	// than 1 is of use only with Previous.
	Copies int
	// Previous is the decision before, [Copies M], -1 for none; nil means none
	// at all. A decision holds the choices of one task after those of another, M in
	// all. Only networks with Iterations above 1 read it.
	Previous []int32
	// Allowed forbids devices: nil allows all, [A] holds for every node, [N A]
	// for each on its own.
	Allowed []bool
	// InstanceLogits are added to the logits of each task, [N,Columns], if not nil: logits of
	// this very problem that belong to the parameters but not to the network. See
	// Network.AddInstanceLogits.
	InstanceLogits []*nn.Param
}

func (b *Batch) copies() int { return max(b.Copies, 1) }

// bounds returns the first row of each of k copies and the end of the last, [k+1].
func (b *Batch) bounds(k int) []int32 {
	all := make([]int32, k+1)
	for i := range all {
		all[i] = int32(i * b.X.N)
	}
	return all
}

// check reports every fault of b for a network of configuration c.
func (b *Batch) check(c Config) error {
	n := b.X.N
	if n < 1 || b.X.D != c.Embedding.Features || len(b.X.V) != n*b.X.D {
		return fmt.Errorf("gonet: features %s with %d elements, want [N,%d]", b.X, len(b.X.V), c.Embedding.Features)
	}
	if b.Neighbours == nil {
		return errors.New("gonet: batch without neighbours")
	}
	tasks := c.Decision.Tasks()
	if err := errors.Join(b.Neighbours.Check(n), b.checkAllowed(c.Decision.Choices), b.checkPrevious(c.Iterations, tasks), b.checkInstanceLogits(tasks)); err != nil {
		return fmt.Errorf("gonet: %w", err)
	}
	return nil
}

// checkAllowed reports a mask of another size than that of the choices of a device.
func (b *Batch) checkAllowed(choices int) error {
	if choices > 0 {
		return nn.CheckMask(b.Allowed, b.X.N, choices)
	}
	if b.Allowed != nil {
		return errors.New("a mask of devices for a network that does not place")
	}
	return nil
}

// checkPrevious reports decisions before that no network of so many iterations reads, are
// too many or too few, or are no choice of their task.
func (b *Batch) checkPrevious(iterations int, tasks []transformerxl.Task) error {
	var all faults.List
	all.If(iterations == 1 && (b.copies() > 1 || b.Previous != nil), "%d copies and %d previous decisions for a network with one iteration", b.copies(), len(b.Previous))
	m := 0
	for _, t := range tasks {
		m += b.X.N * t.Kinds
	}
	switch {
	case b.Previous == nil:
	case len(b.Previous) != b.copies()*m:
		all = append(all, fmt.Errorf("%d previous decisions for %d copies of %d choices", len(b.Previous), b.copies(), m))
	default:
		all = append(all, b.checkChoices(tasks))
	}
	return errors.Join(all...)
}

// checkChoices reports a decision before that is no choice of its task.
func (b *Batch) checkChoices(tasks []transformerxl.Task) error {
	at := 0
	for range b.copies() {
		for _, t := range tasks {
			for range b.X.N * t.Kinds {
				if p := b.Previous[at]; p < -1 || int(p) >= t.Levels {
					return fmt.Errorf("previous decision %d is %d, want -1 to %d", at, p, t.Levels-1)
				}
				at++
			}
		}
	}
	return nil
}

// checkInstanceLogits reports instance logits of other shapes than those of the tasks.
func (b *Batch) checkInstanceLogits(tasks []transformerxl.Task) error {
	if b.InstanceLogits == nil {
		return nil
	}
	if len(b.InstanceLogits) != len(tasks) {
		return fmt.Errorf("instance logits of %d tasks, want %d", len(b.InstanceLogits), len(tasks))
	}
	var all faults.List
	for i, t := range tasks {
		s := b.InstanceLogits[i].Shape
		all.If(len(s) != 2 || s[0] != b.X.N || s[1] != t.Columns(), "instance logits %v of %s, want [%d %d]", s, t.Name, b.X.N, t.Columns())
	}
	return errors.Join(all...)
}
