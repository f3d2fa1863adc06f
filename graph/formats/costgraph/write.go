package costgraph

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	pb "github.com/wamuir/graft/tensorflow/core/framework/cost_graph_go_proto"
	"google.golang.org/protobuf/proto"
)

// WriteBinary writes def in protobuf's binary form.
func WriteBinary(w io.Writer, def *pb.CostGraphDef) error {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(def)
	if err != nil {
		return fmt.Errorf("cost graph: %w", err)
	}
	_, err = w.Write(data)
	return err
}

// WriteText writes the fields that Import reads, and the device, in protobuf's
// text form. The protobuf library's own printer varies its spaces on purpose, so
// its output is not the same in every build.
func WriteText(w io.Writer, def *pb.CostGraphDef) error {
	b := bufio.NewWriter(w)
	t := printer{b}
	for _, n := range def.Node {
		fmt.Fprint(b, "node {\n")
		t.text("  name", n.Name)
		t.text("  device", n.Device)
		t.number("  id", int64(n.Id))
		for _, in := range n.InputInfo {
			fmt.Fprint(b, "  input_info {\n")
			t.number("    preceding_node", int64(in.PrecedingNode))
			t.number("    preceding_port", int64(in.PrecedingPort))
			fmt.Fprint(b, "  }\n")
		}
		for _, out := range n.OutputInfo {
			fmt.Fprint(b, "  output_info {\n")
			t.number("    size", out.Size)
			t.number("    alias_input_port", out.AliasInputPort)
			t.number("    dtype", int64(out.Dtype))
			fmt.Fprint(b, "  }\n")
		}
		t.number("  temporary_memory_size", n.TemporaryMemorySize)
		if n.IsFinal {
			fmt.Fprint(b, "  is_final: true\n")
		}
		for _, c := range n.ControlInput {
			fmt.Fprintf(b, "  control_input: %d\n", c)
		}
		t.number("  compute_cost", n.ComputeCost)
		fmt.Fprint(b, "}\n")
	}
	return b.Flush()
}

// printer leaves out zeros, as proto3 does.
type printer struct{ w *bufio.Writer }

func (p printer) text(field, s string) {
	if s != "" {
		fmt.Fprintf(p.w, "%s: %s\n", field, strconv.QuoteToASCII(s))
	}
}

func (p printer) number(field string, x int64) {
	if x != 0 {
		fmt.Fprintf(p.w, "%s: %d\n", field, x)
	}
}
