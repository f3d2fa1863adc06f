package sequential

import (
	"fmt"
	"strings"
)

// part is a part of the network that can be left out.
type part struct {
	name    string
	encoder bool // a part of the encoder
	leave   func(*Config)
}

// parts are in the order in which the network has them.
var parts = []part{
	{"graphsage", true, func(c *Config) { c.Encoder.GraphSAGE.Layers = 0 }},
	{"attention", true, func(c *Config) { c.Encoder.TransformerXL.Attention = false }},
	{"recurrence", true, func(c *Config) { c.Encoder.TransformerXL.Memory = 0 }},
	{"superposition", true, func(c *Config) { c.Encoder.TransformerXL.Modulation = false }},
	{"task-recurrence", true, func(c *Config) { c.Encoder.TransformerXL.TasksApart = true }},
	{"guides", false, func(c *Config) { c.Unguided = true }},
}

// Parts returns the names of the parts that Without can leave out: of an encoder
// GraphSAGE's layers, the attention, its memory of the segment before, the superposition
// and the recurrence over the tasks; and the guides, which are the rules of thumb.
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
			if x.encoder && c.Encoder == nil {
				return c, fmt.Errorf("sequential: no %s to leave out without an encoder", name)
			}
			x.leave(&c)
			continue next
		}
		return c, fmt.Errorf("sequential: unknown part %q, want one of %s", name, strings.Join(Parts(), ", "))
	}
	return c, nil
}

// guides are the device features that rules of thumb say.
var guides = func() (at []int) {
	for _, name := range []string{
		"expert_last", "expert_share", "expert_new", "block_last", "block_share", "block_new", "in_block",
		"prior", "prior_gap_of_unit", "prior_gap_of_mean", "by_list", "by_expert", "by_block", "load_weight", "transfer_weight", "colocate", "insertion",
	} {
		at = append(at, indexOf(deviceFeatures, name))
	}
	return at
}()

// unguide clears the guides in rows of device features, [n*F].
func unguide(rows []float32) {
	for lo := 0; lo < len(rows); lo += numDeviceFeatures {
		for _, k := range guides {
			rows[lo+k] = 0
		}
	}
}
