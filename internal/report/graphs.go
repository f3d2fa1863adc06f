package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"placer/graph"
	"placer/internal/words"
	"placer/units"
)

// Formats of the documents of this file.
const (
	WorkloadsFormat = "placer workloads 1"
	ImportFormat    = "placer import 1"
)

// Summary describes a graph.
type Summary struct {
	Name       string  `json:"name"`
	Ops        int     `json:"ops"`
	Edges      int     `json:"edges"`
	FLOPs      float64 `json:"flops"`      // of one step
	Parameters int64   `json:"parameters"` // trainable, in elements
	// PublishedOps is the op count that a paper gives; null where none does.
	PublishedOps *int `json:"published_ops"`
	// GPUs is the number of devices that the papers use the graph with; absent
	// where they do not.
	GPUs int `json:"gpus,omitempty"`
}

// Summarise describes g; published is the papers' op count, 0 where there is
// none.
func Summarise(name string, g *graph.Graph, published int) Summary {
	s := Summary{Name: name, Ops: g.NumOps(), Edges: g.NumEdges(), FLOPs: float64(g.FLOPs()), Parameters: g.Params()}
	if published > 0 {
		s.PublishedOps = &published
	}
	return s
}

// Workloads lists graphs.
type Workloads struct {
	Format    string    `json:"format"`
	Workloads []Summary `json:"workloads"`
}

// WriteText writes w as a table.
func (w *Workloads) WriteText(out io.Writer) error {
	t := newTable("workload", ">ops", ">edges", ">FLOPs per step", ">parameters", ">published ops", ">difference", ">GPUs").fitting("difference", "published ops")
	for _, s := range w.Workloads {
		var published, difference, gpus any = "-", "-", "-"
		if p := s.PublishedOps; p != nil {
			published, difference = *p, fmt.Sprintf("%+.1f%%", 100*(float64(s.Ops)/float64(*p)-1))
		}
		if s.GPUs > 0 {
			gpus = s.GPUs
		}
		t.row(s.Name, s.Ops, s.Edges, units.FLOPs(s.FLOPs), millions(s.Parameters), published, difference, gpus)
	}
	return t.write(out)
}

// millions writes a number of parameters in millions, a small one whole.
func millions(n int64) string {
	if n < 100_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}

// Import describes a graph file.
type Import struct {
	Format string `json:"format"`
	Summary
	// GraphOps and GraphEdges count the graph that placer works on. For an ONNX file
	// read as it is they exceed Ops and Edges, which count the file's own nodes: its
	// inputs and weights are ops to placer.
	GraphOps   int            `json:"graph_ops"`
	GraphEdges int            `json:"graph_edges"`
	Hash       string         `json:"hash"`
	Control    int            `json:"control"` // control dependencies
	Resident   int64          `json:"resident_bytes"`
	Kinds      map[string]int `json:"kinds"` // ops of each kind
	// Repeated counts the ops whose iterations follow one another, Iterations theirs.
	Repeated   int   `json:"repeated_ops,omitempty"`
	Iterations int64 `json:"iterations,omitempty"`
	// Modules are the model's top-level modules, in the order of their first ops; none
	// where the graph does not say.
	Modules []Module `json:"modules,omitempty"`
	ONNX    *ONNX    `json:"onnx,omitempty"`
}

// Module is a module of a model with all in it, backward ops and updates included.
type Module struct {
	Name       string  `json:"name"` // "" is the model itself: ops of no module in it
	Ops        int     `json:"ops"`
	FLOPs      float64 `json:"flops"`
	Parameters int64   `json:"parameters"`
}

// ModulesOf returns the top-level modules of g, in the order of their first ops; nil
// where no op has a module.
func ModulesOf(g *graph.Graph) []Module {
	var all []Module
	at := map[string]int{}
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		name, _, _ := strings.Cut(o.Module, ".")
		k, ok := at[name]
		if !ok {
			k = len(all)
			at[name] = k
			all = append(all, Module{Name: name})
		}
		m := &all[k]
		m.Ops++
		m.FLOPs += float64(o.FLOPs)
		m.Parameters += o.Params
	}
	if len(all) == 1 && all[0].Name == "" {
		return nil
	}
	return all
}

// ONNX says what an ONNX file holds, counted as the file counts.
type ONNX struct {
	Producer     string           `json:"producer"`
	Nodes        int              `json:"nodes"`
	Edges        int              `json:"edges"` // tensors that pass from one node to another
	Inputs       int              `json:"inputs"`
	Outputs      int              `json:"outputs"`
	Initializers int              `json:"initializers"`
	Dims         map[string]int64 `json:"dims"` // named dimensions, with the values used
	Notes        []string         `json:"notes,omitempty"`
	// Tables counts constants that stand where weights may and are none (sines of positions,
	// masks), TableElements what is in them.
	Tables        int   `json:"tables"`
	TableElements int64 `json:"table_elements"`
	// Folded counts the nodes that depend on constants and shapes alone, which do not run
	// in a step; FoldedBytes are held for their results.
	Folded      int   `json:"folded"`
	FoldedBytes int64 `json:"folded_bytes"`
	Inlined     int   `json:"inlined_calls"`      // of model-local functions
	Quantized   int   `json:"quantized_products"` // of 8-bit operands, by DequantizeLinear nodes
}

// WriteText writes i as a few lines.
func (i *Import) WriteText(out io.Writer) error {
	t := newTable("graph", i.Name).fitting()
	t.row("ops", i.Ops)
	t.row("edges", i.Edges)
	if i.GraphOps != i.Ops {
		t.row("ops, edges with inputs and weights", fmt.Sprintf("%d, %d", i.GraphOps, i.GraphEdges))
	}
	t.row("control dependencies", i.Control)
	t.row("FLOPs per step", units.FLOPs(i.FLOPs))
	if i.Repeated > 0 {
		t.row("ops that repeat, their iterations", fmt.Sprintf("%d, %d", i.Repeated, i.Iterations))
	}
	t.row("parameters", millions(i.Parameters))
	t.row("resident memory", units.Bytes(i.Resident))
	t.row("hash", i.Hash)
	if x := i.ONNX; x != nil {
		t.row("ONNX producer", x.Producer)
		t.row("ONNX nodes, edges", fmt.Sprintf("%d, %d", x.Nodes, x.Edges))
		t.row("ONNX inputs, outputs, initializers", fmt.Sprintf("%d, %d, %d", x.Inputs, x.Outputs, x.Initializers))
		t.row("folded: depend on constants alone", fmt.Sprintf("%s, %v held", words.Count(x.Folded, "node", "nodes"), units.Bytes(x.FoldedBytes)))
		if x.Tables > 0 {
			t.row("tables, which are no parameters", fmt.Sprintf("%d, of %s elements", x.Tables, millions(x.TableElements)))
		}
		if x.Inlined > 0 {
			t.row("calls of functions written out", x.Inlined)
		}
		if x.Quantized > 0 {
			t.row("products of 8-bit operands", x.Quantized)
		}
		for _, n := range slices.Sorted(maps.Keys(x.Dims)) {
			t.row("dimension "+n, x.Dims[n])
		}
	}
	for _, m := range i.Modules {
		t.row("module "+cmp.Or(m.Name, "(none)"), fmt.Sprintf("%s, %v, %s parameters", words.Count(m.Ops, "op", "ops"), units.FLOPs(m.FLOPs), millions(m.Parameters)))
	}
	for _, k := range byCount(i.Kinds) {
		t.row("kind "+k, i.Kinds[k])
	}
	return t.write(out)
}
