package sequential

import (
	"fmt"
	"strings"
)

// part is a part of the encoder that can be left out.
type part struct {
	name  string
	leave func(*EncoderConfig)
}

// parts are in the order in which the network has them.
var parts = []part{
	{"graphsage", func(c *EncoderConfig) { c.GraphSAGE.Layers = 0 }},
	{"attention", func(c *EncoderConfig) { c.TransformerXL.Attention = false }},
	{"recurrence", func(c *EncoderConfig) { c.TransformerXL.Memory = 0 }},
	{"superposition", func(c *EncoderConfig) { c.TransformerXL.Modulation = false }},
	{"task-recurrence", func(c *EncoderConfig) { c.TransformerXL.TasksApart = true }},
}

// Parts returns the names of the parts of an encoder that Without can leave out: GraphSAGE's
// layers, the attention, its memory of the segment before, the superposition and the
// recurrence over the tasks.
func Parts() (names []string) {
	for _, x := range parts {
		names = append(names, x.name)
	}
	return names
}

// Without returns c without the parts of those names. c keeps its encoder.
func (c Config) Without(names []string) (Config, error) {
	if c.Encoder != nil {
		e := *c.Encoder
		c.Encoder = &e
	}
next:
	for _, name := range names {
		for _, x := range parts {
			if x.name != name {
				continue
			}
			if c.Encoder == nil {
				return c, fmt.Errorf("sequential: no %s to leave out without an encoder", name)
			}
			x.leave(c.Encoder)
			continue next
		}
		return c, fmt.Errorf("sequential: unknown part %q, want one of %s", name, strings.Join(Parts(), ", "))
	}
	return c, nil
}
