package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"placer/nn"
	"placer/nn/safetensors"
)

// FileFormat is the value of "format" in the metadata of a policy file, and of a
// checkpoint.
const FileFormat = "placer transfer 1"

// ColumnsVersion changes whenever a column changes its meaning or place; policy
// files carry it.
const ColumnsVersion = 2

// Card says what a policy was trained on and how far.
type Card struct {
	Trained []string `json:"trained"`  // families
	HeldOut []string `json:"held_out"` // families, without their kin
	Steps   int      `json:"steps"`    // of imitation and PPO
	Samples int      `json:"samples"`  // placements evaluated in training
	Graphs  int      `json:"graphs"`   // distinct training graphs
	// Results are figures measured after training, one row per workload; empty
	// until somebody has measured.
	Results []Result `json:"results,omitempty"`
}

// Result is what a policy came to on a workload, as reductions of the step time
// against the human expert's, 0 to 1.
type Result struct {
	Workload string  `json:"workload"`
	Devices  int     `json:"devices"`
	HeldOut  bool    `json:"held_out"` // its family was not trained on
	Greedy   float64 `json:"greedy"`
	Best     float64 `json:"best_of_16"`
	Tuned    float64 `json:"fine_tuned,omitempty"`
}

// header is the metadata of a policy file.
type header struct {
	Columns int    `json:"columns"`
	Policy  Config `json:"policy"`
	Card    Card   `json:"card"`
	Reach   Reach  `json:"reach"`
}

// Write writes p as a policy file.
func (p *Policy) Write(w io.Writer) error {
	h, err := json.Marshal(header{ColumnsVersion, p.config, p.Card, p.Reach})
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	f := nn.Checkpoint(p.net.params, nil, map[string]string{"format": FileFormat, "policy": string(h)})
	return safetensors.Write(w, f)
}

// Read reads a policy file, or a checkpoint of pretraining as the policy that it
// has come to; name is the file's name for errors.
func Read(data []byte, name string) (*Policy, error) {
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if got := f.Metadata["format"]; got != FileFormat {
		return nil, fmt.Errorf("%s: format is %q, want %q", name, got, FileFormat)
	}
	if f.Metadata["checkpoint"] != "" {
		k, err := ReadCheckpoint(data, name)
		if err != nil {
			return nil, err
		}
		return k.policy(name)
	}
	var version struct {
		Columns int `json:"columns"`
	}
	if err := json.Unmarshal([]byte(f.Metadata["policy"]), &version); err != nil {
		return nil, fmt.Errorf("%s: metadata: %w", name, err)
	}
	if version.Columns != ColumnsVersion {
		return nil, fmt.Errorf("%s: columns of version %d, this program has version %d: pretrain it anew", name, version.Columns, ColumnsVersion)
	}
	var h header
	d := json.NewDecoder(bytes.NewReader([]byte(f.Metadata["policy"])))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return nil, fmt.Errorf("%s: metadata: %w", name, err)
	}
	if err := h.Reach.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p, err := NewPolicy(h.Policy, stream(0, "weights", 0))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.Card, p.Reach = h.Card, h.Reach
	if err := nn.Restore(f, p.net.params, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Checkpoint is a pretraining run between two steps.
type Checkpoint struct {
	Config  PretrainConfig
	Step    int
	Seconds float64 // of training so far; the caller's to set
	file    *safetensors.File
	graphs  []noticed
	samples int
}

// checkpointHeader is the metadata of a checkpoint.
type checkpointHeader struct {
	Columns int            `json:"columns"`
	Config  PretrainConfig `json:"config"`
	Step    int            `json:"step"`
	Seconds float64        `json:"seconds"`
	Samples int            `json:"samples"`
	Graphs  []noticed      `json:"graphs"`
}

func (t *pretraining) checkpoint() *Checkpoint {
	c := &Checkpoint{Config: t.c, Step: t.step, graphs: t.graphs, samples: t.samples}
	c.file = nn.Checkpoint(t.trainer.Policy.net.params, t.trainer.adam, nil)
	return c
}

// Write writes the checkpoint.
func (c *Checkpoint) Write(w io.Writer) error {
	h, err := json.Marshal(checkpointHeader{ColumnsVersion, c.Config, c.Step, c.Seconds, c.samples, c.graphs})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c.file.Metadata = map[string]string{"format": FileFormat, "checkpoint": string(h)}
	return safetensors.Write(w, c.file)
}

// ReadCheckpoint reads what Checkpoint.Write wrote; name is the file's for
// errors.
func ReadCheckpoint(data []byte, name string) (*Checkpoint, error) {
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if got := f.Metadata["format"]; got != FileFormat || f.Metadata["checkpoint"] == "" {
		return nil, fmt.Errorf("%s: not a checkpoint of pretraining", name)
	}
	var h checkpointHeader
	if err := json.Unmarshal([]byte(f.Metadata["checkpoint"]), &h); err != nil {
		return nil, fmt.Errorf("%s: metadata: %w", name, err)
	}
	if h.Columns != ColumnsVersion {
		return nil, fmt.Errorf("%s: columns of version %d, this program has version %d: begin anew", name, h.Columns, ColumnsVersion)
	}
	return &Checkpoint{Config: h.Config, Step: h.Step, Seconds: h.Seconds, file: f, graphs: h.Graphs, samples: h.Samples}, nil
}

// policy returns the policy that c has come to.
func (c *Checkpoint) policy(name string) (*Policy, error) {
	families, err := c.Config.training()
	if err == nil {
		err = c.Config.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t := &pretraining{c: c.Config, families: families, lessons: map[lessonKey]*lesson{}, known: map[lessonKey]bool{}}
	if err := t.open(c); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t.finished(), nil
}

// differences names the keys of two JSON objects that differ, with both values.
func differences(was, is []byte) string {
	var a, b map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(was, &a), json.Unmarshal(is, &b)); err != nil {
		return err.Error()
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(b)) {
		if !bytes.Equal(a[k], b[k]) {
			all = append(all, fmt.Sprintf("%s %s, not %s", k, a[k], b[k]))
		}
	}
	return strings.Join(all, "; ")
}

// restore puts the run t where c was.
func (c *Checkpoint) restore(t *pretraining) error {
	was, err := json.Marshal(c.Config)
	if err != nil {
		return err
	}
	is, err := json.Marshal(t.c)
	if err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return fmt.Errorf("checkpoint: its run was configured with %s", differences(was, is))
	}
	if c.Step < 0 {
		return fmt.Errorf("checkpoint: step %d", c.Step)
	}
	if err := nn.Restore(c.file, t.trainer.Policy.net.params, t.trainer.adam); err != nil {
		return err
	}
	t.step, t.samples = c.Step, c.samples
	t.graphs = append([]noticed(nil), c.graphs...)
	for _, g := range t.graphs {
		t.known[lessonKey{g.Family, g.Index}] = true
	}
	return nil
}
