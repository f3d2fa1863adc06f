package decoder

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/units"
	"placer/workloads"
)

// tensor is a tensor that a file's header lists.
type tensor struct {
	shape    graph.Shape
	elements int64
	bytes    units.Bytes
}

// tensors are those of a file, by name.
type tensors map[string]tensor

// buffer reports a tensor that is no parameter: tables of rotary positions, and what routers
// add to their scores.
func buffer(name string) bool {
	return slices.ContainsFunc([]string{"rotary_emb.inv_freq", "rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight", "exp_probs_b.bias", "e_score_correction_bias"},
		func(ending string) bool { return strings.HasSuffix(name, ending) })
}

// step returns the step of d whose parameters occupy what the tensors of the file do. names
// returns the ways in which a file can hold a parameter, each as the tensors that hold it
// together. A parameter that the file lacks or has in another size, or a tensor that is no
// parameter of d, is an error: the file is then not of the kind that it seems to be.
func (f tensors) step(d *workloads.Decoder, names func(workloads.Weight) [][]string, name string, o Options, open ...string) (*Imported, error) {
	used := map[string]bool{}
	var wrong error
	d.Stored = func(w workloads.Weight) (size units.Bytes, ok bool) {
		want, err := w.Shape.Elements()
		if err != nil {
			return 0, false // which Build reports
		}
		ways := names(w)
		for _, parts := range ways {
			var n int64
			if slices.ContainsFunc(parts, func(p string) bool { _, there := f[p]; return !there }) {
				continue
			}
			size = 0
			for _, p := range parts {
				used[p] = true
				n, size = n+f[p].elements, size+f[p].bytes
			}
			if n != want && wrong == nil {
				wrong = fmt.Errorf("tensor %s has %d elements, want %d of %s.%s", foreign.Brief(parts[0]), n, want, w.Module, w.Name)
			}
			return size, true
		}
		if wrong == nil {
			wrong = fmt.Errorf("no tensor is %s.%s: is it a whole model, in one file?", w.Module, w.Name)
			if len(ways) > 0 {
				wrong = fmt.Errorf("of %d tensors none is %s: is it a whole model, in one file?", len(f), ways[0][0])
			}
		}
		return 0, false
	}
	x, err := step(d, name, o, open...)
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		return nil, wrong
	}
	for _, t := range f.sorted() {
		if !used[t] && !buffer(t) {
			return nil, fmt.Errorf("tensor %s is none of this architecture's as it is read", foreign.Brief(t))
		}
	}
	x.Weights = len(f)
	return x, nil
}

func (f tensors) sorted() []string {
	all := make([]string, 0, len(f))
	for name := range f {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
