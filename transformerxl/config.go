package transformerxl

import (
	"errors"
	"fmt"
)

// Config describes a Network.
type Config struct {
	Width     int // d, of the embedding and of the layers
	Layers    int // besides the modulation layer
	Heads     int
	HeadWidth int // columns of each head
	Inner     int // width of the feed-forward layer
	Segment   int // rows of a segment
	Memory    int // rows of the segment before that are attended to; 0: no recurrence
	// Attention turns the layers' and the head's attention on. Without it each row
	// is decided on its own, from its embedding: the ablation of GDP, section 4.
	Attention bool
	// Modulation multiplies the input of each layer with the features of one
	// more transformer layer (parameter superposition).
	Modulation bool
	Choices    int // columns of the logits
	// HeadResidual adds the head's input to the result of its attention, before
	// layer normalisation. The paper has the attention's result alone.
	HeadResidual bool
}

// Default returns the sizes of GDP, tables 3 and 4, for logits of choices
// columns, with a residual connection in the head.
func Default(choices int) Config {
	return Config{Width: 128, Layers: 2, Heads: 5, HeadWidth: 25, Inner: 256, Segment: 256, Memory: 256, Attention: true, Modulation: true, Choices: choices, HeadResidual: true}
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var all []error
	for _, f := range []struct {
		name   string
		v, low int
	}{{"width", c.Width, 1}, {"layers", c.Layers, 1}, {"heads", c.Heads, 1}, {"head width", c.HeadWidth, 1}, {"inner width", c.Inner, 1}, {"segment", c.Segment, 1}, {"memory", c.Memory, 0}, {"choices", c.Choices, 1}} {
		if f.v < f.low {
			all = append(all, fmt.Errorf("transformerxl: %s is %d, want at least %d", f.name, f.v, f.low))
		}
	}
	if c.Memory > c.Segment {
		all = append(all, fmt.Errorf("transformerxl: memory of %d rows exceeds the segment of %d", c.Memory, c.Segment))
	}
	return errors.Join(all...)
}
