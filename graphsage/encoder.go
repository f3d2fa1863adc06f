package graphsage

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/internal/faults"
	"placer/nn"
)

// Config describes an Encoder.
type Config struct {
	Features int // F, columns of the input
	Layers   int
	Width    int // d
	// MaxNeighbours bounds the neighbours of a node that are read; 0 reads all.
	MaxNeighbours int
	// Residual adds a residual connection and layer normalisation after each
	// layer. The paper has neither.
	Residual bool
}

// Default returns the sizes of GDP, table 3, for features columns.
func Default(features int) Config {
	return Config{Features: features, Layers: 4, Width: 128, MaxNeighbours: 5, Residual: true}
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var all faults.List
	for _, f := range []struct {
		name   string
		v, low int
	}{{"features", c.Features, 1}, {"layers", c.Layers, 0}, {"width", c.Width, 1}, {"neighbour limit", c.MaxNeighbours, 0}} {
		all.If(f.v < f.low, "graphsage: %s is %d, want at least %d", f.name, f.v, f.low)
	}
	return errors.Join(all...)
}

// Encoder holds the parameters of the embedding.
type Encoder struct {
	config      Config
	embed       nn.Affine
	pool, merge []nn.Affine // of each layer
	norm        []nn.Norm   // of each layer, if they are residual
}

// New adds the parameters of an encoder to ps, with random weights. It panics if
// c is not valid.
func New(c Config, ps *nn.Params, r *rand.Rand) *Encoder {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	d := c.Width
	e := &Encoder{config: c}
	e.embed = ps.Affine("sage.embed", r, c.Features, d)
	for l := range c.Layers {
		name := func(s string) string { return fmt.Sprintf("sage.%d.%s", l, s) }
		e.pool = append(e.pool, ps.Affine(name("pool"), r, d, d))
		e.merge = append(e.merge, nn.Affine{W: []*nn.Param{ps.Glorot(name("self.w"), r, d, d), ps.Glorot(name("near.w"), r, d, d)}, B: ps.Constant(name("merge.b"), 0, d)})
		if c.Residual {
			e.norm = append(e.norm, ps.Norm(name("norm"), d))
		}
	}
	return e
}

// Apply adds the embedding of the nodes of x [N,F] to g and returns it, [N,d].
// The lists are read at each run; Config.MaxNeighbours is for their maker to
// keep, see Neighbours.Limit.
func (e *Encoder) Apply(g *nn.Graph, x *nn.Node, lists **Neighbours) *nn.Node {
	h := e.embed.Apply(g, nn.Relu, x)
	for l, p := range e.pool {
		near := Aggregate(g, h, p.W[0], p.B, lists)
		next := e.merge[l].Apply(g, nn.Relu, h, near)
		if e.config.Residual {
			next = e.norm[l].Apply(g, h, next)
		}
		h = next
	}
	return h
}
