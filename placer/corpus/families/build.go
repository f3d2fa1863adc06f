package families

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/workloads"
)

// Names of steps that several graphs share: "mix:FIRST+SECOND".
const (
	mixed = "mix:"
	join  = "+"
)

// Build builds the graph of a name: one that workloads.Build takes, the style of a
// generated net with its depth, batch, width, work and seed ("towers:20,64,1024,2,7"), or
// "mix:" with several of these, joined by "+".
func Build(name string) (*graph.Graph, error) {
	if parts, ok := strings.CutPrefix(name, mixed); ok {
		return mix(name, strings.Split(parts, join))
	}
	style, rest, _ := strings.Cut(name, ":")
	if styles[style] == nil {
		return workloads.Build(name)
	}
	var n netSpec
	if _, err := fmt.Sscanf(rest, "%d,%d,%d,%g,%d", &n.depth, &n.batch, &n.width, &n.work, &n.seed); err != nil {
		return nil, fmt.Errorf("generated net %q: %w", name, err)
	}
	return randomNet(style, n)
}

// ForInference returns the name of the forward graph of the one that name is of, and
// false where name has no such form.
func ForInference(name string) (string, bool) {
	style, _, _ := strings.Cut(name, ":")
	if strings.HasPrefix(name, mixed) || styles[style] != nil || strings.Contains(name, "optimizer=") {
		return "", false
	}
	return name + ",optimizer=none", true
}

// mix returns the graph of one step that runs several graphs side by side.
func mix(name string, parts []string) (*graph.Graph, error) {
	b := graph.NewBuilder(name)
	group := int32(0)
	for k, part := range parts {
		g, err := Build(part)
		if err != nil {
			return nil, err
		}
		group = add(b, g, fmt.Sprintf("part_%d/", k), group)
	}
	return b.Build()
}

// add adds g's ops to b, their names after a prefix and their co-location groups after
// group, and returns the last group.
func add(b *graph.Builder, g *graph.Graph, prefix string, group int32) int32 {
	last, first := group, graph.OpID(b.NumOps())
	tensor := make([]graph.TensorID, g.NumTensors())
	for i := range graph.OpID(g.NumOps()) {
		o := *g.Op(i)
		o.Name = prefix + o.Name
		if o.Group > 0 {
			o.Group += group
			last = max(last, o.Group)
		}
		if o.Forward != graph.None {
			o.Forward += first
		}
		var in []graph.TensorID
		for _, t := range g.Inputs(i) {
			in = append(in, tensor[t])
		}
		from, end := g.Outputs(i)
		var outs []graph.Tensor
		for t := from; t < end; t++ {
			outs = append(outs, *g.Tensor(t))
		}
		id := b.Op(o, in, outs...)
		for t := from; t < end; t++ {
			tensor[t] = b.Output(id, int(t-from))
		}
		for _, c := range g.Control(i) {
			b.Control(first+c, id)
		}
	}
	return last
}
