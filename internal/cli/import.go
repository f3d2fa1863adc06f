package cli

import (
	"io"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/internal/fsx"
	"placer/report"
)

func (c *console) importCommand() *cobra.Command {
	var f graphFlags
	var asJSON bool
	var out string
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Read a graph and describe it, or write it in placer's JSON form",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			l, err := c.loadGraph(&f)
			if err != nil {
				return err
			}
			g := l.Graph
			switch out {
			case "":
			case "-":
				return g.Write(c.out)
			default:
				if err := fsx.WriteFile(out, g.Write); err != nil {
					return err
				}
			}
			doc := report.Import{Format: report.ImportFormat, Summary: report.Summarise(g.Name(), g, 0), GraphOps: g.NumOps(), GraphEdges: g.NumEdges(), Hash: g.Hash(), Control: g.NumControl(), Resident: int64(g.Resident()), Kinds: map[string]int{}}
			for i := range g.NumOps() {
				doc.Kinds[string(g.Op(graph.OpID(i)).Kind)]++
			}
			if x := l.onnx; x != nil {
				if f.train == "" {
					doc.Ops, doc.Edges = x.Nodes, x.Edges
				}
				doc.ONNX = &report.ONNX{Producer: x.Producer, Nodes: x.Nodes, Edges: x.Edges, Inputs: x.Inputs, Outputs: x.Outputs, Initializers: x.Initializers, Dims: map[string]int64{}, Notes: x.Notes}
				for _, d := range x.Symbols {
					doc.ONNX.Dims[d.Name] = d.Value
				}
			}
			return c.print(asJSON, &doc)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the graph in placer's JSON form to this file; - writes it to stdout instead of the description")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// document is a result that can be written for people and for programs.
type document interface{ WriteText(io.Writer) error }

func (c *console) print(asJSON bool, d document) error {
	if asJSON {
		return report.WriteJSON(c.out, d)
	}
	return d.WriteText(c.out)
}
