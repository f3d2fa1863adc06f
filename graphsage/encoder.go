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
	embed       dense
	pool, merge []dense
	gain, bias  []*nn.Param
}

type dense struct {
	w []*nn.Param
	b *nn.Param
}

// New adds the parameters of an encoder to ps, with random weights. It panics if
// c is not valid.
func New(c Config, ps *nn.Params, r *rand.Rand) *Encoder {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	d := c.Width
	e := &Encoder{config: c}
	e.embed = dense{[]*nn.Param{ps.Glorot("sage.embed.w", r, c.Features, d)}, ps.Constant("sage.embed.b", 0, d)}
	for l := range c.Layers {
		name := func(s string) string { return fmt.Sprintf("sage.%d.%s", l, s) }
		e.pool = append(e.pool, dense{[]*nn.Param{ps.Glorot(name("pool.w"), r, d, d)}, ps.Constant(name("pool.b"), 0, d)})
		e.merge = append(e.merge, dense{[]*nn.Param{ps.Glorot(name("self.w"), r, d, d), ps.Glorot(name("near.w"), r, d, d)}, ps.Constant(name("merge.b"), 0, d)})
		if c.Residual {
			e.gain = append(e.gain, ps.Constant(name("norm.gain"), 1, d))
			e.bias = append(e.bias, ps.Constant(name("norm.bias"), 0, d))
		}
	}
	return e
}

// Apply adds the embedding of the nodes of x [N,F] to g and returns it, [N,d].
// The lists are read at each run; Config.MaxNeighbours is for their maker to
// keep, see Neighbours.Limit.
func (e *Encoder) Apply(g *nn.Graph, x *nn.Node, lists **Neighbours) *nn.Node {
	h := g.Linear(nn.Relu, []*nn.Node{x}, e.embed.w, e.embed.b)
	for l, p := range e.pool {
		near := Aggregate(g, h, p.w[0], p.b, lists)
		next := g.Linear(nn.Relu, []*nn.Node{h, near}, e.merge[l].w, e.merge[l].b)
		if e.config.Residual {
			next = g.LayerNorm(e.gain[l], e.bias[l], h, next)
		}
		h = next
	}
	return h
}
