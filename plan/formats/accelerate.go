package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"placer/hw"
)

// The device_map of Hugging Face's accelerate: the path of a module to the number of a
// GPU, to "cpu" or to "disk". A module that is not listed is where the closest of its
// ancestors is. https://huggingface.co/docs/accelerate/concept_guides/big_model_inference

// deviceName returns accelerate's name of device d of m: the number of a GPU among the GPUs,
// or "cpu".
func deviceName(m *hw.Machine, d uint8) any {
	if m.Devices[d].Kind != hw.GPU {
		return "cpu"
	}
	return slices.Index(m.Accelerators(), d)
}

// deviceOf is the other way.
func deviceOf(m *hw.Machine, name string) (uint8, error) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "cuda:"), "gpu:")
	for d := range uint8(len(m.Devices)) {
		if fmt.Sprint(deviceName(m, d)) == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("device %q is none of machine %s", name, m.Name)
}

// writeMap writes an object of path and device, a line each.
func writeMap(w io.Writer, before string, s *Split, after string) error {
	var b bytes.Buffer
	b.WriteString(before)
	for k, x := range s.Parts.List {
		path, err := json.Marshal(x.Path)
		if err != nil {
			return err
		}
		device, err := json.Marshal(deviceName(s.Machine, s.Device[k]))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s: %s", []string{"{\n", ",\n"}[min(k, 1)], path, device)
	}
	b.WriteString("\n}" + after + "\n")
	_, err := w.Write(b.Bytes())
	return err
}

func writeDeviceMap(w io.Writer, s *Split) error { return writeMap(w, "", s, "") }

// isDeviceMap reports whether data is an object of numbers and names alone.
func isDeviceMap(data []byte) bool {
	m, err := deviceMap(data)
	return err == nil && len(m) > 0
}

func deviceMap(data []byte) (map[string]string, error) {
	var raw map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&raw); err != nil {
		return nil, err
	}
	m := map[string]string{}
	for path, v := range raw {
		switch v := v.(type) {
		case json.Number:
			m[path] = v.String()
		case string:
			m[path] = v
		default:
			return nil, fmt.Errorf("%q is no device", path)
		}
	}
	return m, nil
}

func readDeviceMap(data []byte, s *Split) error {
	m, err := deviceMap(data)
	if err != nil {
		return err
	}
	return s.fromMap(m)
}

// fromMap sets the devices from the closest ancestor of each part that m has. A part
// that m splits is on the device that m gives most of its ops.
func (s *Split) fromMap(m map[string]string) error {
	used := map[string]bool{}
	s.Device = make([]uint8, len(s.Parts.List))
	var inside []int
	for k, x := range s.Parts.List {
		found := false
		for path := x.Path; !found; {
			if name, ok := m[path]; ok {
				d, err := deviceOf(s.Machine, name)
				if err != nil {
					return fmt.Errorf("module %q: %w", path, err)
				}
				s.Device[k], found, used[path] = d, true, true
				break
			}
			if path == "" {
				break
			}
			path = path[:max(strings.LastIndexByte(path, '.'), 0)]
		}
		if !found {
			inside = append(inside, k)
		}
	}
	for _, k := range inside {
		count := make([]int, len(s.Machine.Devices))
		for path, name := range m {
			if strings.HasPrefix(path, s.Parts.List[k].Path+".") {
				d, err := deviceOf(s.Machine, name)
				if err != nil {
					return fmt.Errorf("module %q: %w", path, err)
				}
				count[d]++
				used[path] = true
			}
		}
		most := slices.Max(count)
		if most == 0 {
			return fmt.Errorf("no device for module %q", s.Parts.List[k].Path)
		}
		s.Device[k] = uint8(slices.Index(count, most))
	}
	if len(used) == 0 {
		return fmt.Errorf("none of its modules is one of the graph's")
	}
	return nil
}
