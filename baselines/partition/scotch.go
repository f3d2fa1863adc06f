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

// errNoScotch says that the computer has no program of Scotch.
var errNoScotch error = budget.Unavailable("scotch_gmap not found; install scotch")

// Scotch maps the op graph with Scotch (Pellegrini), as RL-2017 (section 4.1) used
// it: op times, the time to move what ops exchange, and an architecture of the
// devices, their speeds and the distances between them.
//
// It runs the program gmap (scotch_gmap on Debian, version 7 or later) as a process
// of its own, on one thread and with the seed that is built into it: one problem
// gives one mapping, whatever the problem's seed.
type Scotch struct {
	// MinCut leaves the CPU out: the MinCut baseline.
	MinCut bool

	program string // path of gmap; empty looks scotch_gmap up in PATH, then gmap
}

var _ plan.Placer = Scotch{}

// Name returns "scotch" or "mincut".
func (s Scotch) Name() string {
	if s.MinCut {
		return "mincut"
	}
	return "scotch"
}

// Kind returns plan.Baseline.
func (Scotch) Kind() plan.Kind { return plan.Baseline }

// Place maps the graph to the devices and evaluates that placement. The error is a
// budget.Unavailable where there is no gmap.
func (s Scotch) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	ops := p.Units.Levels[unit.Op]
	devices := all(p)
	if s.MinCut {
		devices = p.Machine.Accelerators()
	}
	of := make([]uint8, ops.NumUnits()) // indices of devices
	if len(devices) > 1 {
		var err error
		if of, err = s.mapped(ctx, p, ops, devices); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name(), err)
		}
	}
	return budget.One(ctx, p, s.Name(), spread(ops, of, devices))
}

// find returns the path of gmap. A program that is called gmap alone may be
// another one, so it has to say that it is Scotch's.
func (s Scotch) find(ctx context.Context) (string, error) {
	if s.program != "" {
		if path, err := exec.LookPath(s.program); err == nil {
			return path, nil
		}
		return "", errNoScotch
	}
	if path, err := exec.LookPath("scotch_gmap"); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath("gmap"); err == nil {
		if said, err := exec.CommandContext(ctx, path, "-V").CombinedOutput(); err == nil && bytes.Contains(said, []byte("gmap/gpart")) {
			return path, nil
		}
	}
	return "", errNoScotch
}

// mapped returns, for each unit, an index of devices. What gmap writes is a count,
// then pairs of vertex and terminal.
func (s Scotch) mapped(ctx context.Context, p *plan.Problem, ops *unit.Partition, devices []uint8) ([]uint8, error) {
	path, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	// The most loaded device may exceed the mean by 0.05, gmap's own default.
	words, err := program{
		path: path, args: []string{"graph", "target", "map", "log", "-Cdf", "-b0.05"}, env: []string{"SCOTCH_PTHREAD_NUMBER=1"},
		files: map[string][]byte{"graph": encodeScotch(p, ops, devices), "target": architecture(p, devices)}, result: "map",
	}.run(ctx, "gmap")
	if err != nil {
		return nil, err
	}
	n, d := ops.NumUnits(), len(devices)
	if len(words) != 1+2*n || words[0] != strconv.Itoa(n) {
		return nil, fmt.Errorf("gmap placed %d vertices of %d", max(0, len(words)-1)/2, n)
	}
	of := make([]uint8, n)
	for k := 1; k < len(words); k += 2 {
		u, err1 := strconv.Atoi(words[k])
		v, err2 := strconv.Atoi(words[k+1])
		if err1 != nil || err2 != nil || u < 0 || u >= n || v < 0 || v >= d {
			return nil, fmt.Errorf("gmap: vertex %q of %d on terminal %q of %d", words[k], n, words[k+1], d)
		}
		of[u] = uint8(v)
	}
	return of, nil
}
