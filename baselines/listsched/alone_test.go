package listsched

import (
	"fmt"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/units"
)

// aloneCosts takes a hundred times as long on device 1, the roomiest.
type aloneCosts struct{}

func (aloneCosts) OpSeconds(_ graph.OpID, d int) units.Seconds {
	return [...]units.Seconds{1, 100, 1}[d]
}

// aloneProblem is n ops of that kind without edges, on three devices of which one is slow and has
// more memory than the others.
func aloneProblem(t *testing.T, kind graph.Kind, n int) *plan.Problem {
	t.Helper()
	b := graph.NewBuilder("alone")
	for k := range n {
		b.Op(graph.Op{Name: fmt.Sprint("x", k), Kind: kind, FLOPs: 1, Forward: graph.None}, nil, graph.Tensor{DType: graph.F32, Bytes: 4})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := line(3)
	m.Devices[1].Kind, m.Devices[1].Memory = hw.CPU, 100_000
	p := newProblem(t, g, m, aloneCosts{})
	if p.Units, err = unit.Find(g, p.Evaluator.OpSeconds(0)); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWorkThatNothingReads: what nothing reads goes to the roomiest device where it takes no time, and
// is work like any other where it does: a product, and an input that a file says takes time.
func TestWorkThatNothingReads(t *testing.T) {
	for _, kind := range []graph.Kind{"MatMul", "Placeholder"} {
		for _, method := range []plan.Placer{HEFT(), UnitHEFT(), MSCT(), UnitETF(), ETF()} {
			for n := 1; n <= 2; n++ {
				if kind == "MatMul" && n > 1 && method.Name() != HEFT().Name() && method.Name() != UnitHEFT().Name() {
					continue // earliest start takes a slow device that idles
				}
				out, err := method.Place(t.Context(), aloneProblem(t, kind, n))
				if err != nil {
					t.Fatal(err)
				}
				if out.Score.Value > 2 {
					t.Errorf("%s of %d %s takes %v s, on devices %v", method.Name(), n, kind, out.Score.Value, out.Device)
				}
			}
		}
	}
}
