package gonet

import "placer/nn"

// Policy is a network bound to one problem. It implements ppo.Policy.
type Policy struct {
	network *Network
	batch   Batch
}

// On binds the network to the problem of b, whose Copies and Previous are
// ignored.
func (n *Network) On(b *Batch) *Policy { return &Policy{n, *b} }

// Rows is as ppo.Policy says.
func (p *Policy) Rows() (all []int) {
	for _, t := range p.network.config.Decision.Tasks() {
		all = append(all, p.batch.X.N*t.Kinds)
	}
	return all
}

func (p *Policy) with(copies int, previous []int32) *Batch {
	b := p.batch
	b.Copies, b.Previous = copies, previous
	return &b
}

// Forward is as ppo.Policy says.
func (p *Policy) Forward(copies int, previous []int32) ([]nn.Mat, []float32, error) {
	o, err := p.network.Forward(p.with(copies, previous))
	return o.Tasks, o.Values, err
}

// Backward is as ppo.Policy says.
func (p *Policy) Backward(copies int, previous []int32, o nn.Objective) (float64, error) {
	return p.network.Backward(p.with(copies, previous), o)
}

// Update is as ppo.Policy says.
func (p *Policy) Update(learningRate float64) (float64, error) { return p.network.Update(learningRate) }
