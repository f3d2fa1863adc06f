package decoder

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/workloads"
)

// scheme is a group of modules of a file of compressed-tensors (vLLM's llm-compressor writes
// them): which they are, and how weights and activations are held.
type scheme struct {
	Targets []string
	Weights *numbers
	Inputs  *numbers `json:"input_activations"`
}

// numbers says how compressed-tensors holds a tensor.
type numbers struct {
	Bits     int64 `json:"num_bits"`
	Type     string
	Strategy string
	Group    int64           `json:"group_size"`
	Block    json.RawMessage `json:"block_structure"`
}

// modules are those that a file names: by a whole path or the end of one, by a regular
// expression behind "re:", which holds from the path's start, or by their class.
type modules struct {
	names   []string
	regexps []*regexp.Regexp
	linear  bool // all linear layers
}

func newModules(names []string) (m modules, err error) {
	for _, name := range names {
		expression, ok := strings.CutPrefix(name, "re:")
		switch {
		case ok:
			r, err := regexp.Compile("^(?:" + expression + ")")
			if err != nil {
				return m, fmt.Errorf("quantization_config: %q is no regular expression that is read", foreign.Brief(name))
			}
			m.regexps = append(m.regexps, r)
		case name == "Linear":
			m.linear = true
		case name != "":
			m.names = append(m.names, name)
		}
	}
	return m, nil
}

// shellPatterns returns names with those that have a star as regular expressions of modules.
func shellPatterns(names []string) []string {
	var out []string
	for _, name := range names {
		if strings.Contains(name, "*") {
			name = "re:" + strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*") + "(?:\\.|$)"
		}
		out = append(out, name)
	}
	return out
}

// has reports whether m has one of the module's paths.
func (m modules) has(paths []string) bool {
	return m.linear || slices.ContainsFunc(paths, func(path string) bool {
		return slices.ContainsFunc(m.names, func(name string) bool { return strings.HasSuffix("."+path, "."+name) }) ||
			slices.ContainsFunc(m.regexps, func(r *regexp.Regexp) bool { return r.MatchString(path) })
	})
}

// paths returns the modules that hold w: experts are one parameter here and a module each in
// the files.
func paths(w workloads.Weight) []string {
	if len(w.Shape) < 3 {
		return []string{w.Module}
	}
	first := w.Module + ".0."
	if w.Name == "gate_up_proj" {
		return []string{w.Module, first + "gate_proj", first + "up_proj"}
	}
	return []string{w.Module, first + w.Name}
}

// compressed returns how each weight is held by compressed-tensors.
func (q *quantization) compressed() (func(workloads.Weight) (stored, bool), error) {
	type group struct {
		modules
		stored
	}
	var groups []group
	for _, name := range slices.Sorted(maps.Keys(q.Groups)) {
		x := q.Groups[name]
		if x == nil || x.Weights == nil { // of activations alone
			continue
		}
		s, err := x.form()
		if err != nil {
			return nil, err
		}
		m, err := newModules(x.Targets)
		if err != nil {
			return nil, err
		}
		groups = append(groups, group{m, s})
	}
	ignored, err := newModules(q.Ignore)
	if err != nil {
		return nil, err
	}
	return func(w workloads.Weight) (stored, bool) {
		of := paths(w)
		if !w.Product || ignored.has(of) {
			return stored{}, false
		}
		for _, g := range groups {
			if g.has(of) {
				return g.stored, true
			}
		}
		return stored{}, false
	}, nil
}

// form returns how a weight of the group is held. Scales are of 16 bits, as the model is.
func (x *scheme) form() (s stored, err error) {
	w := x.Weights
	if w.Bits == 4 && w.Type == "float" && w.Group == nvfp4.group {
		s = nvfp4
		if x.Inputs == nil || x.Inputs.Bits == 16 {
			s.few = graph.F32
		} else if x.Inputs.Bits != 4 || x.Inputs.Type != "float" {
			return s, fmt.Errorf("quantization_config: activations of %d bits of type %q beside floats of 4, want those too, or none", x.Inputs.Bits, foreign.Brief(x.Inputs.Type))
		}
		return s, nil
	}
	s = stored{bits: w.Bits, scale: 2}
	if w.Bits != 4 && w.Bits != 8 || w.Type != "int" && w.Type != "float" || w.Type == "float" && w.Bits != 8 {
		return s, fmt.Errorf("quantization_config: weights of %d bits of type %q, want int of 4 or 8, float of 8, or of 4 in groups of 16", w.Bits, foreign.Brief(w.Type))
	}
	switch {
	case w.Strategy == "tensor":
		s.group = -1
	case w.Strategy == "channel":
	case w.Strategy == "group" && w.Group > 0 && w.Group <= 1<<40:
		s.group = w.Group
	case w.Strategy == "block" && json.Unmarshal(w.Block, &s.block) == nil && min(s.block[0], s.block[1]) > 0 && max(s.block[0], s.block[1]) <= 1<<20:
	default:
		return s, fmt.Errorf("quantization_config: weights by the strategy %q with groups of %d and blocks of %s, want tensor, channel, group or block with its size", foreign.Brief(w.Strategy), w.Group, foreign.Brief(string(w.Block)))
	}
	switch in := x.Inputs; {
	case in == nil || in.Bits == 16:
	case in.Bits == 8 && in.Type == "int":
		s.few = graph.I8
	case in.Bits == 8 && in.Type == "float":
		s.few = graph.F8
	default:
		return s, fmt.Errorf("quantization_config: activations of %d bits of type %q, want int or float of 8, or none", in.Bits, foreign.Brief(in.Type))
	}
	return s, nil
}
