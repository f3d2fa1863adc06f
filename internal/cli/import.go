package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/graph/formats/costgraph"
	"placer/internal/fsx"
	"placer/internal/report"
)

// importFlags are the flags of import.
type importFlags struct {
	graphFlags
	as, gpu       string
	output, times string // files to write
	json          bool
}

func (c *console) importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Read a graph and describe it, or write it in another form",
		Long: "import reads a graph in any form of docs/doors.md; the content of the file decides\n" +
			"which. It prints the graph's size, what was folded, and its ops by module and by kind.\n" +
			"-o writes the graph, --times-output the op times that came with it.",
		Example: "  placer import --graph model.onnx --dim batch=32\n  placer import --graph model.onnx --train adam -o step.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.importFile(&f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write the graph to this file; - writes it to stdout instead of the description")
	cmd.Flags().StringVar(&f.times, "times-output", "", "write the op times that came with the graph to this file, for --times")
	cmd.Flags().StringVar(&f.as, "as", "json", "form of the file written: json (placer's), costgraph or costgraph-text (TensorFlow's CostGraphDef)")
	cmd.Flags().StringVar(&f.gpu, "gpu", "p100", "built-in machine whose first GPU gives the op times of a CostGraphDef, where the input has none")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// check reports the first fault.
func (f *importFlags) check(cmd *cobra.Command) error {
	if err := f.graphFlags.check(); err != nil {
		return err
	}
	switch {
	case !slices.Contains(graphForms, f.as):
		return usagef("--as %s: want json, costgraph or costgraph-text", f.as)
	case f.output == "" && cmd.Flags().Changed("as"):
		return usagef("--as is the form of what -o writes")
	case f.as == "json" && cmd.Flags().Changed("gpu"):
		return usagef("--gpu gives the op times that --as costgraph writes")
	}
	return errors.Join(checkOutput(f.output, f.json), fileOnly("--times-output", f.times))
}

// importFile reads the graph, writes what the flags ask for and describes it.
func (c *console) importFile(f *importFlags) error {
	l, err := c.loadGraph(&f.graphFlags)
	if err != nil {
		return err
	}
	c.tell(l)
	write, err := c.exporter(f.as, l, f.gpu)
	if err != nil {
		return err
	}
	if f.times != "" {
		if l.Times == nil {
			return fmt.Errorf("%s: the file has no times that tell devices apart", f.Graph)
		}
		if err := fsx.WriteFile(f.times, l.Times.Write); err != nil {
			return err
		}
	}
	return c.emit(f.output, write, f.json, describe(l, f.Train != ""))
}

// describe returns what import says of a graph, which a training step has been derived from
// where trained says so: its ops and edges are then not those of the file.
func describe(l loaded, trained bool) *report.Import {
	g := l.Graph
	doc := &report.Import{Format: report.ImportFormat, Summary: report.Summarise(g.Name(), g, 0), GraphOps: g.NumOps(), GraphEdges: g.NumEdges(), Hash: g.Hash(), Control: g.NumControl(), Resident: int64(g.Resident()), Kinds: map[string]int{}, Modules: report.ModulesOf(g)}
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		doc.Kinds[string(o.Kind)]++
		if n, _ := o.Iterations(); n > 1 {
			doc.Repeated++
			doc.Iterations += n
		}
	}
	if x := l.file.ONNX; x != nil {
		if !trained {
			doc.Ops, doc.Edges = x.Nodes, x.Edges
		}
		doc.ONNX = &report.ONNX{Producer: x.Producer, Nodes: x.Nodes, Edges: x.Edges, Inputs: x.Inputs, Outputs: x.Outputs, Initializers: x.Initializers, Dims: map[string]int64{}, Notes: x.Notes,
			Tables: x.Tables, TableElements: x.TableElements, Folded: x.Folded, FoldedBytes: int64(x.FoldedBytes), Inlined: x.Inlined, Quantized: x.Quantized}
		for _, d := range x.Symbols {
			doc.ONNX.Dims[d.Name] = d.Value
		}
	}
	return doc
}

// graphForms are the forms that import writes.
var graphForms = []string{"json", "costgraph", "costgraph-text"}

// exporter returns what writes l in one of graphForms.
func (c *console) exporter(as string, l loaded, gpu string) (func(io.Writer) error, error) {
	if as == "json" {
		return l.Graph.Write, nil
	}
	seconds, err := c.opSeconds(l, gpu)
	if err != nil {
		return nil, err
	}
	write := costgraph.WriteBinary
	if as == "costgraph-text" {
		write = costgraph.WriteText
	}
	return func(w io.Writer) error { return write(w, costgraph.Export(l.Graph, seconds)) }, nil
}
