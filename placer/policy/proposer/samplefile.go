package proposer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
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
	tensor := func(name string, x []float32, shape ...int) safetensors.Tensor {
		data := make([]byte, 0, 4*len(x))
		for _, v := range x {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		return safetensors.Tensor{Name: name, Type: safetensors.F32, Shape: shape, Data: data}
	}
	return safetensors.Write(w, &safetensors.File{
		Metadata: map[string]string{"format": sampleFormat, "moves": string(h)},
		Tensors:  []safetensors.Tensor{tensor("features", s.X, len(s.Gain), len(featuresOf(s.Tasks))), tensor("gain", s.Gain, len(s.Gain))},
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

// floats returns the elements of a tensor of f, which must be finite; none where it is
// missing.
func floats(f *safetensors.File, name string) (x []float32, err error) {
	t := f.Lookup(name)
	if t == nil {
		return nil, nil
	}
	if t.Type != safetensors.F32 {
		return nil, fmt.Errorf("%s is %s, want %s", name, t.Type, safetensors.F32)
	}
	for at := 0; at < len(t.Data); at += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(t.Data[at:]))
		if v-v != 0 {
			return nil, fmt.Errorf("%s: element %d is %g", name, at/4, v)
		}
		x = append(x, v)
	}
	return x, nil
}
