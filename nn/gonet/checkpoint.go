package gonet

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"

	"placer/internal/jsonx"
	"placer/nn"
	"placer/nn/safetensors"
)

// Metadata keys of a checkpoint.
const (
	formatKey   = "format"
	formatValue = "placer.policy.v1"
	configKey   = "config"
)

// Save writes the network, its optimiser state and extra, entries of the
// caller's, as safetensors. Equal networks give equal bytes.
func (n *Network) Save(w io.Writer, extra map[string]string) error {
	if err := n.fetch(); err != nil {
		return err
	}
	config, err := json.Marshal(n.config)
	if err != nil {
		return fmt.Errorf("gonet: %w", err)
	}
	m := maps.Clone(extra)
	if m == nil {
		m = map[string]string{}
	}
	m[formatKey], m[configKey] = formatValue, string(config)
	if err := safetensors.Write(w, nn.Checkpoint(n.params, n.adam, m)); err != nil {
		return fmt.Errorf("gonet: %w", err)
	}
	return nil
}

// maxCheckpoint bounds what Load reads, 4 GiB.
const maxCheckpoint = 4 << 30

// Load reads a network that Save wrote, and the caller's extra entries. Free
// logits come back under their names.
func Load(r io.Reader, b *nn.Backend) (*Network, map[string]string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCheckpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("gonet: checkpoint: %w", err)
	}
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, nil, fmt.Errorf("gonet: checkpoint: %w", err)
	}
	if got := f.Metadata[formatKey]; got != formatValue {
		return nil, nil, fmt.Errorf("gonet: checkpoint: format %q, want %q", got, formatValue)
	}
	var c Config
	if err := jsonx.Decode([]byte(f.Metadata[configKey]), &c); err != nil {
		return nil, nil, fmt.Errorf("gonet: checkpoint: configuration: %w", err)
	}
	if err := plausible(c, len(data)); err != nil {
		return nil, nil, err
	}
	n, err := New(c, rand.New(rand.NewPCG(0, 0)), b) // every weight is overwritten below
	if err != nil {
		return nil, nil, fmt.Errorf("gonet: checkpoint: %w", err)
	}
	for _, t := range f.Tensors {
		if name, ok := strings.CutPrefix(t.Name, "weight/"); ok && strings.HasPrefix(name, instancePrefix) && len(t.Shape) == 2 && t.Shape[0] > 0 && t.Shape[1] > 0 {
			n.params.Constant(name, 0, t.Shape...)
		}
	}
	if err := nn.Restore(f, n.params, n.adam); err != nil {
		return nil, nil, fmt.Errorf("gonet: %w", err)
	}
	extra := maps.Clone(f.Metadata)
	delete(extra, formatKey)
	delete(extra, configKey)
	return n, extra, nil
}

// plausible refuses a configuration whose weights cannot be in a file of size
// bytes, before memory is claimed for them.
func plausible(c Config, size int) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("gonet: checkpoint: %w", err)
	}
	e, d := c.Embedding, c.Decision
	for _, x := range []int{e.Features, e.Layers, e.Width, d.Layers, d.Heads, d.HeadWidth, d.Inner, d.Choices, d.ScheduleLevels, d.FusionLevels, d.FusionKinds} {
		if x > size {
			return fmt.Errorf("gonet: checkpoint: a size of %d in a file of %d bytes", x, size)
		}
	}
	w := float64(d.Width)
	weights := w*float64(e.Features) + 3*w*w*float64(e.Layers) + float64(d.Layers)*(4*w*float64(d.Heads)*float64(d.HeadWidth)+2*w*float64(d.Inner))
	if 4*weights > float64(size) {
		return fmt.Errorf("gonet: checkpoint: the configuration needs %.0f weights, the file has %d bytes", weights, size)
	}
	return nil
}
