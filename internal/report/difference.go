package report

import (
	"fmt"
	"io"

	"placer/graph"
	"placer/hw"
	"placer/placer/explain"
	"placer/units"
)

// differenceFormat names the version of Difference as a JSON document.
const differenceFormat = "placer difference 1"

// Difference is what lies between two plans. Times are whole picoseconds; what the
// moves buy sums to the difference of the steps.
type Difference struct {
	Format     string       `json:"format"`
	Graph      Graph        `json:"graph"`
	Machine    Machine      `json:"machine"`
	MethodA    string       `json:"method_a"`
	MethodB    string       `json:"method_b"`
	A          explain.Time `json:"step_a_ps"`
	B          explain.Time `json:"step_b_ps"`
	FitsA      bool         `json:"fits_a"`
	FitsB      bool         `json:"fits_b"`
	MovedOps   int          `json:"moved_ops"`
	MovedBytes int64        `json:"moved_bytes"`
	Moves      []move       `json:"moves"`
}

// move is a group of differences.
type move struct {
	Name   string       `json:"name"`
	From   string       `json:"from,omitempty"`
	To     string       `json:"to,omitempty"`
	Ops    int          `json:"ops"`
	Bytes  int64        `json:"bytes"`
	Bought explain.Time `json:"bought_ps"`
	Fits   bool         `json:"fits"`
}

// Diff describes x, the difference of the plans of methods a and b for g on m.
func Diff(g *graph.Graph, m *hw.Machine, a, b string, x *explain.Difference) *Difference {
	d := &Difference{Format: differenceFormat, Graph: IdentifyGraph(g), Machine: IdentifyMachine(m), MethodA: a, MethodB: b,
		A: x.A, B: x.B, FitsA: x.AFits, FitsB: x.BFits, MovedOps: x.MovedOps, MovedBytes: int64(x.MovedBytes), Moves: []move{}}
	for _, y := range x.Moves {
		d.Moves = append(d.Moves, move{y.Name, y.From, y.To, y.Ops, int64(y.Bytes), y.Bought, y.Fits})
	}
	return d
}

// WriteText writes d: sentences first, then the moves.
func (d *Difference) WriteText(w io.Writer) error {
	pg := newPage(w)
	s := explain.ScaleOf(max(d.A, d.B))
	parts := []explain.Time{d.B} // with what is bought they sum to A
	for _, m := range d.Moves {
		parts = append(parts, m.Bought)
	}
	text := s.FormatParts(parts)
	a, b := s.Format(d.A), text[0]
	switch {
	case d.B < d.A:
		pg.prose(fmt.Sprintf("B is faster: %s %s after %s %s, %.1f%% less.", b, s.Unit, a, s.Unit, share100(d.A-d.B, d.A)))
	case d.B > d.A:
		pg.prose(fmt.Sprintf("B is slower: %s %s after %s %s, %.1f%% more.", b, s.Unit, a, s.Unit, share100(d.B-d.A, d.A)))
	default:
		pg.prose(fmt.Sprintf("Both take %s %s.", a, s.Unit))
	}
	for _, x := range []struct {
		name string
		fits bool
	}{{"A", d.FitsA}, {"B", d.FitsB}} {
		if !x.fits {
			pg.printf("%s does not fit.\n", x.name)
		}
	}
	pg.prose(fmt.Sprintf("%d of %d ops are on other devices, with %v of parameters and state.", d.MovedOps, d.Graph.Ops, units.Bytes(d.MovedBytes)))
	if len(d.Moves) == 0 {
		pg.printf("The plans do not differ.\n")
		return pg.err
	}
	pg.printf("\n")
	t := newTable("moved, in this order", ">ops", ">bytes", "from", "to", ">gain, "+s.Unit)
	for k, m := range d.Moves {
		ops, bytes := "", ""
		if m.Ops > 0 {
			ops, bytes = fmt.Sprint(m.Ops), units.Bytes(m.Bytes).String()
		}
		mark := ""
		if !m.Fits {
			mark = " (does not fit)"
		}
		t.row(clip(m.Name, 18)+mark, ops, bytes, clip(m.From, 12), clip(m.To, 12), text[k+1])
	}
	t.row("A less B", "", "", "", "", s.Rest(parts))
	pg.table(t)
	pg.prose("Each gain comes after those above it: the move that helps most is first.")
	return pg.err
}
