package workloads

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
)

// Spec describes a workload by name.
type Spec struct {
	Name   string
	Family string
	Layers int
	// GPUs is the number of devices the papers use it with; 0 where they do not.
	GPUs int
	// PublishedOps is the op count the papers give; 0 where they give none.
	PublishedOps int
	// Note says what the papers leave open, and why a count differs.
	Note   string
	params Params
}

// Params returns the settings of s.
func (s Spec) Params() Params { return s.params }

// List returns every named workload, families together, small before large.
func List() []Spec {
	return slices.Concat(rnnlmSpecs(), gnmtSpecs(), trfxlSpecs(), inceptionSpecs(), amoebanetSpecs(), wavenetSpecs(), decoderSpecs(), vitSpecs())
}

// Lookup returns the workload of that name. The error of an unknown name lists
// close ones.
func Lookup(name string) (Spec, error) {
	specs := List()
	names := make([]string, len(specs))
	for i, s := range specs {
		if s.Name == name {
			return s, nil
		}
		names[i] = s.Name
	}
	return Spec{}, fmt.Errorf("unknown workload %q, %s", name, suggest(name, names))
}

// Build returns the training graph of a name in List, or of the textual form of
// a family ("rnnlm:layers=3,unroll=20", see Parse).
func Build(name string) (*graph.Graph, error) {
	if strings.Contains(name, ":") {
		p, err := Parse(name)
		if err != nil {
			return nil, err
		}
		return p.generate(name)
	}
	s, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	g, err := s.params.generate(name)
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", name, err)
	}
	return g, nil
}

// suggest says which of names are near name, or all of them when none is.
func suggest(name string, names []string) string {
	type near struct {
		name string
		d    int
	}
	var close []near
	for _, n := range names {
		d := editDistance(strings.ToLower(name), n)
		if d <= 2 || len(name) >= 3 && strings.HasPrefix(n, strings.ToLower(name)) {
			close = append(close, near{n, d})
		}
	}
	if len(close) == 0 {
		return "want one of " + strings.Join(names, ", ")
	}
	slices.SortStableFunc(close, func(a, b near) int { return a.d - b.d })
	var list []string
	for _, c := range close[:min(len(close), 4)] {
		list = append(list, c.name)
	}
	return "did you mean " + strings.Join(list, ", ") + "?"
}

// editDistance is the number of insertions, deletions and substitutions from a
// to b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			last, row[j+1] = row[j+1], min(last+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
