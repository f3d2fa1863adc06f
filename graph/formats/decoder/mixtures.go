package decoder

import (
	"cmp"
	"slices"

	"placer/workloads"
)

// routed is how a family's mixtures are built.
type routed struct {
	path       string // of the module; "" for the perceptron's
	router     string
	bias       bool // of router and experts
	correction bool // of the router's scores
	statics    string
	shared     string
	sharedGate string
	// sharedCount is how many experts' columns the shared one has where no file says.
	sharedCount int64
}

// Which layers are mixtures.

func allSparse(*config, int64) bool { return true }

func denseFirst(c *config, i int64) bool { return i >= or(c.DenseFirst) }

// typed has the layers of mlp_layer_types, or all behind the first ones, of which there are dense
// where the file does not say.
//
//go:noinline
func typed(dense int64) func(*config, int64) bool {
	return func(c *config, i int64) bool {
		if c.MLPTypes != nil {
			return c.MLPTypes[i] == "sparse"
		}
		if c.DenseFirst != nil {
			return i >= *c.DenseFirst
		}
		return i >= dense
	}
}

// between has every so many of the layers from moe_layer_start_index to moe_layer_end_index.
func between(c *config, i int64) bool {
	last := c.layers() - 1
	if c.ErnieLast != nil && *c.ErnieLast >= 0 {
		last = *c.ErnieLast
	}
	return i >= c.ErnieFirst && i <= last && (i+1)%max(c.ErnieEvery, 1) == 0
}

// interleaved has the layers of moe_layers, or every so many.
func interleaved(c *config, i int64) bool {
	if c.MoELayers != nil {
		return slices.Contains(c.MoELayers, i)
	}
	return (i+1)%max(c.MoEStep, 1) == 0
}

func sparseSteps(c *config, i int64) bool {
	return c.experts() > 0 && !slices.Contains(c.DenseLayers, i) && (i+1)%max(c.SparseStep, 1) == 0
}

// experts has mixtures of experts in some layers.
//
//go:noinline
func experts(r routed, sparse func(*config, int64) bool) choice {
	return func(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
		if !sparse(c, i) {
			return nil
		}
		m := &b.MLP
		if r.path != "" {
			m.Path = b.Path + "." + r.path
		}
		width := c.ExpertFFN
		if width == 0 {
			width = c.ffn()
		}
		m.Experts = &workloads.Experts{Path: "experts", Count: c.experts(), PerToken: cmp.Or(c.TopK, c.ErnieTopK), Width: width, Activation: m.Activation, Bias: r.bias,
			Router: workloads.Linear{Name: r.router, Bias: r.bias}, Correction: r.correction, Statics: r.statics}
		if r.shared == "" {
			return nil
		}
		shared := *m
		shared.Experts, shared.Path, shared.Width = nil, m.Path+"."+r.shared, c.SharedFFN
		if c.SharedFFN == 0 {
			shared.Width = width * max(c.Shared, c.NumShared, c.ErnieShared, r.sharedCount)
		}
		m.Experts.Shared, m.Experts.SharedGate = &shared, workloads.Linear{Name: r.sharedGate}
		return nil
	}
}

// widerDense gives layers that are no mixtures a size of their own.
func widerDense(c *config, _ *workloads.Decoder, b *workloads.Block, _ int64) error {
	if b.MLP.Experts == nil {
		b.MLP.Width = or(c.DenseFFN, &b.MLP.Width)
	}
	return nil
}
