package nn

import "math/rand/v2"

// Affine is an affine map of one or more inputs, which stand for one concatenated input:
// Σ xs[i] W[i] + B.
type Affine struct {
	W []*Param // [Di,D], one for each input
	B *Param   // [D]
}

// Affine adds a map of one input to ps: name.w [rows,columns] as Glorot draws it, then name.b
// [columns], 0.
func (p *Params) Affine(name string, r *rand.Rand, rows, columns int) Affine {
	return Affine{[]*Param{p.Glorot(name+".w", r, rows, columns)}, p.Constant(name+".b", 0, columns)}
}

// Apply returns f of the map of xs, as Graph.Linear does.
func (a Affine) Apply(g *Graph, f Activation, xs ...*Node) *Node { return g.Linear(f, xs, a.W, a.B) }

// Norm is what a layer normalisation learns.
type Norm struct{ Gain, Bias *Param } // [D]

// Norm adds a layer normalisation of d columns to ps: name.gain, 1, then name.bias, 0.
func (p *Params) Norm(name string, d int) Norm {
	return Norm{p.Constant(name+".gain", 1, d), p.Constant(name+".bias", 0, d)}
}

// Apply returns the sum of xs, one or two, normalised, as Graph.LayerNorm does.
func (n Norm) Apply(g *Graph, xs ...*Node) *Node { return g.LayerNorm(n.Gain, n.Bias, xs...) }
