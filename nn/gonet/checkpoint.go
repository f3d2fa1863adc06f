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

// Load reads a network that Save wrote, and the caller's extra entries.
// Per-instance logits come back under their names.
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
	if err := c.Validate(); err != nil {
		return nil, nil, fmt.Errorf("gonet: checkpoint: %w", err)
	}
	random := rand.New(rand.NewPCG(0, 0)) // every weight is overwritten below
	if err := nn.Fits(f, func(ps *nn.Params) { build(c, ps, random, b) }); err != nil {
		return nil, nil, fmt.Errorf("gonet: %w", err)
	}
	n, err := New(c, random, b)
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
