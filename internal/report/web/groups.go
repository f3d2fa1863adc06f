package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"placer/graph"
)

// groups are the parts of a model that rows of the heat map and colours stand for: its
// layers, or its modules where no op has a layer, or kinds of ops where none has
// either.
type groups struct {
	word  string   // layer, module or kind
	names []string // [G]
	of    []int32  // [N] group of each op
}

// mostGroups bounds the rows of the heat map: what is behind the largest is one group.
const mostGroups = 64

// findGroups returns the groups of g.
func findGroups(g *graph.Graph) *groups {
	layers, modules := false, false
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		layers = layers || o.Layer > 0
		modules = modules || o.Module != ""
	}
	type key struct {
		layer int32
		name  string
	}
	x := &groups{word: "kind", of: make([]int32, g.NumOps())}
	at := func(o *graph.Op) key { return key{name: string(o.Kind)} }
	switch {
	case layers:
		x.word = "layer"
		at = func(o *graph.Op) key {
			if o.Layer == 0 {
				return key{name: "no layer"}
			}
			return key{o.Layer, fmt.Sprintf("layer %d", o.Layer)}
		}
	case modules:
		x.word = "module"
		at = func(o *graph.Op) key { return key{name: cmp.Or(topModule(o.Module), "no module")} }
	}
	count := map[key]int{}
	for i := range g.NumOps() {
		count[at(g.Op(graph.OpID(i)))]++
	}
	keys := make([]key, 0, len(count))
	for k := range count {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(count[b], count[a]), cmp.Compare(a.name, b.name))
	})
	index := map[key]int32{}
	for i, k := range keys {
		if i < mostGroups-1 || len(keys) == mostGroups {
			x.names = append(x.names, k.name)
			index[k] = int32(i)
			continue
		}
		if i == mostGroups-1 {
			x.names = append(x.names, "others")
		}
		index[k] = mostGroups - 1
	}
	for i := range x.of {
		x.of[i] = index[at(g.Op(graph.OpID(i)))]
	}
	return x
}

// topModule returns the first parts of a module's path, to the first number: "h.3" of
// "h.3.attn".
func topModule(path string) string {
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if p != "" && p[0] >= '0' && p[0] <= '9' {
			return strings.Join(parts[:i+1], ".")
		}
	}
	return parts[0]
}

// colours is how many colours of groups the style sheet has besides that of none.
const colours = 11

// colour returns the colour of group i, 0 for what belongs to none.
func (x *groups) colour(i int) int {
	first := 0
	if len(x.names) > 0 && strings.HasPrefix(x.names[0], "no ") {
		first = 1
	}
	if i < first {
		return 0
	}
	return 1 + (i-first)%colours
}

// legend lists the colours.
func (x *groups) legend() (all []swatch) {
	for i, n := range x.names {
		all = append(all, swatch{fmt.Sprintf("f%d", x.colour(i)), n})
	}
	return all
}
