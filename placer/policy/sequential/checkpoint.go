package sequential

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

// Checkpoint is a pretraining run between two steps. Its fields, Step and Seconds among
// them, are those of its file's metadata.
type Checkpoint struct {
	checkpointHeader
	file *safetensors.File
}

// checkpointHeader is the metadata of a checkpoint.
type checkpointHeader struct {
	Columns int             `json:"columns"`
	Config  PretrainConfig  `json:"config"`
	Step    int             `json:"step"`
	Seconds float64         `json:"seconds"` // of training so far; the caller's to set
	Samples int             `json:"samples"`
	Graphs  []trainingGraph `json:"graphs"`
	// Teacher is the evaluations of the search that is imitated; 0 where an earlier
	// version did not say, and of a corpus, which needs none.
	Teacher int `json:"teacher,omitempty"`
}

func (t *pretraining) checkpoint() *Checkpoint {
	return &Checkpoint{
		checkpointHeader{Columns: featuresVersion, Config: t.c, Step: t.step, Samples: t.samples, Graphs: t.graphs, Teacher: t.teacher()},
		nn.Checkpoint(t.trainer.policy.net.params, t.trainer.adam, nil),
	}
}

// Write writes the checkpoint.
func (c *Checkpoint) Write(w io.Writer) error {
	h, err := json.Marshal(c.checkpointHeader)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c.file.Metadata = map[string]string{"format": fileFormat, "checkpoint": string(h)}
	return safetensors.Write(w, c.file)
}

// ReadCheckpoint reads what Checkpoint.Write wrote; name is the file's for
// errors.
func ReadCheckpoint(data []byte, name string) (*Checkpoint, error) {
	f, err := readFile(data, name)
	if err != nil {
		return nil, err
	}
	return checkpointOf(f, name)
}

// checkpointOf returns the checkpoint in f.
func checkpointOf(f *safetensors.File, name string) (*Checkpoint, error) {
	if f.Metadata["checkpoint"] == "" {
		return nil, fmt.Errorf("%s: not a checkpoint of pretraining", name)
	}
	var h checkpointHeader
	if err := json.Unmarshal([]byte(f.Metadata["checkpoint"]), &h); err != nil {
		return nil, fmt.Errorf("%s: metadata: %w", name, err)
	}
	if err := checkVersion(h.Columns, name); err != nil {
		return nil, err
	}
	if err := fits(f, h.Config.Policy); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Checkpoint{h, f}, nil
}

// teacher returns the evaluations of the search that t imitates, 0 where it has a corpus.
func (t *pretraining) teacher() int {
	if t.c.Corpus != "" {
		return 0
	}
	return t.host.TeacherBudget.Evaluations
}

// restore puts the run t where c was.
func (c *Checkpoint) restore(t *pretraining) error {
	was, errWas := json.Marshal(c.Config)
	is, errIs := json.Marshal(t.c)
	if err := errors.Join(errWas, errIs); err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return fmt.Errorf("checkpoint: its run was configured with %s", differences(was, is))
	}
	if c.Step < 0 {
		return fmt.Errorf("checkpoint: step %d", c.Step)
	}
	if err := nn.Restore(c.file, t.trainer.policy.net.params, t.trainer.adam); err != nil {
		return err
	}
	t.step, t.samples = c.Step, c.Samples
	t.graphs = slices.Clone(c.Graphs)
	for _, g := range t.graphs {
		t.known[exampleKey{g.Family, g.Index}] = true
	}
	return nil
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
