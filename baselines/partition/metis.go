package partition

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"

	"placer/baselines/budget"
	"placer/graph/unit"
	"placer/plan"
)

// errNoMETIS says that the computer has no gpmetis program.
var errNoMETIS error = budget.Unavailable("gpmetis not found; install metis")

// METIS cuts the op graph with METIS (Karypis and Kumar, 1998): parts of equal
// compute, least communication across the cut. It runs the program gpmetis: METIS
// inside this process would take over its signal handlers.
type METIS struct {
	program string // path of gpmetis; empty looks it up in PATH
}

var _ plan.Placer = METIS{}

// Name returns "metis".
func (METIS) Name() string { return "metis" }

// Kind returns plan.Baseline.
func (METIS) Kind() plan.Kind { return plan.Baseline }

// Place cuts the graph into one part per device and evaluates that placement. On
// a machine of unequal devices a part's share of the compute is its device's
// share of the speed. The error is a budget.Unavailable where there is no gpmetis.
func (m METIS) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	ops := p.Units.Levels[unit.Op]
	parts := make([]uint8, ops.NumUnits())
	// gpmetis divides by zero when asked for one part, and refuses more parts than
	// vertices.
	if d := min(p.Machine.NumDevices(), len(parts)); d > 1 {
		var err error
		if parts, err = m.cut(ctx, p, ops, d); err != nil {
			return nil, fmt.Errorf("metis: %w", err)
		}
	}
	return budget.One(ctx, p, "metis", spread(ops, parts, all(p)))
}

func (m METIS) cut(ctx context.Context, p *plan.Problem, ops *unit.Partition, d int) ([]uint8, error) {
	name := m.program
	if name == "" {
		name = "gpmetis"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, errNoMETIS
	}
	parts := strconv.Itoa(d)
	// A part may exceed the mean by 30 thousandths, gpmetis' own default.
	words, err := program{
		path:   path,
		args:   []string{"-seed=" + strconv.Itoa(int(p.Seed%(1<<31-2))+1), "-ufactor=30", "-tpwgts=targets", "graph", parts},
		files:  map[string][]byte{"graph": encodeMETIS(p, ops), "targets": shares(p, d)},
		result: "graph.part." + parts,
	}.run(ctx, "gpmetis")
	if err != nil {
		return nil, err
	}
	if len(words) != ops.NumUnits() {
		return nil, fmt.Errorf("gpmetis placed %d vertices of %d", len(words), ops.NumUnits())
	}
	of := make([]uint8, len(words))
	for i, w := range words {
		v, err := strconv.Atoi(w)
		if err != nil || v < 0 || v >= d {
			return nil, fmt.Errorf("gpmetis: line %d: part %q of %d", i+1, w, d)
		}
		of[i] = uint8(v)
	}
	return of, nil
}

// METIS takes integers of 32 bits, and sums of them must fit too.
const metisTotal = 1 << 29

// encodeMETIS returns METIS' text form of the units of ops.
func encodeMETIS(p *plan.Problem, ops *unit.Partition) []byte {
	n := newNetwork(p, ops, all(p))
	vertex, edge := n.scales(metisTotal)
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d %d 011\n", len(n.weight), len(n.edges.Unit)/2)
	for u, w := range n.weight {
		// A weight of nothing would let METIS pile such vertices up anywhere.
		out.WriteString(strconv.Itoa(1 + int(w*vertex)))
		to, seconds := n.edges.Neighbours(int32(u))
		for k, v := range to {
			fmt.Fprintf(&out, " %d %d", v+1, 1+int(seconds[k]*edge))
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// shares returns METIS' text form of each part's share of the compute, d parts:
// the speed of its device over all ops, relative to the others.
func shares(p *plan.Problem, d int) []byte {
	var out bytes.Buffer
	for v, s := range speeds(p, all(p)[:d]) {
		fmt.Fprintf(&out, "%d = %.9f\n", v, s)
	}
	return out.Bytes()
}
