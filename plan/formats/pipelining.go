package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// torch.distributed.pipelining.pipeline takes split_spec, the modules before which a new
// stage begins: {"layers.4": SplitPoint.BEGINNING}. A split point behind everything begins no
// stage. One before everything, or two with nothing between them, leave a stage empty, on which
// pipeline fails ('GraphModule' object has no attribute 'submod_pp_0', torch 2.15).

// bounds returns the first part of each stage.
func (s *Split) bounds() ([]int, error) {
	stage, err := s.stages(false)
	if err != nil {
		return nil, err
	}
	list := []int{0}
	for k := 1; k < len(stage); k++ {
		if stage[k] != stage[k-1] {
			list = append(list, k)
		}
	}
	return list, nil
}

func writePipelining(w io.Writer, s *Split) error {
	bounds, err := s.bounds()
	if err != nil {
		return err
	}
	spec := map[string]string{}
	for _, k := range bounds[1:] {
		spec[s.Parts.List[k].Path] = "BEGINNING"
	}
	b, err := json.MarshalIndent(map[string]any{"split_spec": spec, "stages": len(bounds)}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func isPipelining(data []byte) bool {
	return bytes.Contains(data[:min(len(data), 1<<20)], []byte(`"split_spec"`))
}

func readPipelining(data []byte, s *Split) error {
	var f struct {
		Spec map[string]string `json:"split_spec"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	bounds := []int{0}
	for path, point := range f.Spec {
		within := func(x Part) bool { return x.Path == path || path != "" && under(x.Path, path) }
		k := slices.IndexFunc(s.Parts.List, within)
		if k < 0 {
			return fmt.Errorf("module %q is no part of the graph and has none in it", path)
		}
		switch point {
		case "BEGINNING":
		case "END": // behind the last part of it
			for i, x := range s.Parts.List {
				if within(x) {
					k = i + 1
				}
			}
		default:
			return fmt.Errorf("module %q: split point %q, want BEGINNING or END", path, point)
		}
		if k < len(s.Parts.List) {
			bounds = append(bounds, k)
		}
	}
	slices.Sort(bounds)
	for i, k := range bounds[1:] {
		if k == bounds[i] {
			return fmt.Errorf("the stage before %s is empty", s.Parts.List[k].Path)
		}
	}
	return s.fromStages(bounds)
}
