package sequential

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"placer/internal/jsonx"
	"placer/nn"
	"placer/nn/safetensors"
)

// fileFormat is the value of "format" in the metadata of a policy file, and of a
// checkpoint.
const fileFormat = "placer transfer 1"

// header is the metadata of a policy file.
type header struct {
	Columns int          `json:"columns"` // featuresVersion
	Policy  Config       `json:"policy"`
	Card    Card         `json:"card"`
	Reach   distribution `json:"reach"`
	// Trials say which rollouts to make where few may be made; nil: nothing is known.
	Trials *trials `json:"trials,omitempty"`
}

// Write writes p as a policy file.
func (p *Policy) Write(w io.Writer) error {
	k := header{Columns: featuresVersion, Policy: p.config, Card: p.Card, Reach: p.training}
	if len(p.tried.Times) > 0 {
		k.Trials = &p.tried
	}
	h, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return safetensors.Write(w, nn.Checkpoint(p.net.params, nil, map[string]string{"format": fileFormat, "policy": string(h)}))
}

// Read reads a policy file, or a checkpoint of pretraining as the policy that it
// has come to; name is the file's name for errors.
func Read(data []byte, name string) (*Policy, error) {
	f, err := readFile(data, name)
	if err != nil {
		return nil, err
	}
	if f.Metadata["checkpoint"] == "" {
		return policyOf(f, name)
	}
	c, err := checkpointOf(f, name)
	if err != nil {
		return nil, err
	}
	t, err := newPretraining(c.Config, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t.policy(), nil
}

// policyOf returns the policy in f.
func policyOf(f *safetensors.File, name string) (*Policy, error) {
	var version struct {
		Columns int `json:"columns"`
	}
	metadata := []byte(f.Metadata["policy"])
	if err := json.Unmarshal(metadata, &version); err != nil {
		return nil, fmt.Errorf("%s: metadata: %w", name, err)
	}
	if err := checkVersion(version.Columns, name); err != nil {
		return nil, err
	}
	var h header
	if err := jsonx.Decode(metadata, &h); err != nil {
		return nil, fmt.Errorf("%s: metadata: %w", name, err)
	}
	if h.Trials == nil {
		h.Trials = &trials{}
	}
	err := errors.Join(h.Reach.validate(), h.Trials.validate())
	if err == nil && h.Trials.Width > 0 && len(h.Reach.Mean) == 0 {
		err = errors.New("trials by how near graphs are, and nothing to tell that by")
	}
	if err == nil {
		err = fits(f, h.Policy)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p, err := NewPolicy(h.Policy, stream(0, "weights", 0))
	if err == nil {
		err = nn.Restore(f, p.net.params, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.Card, p.training, p.tried = h.Card, h.Reach, *h.Trials
	p.tried.read()
	return p, nil
}

// fits reports that f has no room for the weights of a policy of configuration c, before
// memory is claimed for them.
func fits(f *safetensors.File, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return nn.Fits(f, func(ps *nn.Params) { newNetwork(c, ps, nil, nil) })
}

// readFile reads a policy file or a checkpoint.
func readFile(data []byte, name string) (*safetensors.File, error) {
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if got := f.Metadata["format"]; got != fileFormat {
		return nil, fmt.Errorf("%s: format is %q, want %q", name, got, fileFormat)
	}
	return f, nil
}

// checkVersion refuses what was written with other features.
func checkVersion(got int, name string) error {
	if got != featuresVersion {
		return fmt.Errorf("%s: features of version %d, this program has version %d: pretrain it anew", name, got, featuresVersion)
	}
	return nil
}
