package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"placer/hw"
)

// The device_map of Hugging Face's accelerate: the path of a module, or of a parameter or
// buffer, to the number of a GPU, to "cpu" or to "disk". What is not listed is where the
// closest of its ancestors is, and each tensor has to have one that is (check_device_map in
// accelerate/utils/modeling.py).
// https://huggingface.co/docs/accelerate/concept_guides/big_model_inference

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
	short := strings.TrimPrefix(strings.TrimPrefix(name, "cuda:"), "gpu:")
	order, cpu := m.Accelerators(), theCPU(m)
	n, err := strconv.Atoi(short)
	switch {
	case short == "cpu" && m.Devices[cpu].Kind == hw.CPU:
		return cpu, nil
	case err == nil && n >= 0 && n < len(order) && m.Devices[order[n]].Kind == hw.GPU:
		return order[n], nil
	}
	return 0, fmt.Errorf("device %q is none of machine %s", name, m.Name)
}

// theCPU is the one that a map has: the host, and of CPUs alone the first.
func theCPU(m *hw.Machine) uint8 { return uint8(max(m.Host(), 0)) }

// Takes reports whether t has a name of its own for device d of m: a map has one CPU.
func (t *Target) Takes(m *hw.Machine, d uint8) bool {
	return t.Stages || m.Devices[d].Kind == hw.GPU || d == theCPU(m)
}

// legalMap reports a device that t does not take.
func (t *Target) legalMap(s *Split) error {
	for k, d := range s.Device {
		if !t.Takes(s.Machine, d) {
			return fmt.Errorf("%s is on %s, and %s has one CPU alone, %s", s.Parts.List[k].Path, s.Machine.Devices[d].Name, t.Name, s.Machine.Devices[theCPU(s.Machine)].Name)
		}
	}
	return nil
}

// placed is a line of a map.
type placed struct {
	path   string
	device uint8
}

// lines returns the lines of s's map: parts in their order, and behind them the tensors of
// modules that hold parts. Such a module stands for all that is in it where that is on one
// device: it then computes with its tensors there too.
func (s *Split) lines() (list []placed) {
	tensor := make([]uint8, len(s.Parts.Tensors)) // its device
	whole := map[string]bool{}                    // whether all in a module that holds tensors is on one device
	for j, x := range s.Parts.Tensors {
		tensor[j] = s.Device[s.Parts.Of[x.Op]]
		if s.Tensors != nil {
			tensor[j] = s.Tensors[j]
		}
	}
	for j, x := range s.Parts.Tensors {
		other := func(path string, d uint8) bool { return under(path, x.Module) && d != tensor[j] }
		apart := false
		for k, part := range s.Parts.List {
			apart = apart || other(part.Path, s.Device[k])
		}
		for i, y := range s.Parts.Tensors {
			apart = apart || other(y.Path, tensor[i])
		}
		whole[x.Module] = !apart
	}
	seen := map[string]bool{}
	add := func(path string, d uint8) {
		for end := 0; end < len(path); end++ { // the outermost that stands for it
			if above := path[:end]; (end == 0 || path[end] == '.') && whole[above] {
				path = above
			}
		}
		if !seen[path] {
			seen[path] = true
			list = append(list, placed{path, d})
		}
	}
	for k, x := range s.Parts.List {
		add(x.Path, s.Device[k])
	}
	for j, x := range s.Parts.Tensors {
		add(x.Path, tensor[j])
	}
	return list
}

// under reports whether path is in the module of that path.
func under(path, module string) bool { return module == "" || strings.HasPrefix(path, module+".") }

// writeMap writes an object of path and device, a line each.
func writeMap(w io.Writer, before string, s *Split, after string) error {
	var b bytes.Buffer
	b.WriteString(before)
	for k, x := range s.lines() {
		path, err := json.Marshal(x.path)
		if err != nil {
			return err
		}
		device, err := json.Marshal(deviceName(s.Machine, x.device))
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

// closest returns the path of m that path has, or the closest of its ancestors.
func closest(m map[string]string, path string) (string, bool) {
	for {
		if _, ok := m[path]; ok || path == "" {
			return path, ok
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
}

// fromMap sets the devices from the closest ancestor of each part that m has. A part
// that m splits is on the device that m gives most of its ops. A tensor of a module that
// holds parts is on its own device, or that of its closest ancestor, and with what reads it
// where m has none.
func (s *Split) fromMap(m map[string]string) error {
	used := map[string]bool{}
	device := func(path string) (uint8, error) {
		used[path] = true
		d, err := deviceOf(s.Machine, m[path])
		if err != nil {
			err = fmt.Errorf("module %q: %w", path, err)
		}
		return d, err
	}
	s.Device = make([]uint8, len(s.Parts.List))
	var inside []int
	for k, x := range s.Parts.List {
		path, found := closest(m, x.Path)
		if !found {
			inside = append(inside, k)
			continue
		}
		var err error
		if s.Device[k], err = device(path); err != nil {
			return err
		}
	}
	for _, k := range inside {
		count := make([]int, len(s.Machine.Devices))
		for _, path := range slices.Sorted(maps.Keys(m)) {
			if !under(path, s.Parts.List[k].Path) {
				continue
			}
			d, err := device(path)
			if err != nil {
				return err
			}
			count[d]++
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
	for _, x := range s.Parts.Tensors {
		d := s.Device[s.Parts.Of[x.Op]]
		if path, found := closest(m, x.Path); found {
			var err error
			if d, err = device(path); err != nil {
				return err
			}
		}
		s.Tensors = append(s.Tensors, d)
	}
	return nil
}
