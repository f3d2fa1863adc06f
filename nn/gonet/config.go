package gonet

import (
	"errors"

	"placer/graphsage"
	"placer/internal/faults"
	"placer/nn"
	"placer/transformerxl"
)

// Config describes a Network. It is stored in checkpoints as JSON.
type Config struct {
	Embedding graphsage.Config
	Decision  transformerxl.Config
	// Iterations is T, the number of times a decision is refined. With 1 there
	// is no embedding of the decision before.
	Iterations int
	// DetachValue keeps the value's gradient out of the layers it shares with the
	// policy. No policy here sets it; checkpoints have it, and it is a choice that is tested.
	DetachValue bool
	Adam        nn.AdamConfig
	// CachedGraphs bounds the compiled graphs that are kept, by shape.
	CachedGraphs int
}

// Default returns the sizes of GDP for features columns and the placement on up
// to choices devices, T = 1, and the deviations from the paper that the default
// configurations of the parts name.
func Default(features, choices int) Config {
	return Config{
		Embedding:    graphsage.Default(features),
		Decision:     transformerxl.Default(choices),
		Iterations:   1,
		Adam:         nn.DefaultAdam(),
		CachedGraphs: 16,
	}
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	all := faults.List{c.Embedding.Validate(), c.Decision.Validate(), c.Adam.Validate()}
	all.If(c.Embedding.Width != c.Decision.Width, "gonet: embedding width %d and decision width %d differ", c.Embedding.Width, c.Decision.Width)
	all.If(c.Iterations < 1, "gonet: iterations is %d, want at least 1", c.Iterations)
	all.If(c.CachedGraphs < 1, "gonet: cached graphs is %d, want at least 1", c.CachedGraphs)
	return errors.Join(all...)
}
