package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// DeepSpeed's PipelineModule splits a list of layers at the numbers in its attribute
// parts, [stages+1], ascending from 0 to the number of layers.

type deepSpeed struct {
	Layers []string `json:"layers"` // the list that the bounds are into
	Parts  []int    `json:"parts"`
	Stages int      `json:"num_stages"`
}

func writeDeepSpeed(w io.Writer, s *Split) error {
	bounds, err := s.bounds()
	if err != nil {
		return err
	}
	f := deepSpeed{Stages: len(bounds), Parts: append(bounds, len(s.Parts.List))}
	for _, x := range s.Parts.List {
		f.Layers = append(f.Layers, x.Path)
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func isDeepSpeed(data []byte) bool {
	return bytes.Contains(data, []byte(`"num_stages"`)) && bytes.Contains(data, []byte(`"parts"`))
}

func readDeepSpeed(data []byte, s *Split) error {
	var f deepSpeed
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	n := len(s.Parts.List)
	if len(f.Parts) < 2 || f.Parts[0] != 0 || f.Parts[len(f.Parts)-1] != n || !slices.IsSorted(f.Parts) {
		return fmt.Errorf("parts %v, want numbers from 0 to the graph's %d, ascending", f.Parts, n)
	}
	return s.fromStages(f.Parts[:len(f.Parts)-1])
}
