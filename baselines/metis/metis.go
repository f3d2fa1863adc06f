// Package metis owns the baseline that cuts the op graph with METIS (Karypis and
// Kumar, 1998): parts of equal compute, least communication across the cut, no
// notion of time.
//
// It runs the gpmetis program as a process of its own. METIS inside this process
// would take over its signal handlers.
package metis

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"placer/baselines/judge"
	"placer/graph/unit"
	"placer/plan"
)

// ErrUnavailable says that the machine has no gpmetis program.
var ErrUnavailable error = judge.Unavailable("gpmetis not found; install metis")

// Placer is the METIS baseline.
type Placer struct {
	// Program is the path of gpmetis; empty looks it up in PATH.
	Program string
	// Dir is where the two files exchanged with gpmetis lie; empty means the
	// system's folder for temporary files.
	Dir string
	// Imbalance is the excess of the heaviest part's compute over the mean, in
	// thousandths, above 0; 0 means 30, gpmetis' own default.
	Imbalance int
}

var _ plan.Placer = Placer{}

// Name returns "metis".
func (Placer) Name() string { return "metis" }

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// Place cuts the graph into one part per device and evaluates that placement. On
// a machine of unequal devices a part's share of the compute is its device's
// share of the speed. The error is ErrUnavailable where there is no gpmetis.
func (m Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	j := judge.New(ctx, p, "metis")
	ops := p.Units.Levels[unit.Op]
	parts := make([]uint8, ops.NumUnits())
	// gpmetis divides by zero when asked for one part, and refuses more parts than
	// vertices.
	if d := min(p.Machine.NumDevices(), len(parts)); d > 1 {
		var err error
		if parts, err = m.partition(ctx, p, ops, d); err != nil {
			return nil, fmt.Errorf("metis: %w", err)
		}
	}
	device := make([]uint8, p.Graph.NumOps())
	for i, u := range ops.Of {
		device[i] = parts[u]
	}
	j.Try(device)
	return j.Outcome()
}

func (m Placer) partition(ctx context.Context, p *plan.Problem, ops *unit.Partition, d int) ([]uint8, error) {
	program := m.Program
	if program == "" {
		program = "gpmetis"
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, ErrUnavailable
	}
	dir, err := os.MkdirTemp(m.Dir, "placer-metis-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	graph, targets := filepath.Join(dir, "graph"), filepath.Join(dir, "targets")
	if err := os.WriteFile(graph, encode(p, ops), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(targets, shares(p, d), 0o600); err != nil {
		return nil, err
	}
	imbalance := m.Imbalance
	if imbalance == 0 {
		imbalance = 30
	}
	seed := int(p.Seed%(1<<31-2)) + 1
	cmd := exec.CommandContext(ctx, path, "-seed="+strconv.Itoa(seed), "-ufactor="+strconv.Itoa(imbalance), "-tpwgts="+targets, graph, strconv.Itoa(d))
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("gpmetis: %w: %s", err, lastLine(said.String()))
	}
	return read(graph+".part."+strconv.Itoa(d), ops.NumUnits(), d)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// read returns the parts that gpmetis wrote, one a line.
func read(path string, n, d int) ([]uint8, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("gpmetis wrote no result: %w", err)
	}
	lines := strings.Fields(string(text))
	if len(lines) != n {
		return nil, fmt.Errorf("gpmetis placed %d vertices of %d", len(lines), n)
	}
	parts := make([]uint8, n)
	for i, l := range lines {
		v, err := strconv.Atoi(l)
		if err != nil || v < 0 || v >= d {
			return nil, fmt.Errorf("gpmetis: line %d: part %q of %d", i+1, l, d)
		}
		parts[i] = uint8(v)
	}
	return parts, nil
}
