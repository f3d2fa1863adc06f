package proposer

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"placer/internal/jsonx"
	"placer/nn/safetensors"
	"placer/plan"
)

// sampleFormat is the value of "format" in the metadata of a sample's file.
const sampleFormat = "placer judged moves 1"

// sampleHeader is the metadata of a sample's file: what it depends on, and its families.
type sampleHeader struct {
	Of       string   `json:"of"`
	Features []string `json:"features"`
	Families []string `json:"families"`
}

// Write writes s as a safetensors file; of names what it was collected from.
func (s *Sample) Write(w io.Writer, of string) error {
	h, err := json.Marshal(sampleHeader{of, featuresOf(s.Tasks), s.Families})
	if err != nil {
		return fmt.Errorf("moves: %w", err)
	}
	return safetensors.Write(w, &safetensors.File{
		Metadata: map[string]string{"format": sampleFormat, "moves": string(h)},
		Tensors:  []safetensors.Tensor{safetensors.Floats("features", s.X, len(s.Gain), len(featuresOf(s.Tasks))), safetensors.Floats("gain", s.Gain, len(s.Gain))},
	})
}

// ReadSample reads what Write wrote, of moves that decide on tasks. It is nil where that was
// collected from something else than of; name is the file's name for errors.
func ReadSample(data []byte, tasks plan.Tasks, of, name string) (*Sample, error) {
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var h sampleHeader
	if err := jsonx.Decode([]byte(f.Metadata["moves"]), &h); f.Metadata["format"] != sampleFormat || err != nil {
		return nil, fmt.Errorf("%s: not judged moves", name)
	}
	if h.Of != of || !slices.Equal(h.Features, featuresOf(tasks)) {
		return nil, nil
	}
	s := &Sample{Tasks: tasks, Families: h.Families}
	if s.X, err = floats(f, "features"); err == nil {
		s.Gain, err = floats(f, "gain")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(s.X) != len(s.Gain)*len(h.Features) {
		return nil, fmt.Errorf("%s: %d features of %d moves, want %d each", name, len(s.X), len(s.Gain), len(h.Features))
	}
	return s, nil
}

// floats returns the elements of a tensor of f; none where it is missing.
func floats(f *safetensors.File, name string) ([]float32, error) {
	if t := f.Lookup(name); t != nil {
		return t.Floats()
	}
	return nil, nil
}
