package scotch

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

// ErrUnavailable says that the computer has no program of Scotch.
var ErrUnavailable error = judge.Unavailable("scotch_gmap not found; install scotch")

// Placer is the Scotch baseline or, without the CPU, the MinCut baseline.
type Placer struct {
	// MinCut leaves the CPU out.
	MinCut bool
	// Program is the path of gmap; empty looks scotch_gmap up in PATH, then gmap.
	Program string
	// Dir is where the files exchanged with gmap lie; empty means the system's
	// folder for temporary files.
	Dir string
	// Imbalance is the excess of the most loaded device over the mean, above 0; 0
	// means 0.05, gmap's own default.
	Imbalance float64
}

var _ plan.Placer = Placer{}

// Name returns "scotch" or "mincut".
func (s Placer) Name() string {
	if s.MinCut {
		return "mincut"
	}
	return "scotch"
}

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// Place maps the graph to the devices and evaluates that placement. The error is
// ErrUnavailable where there is no gmap.
func (s Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	j := judge.New(ctx, p, s.Name())
	ops := p.Units.Levels[unit.Op]
	var devices []uint8
	if s.MinCut {
		devices = judge.Accelerators(p.Machine)
	} else {
		for v := range p.Machine.NumDevices() {
			devices = append(devices, uint8(v))
		}
	}
	of := make([]uint8, ops.NumUnits()) // indices of devices
	if len(devices) > 1 {
		var err error
		if of, err = s.mapped(ctx, p, ops, devices); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name(), err)
		}
	}
	device := make([]uint8, p.Graph.NumOps())
	for i, u := range ops.Of {
		device[i] = devices[of[u]]
	}
	j.Try(device)
	return j.Outcome()
}

// program returns the path of gmap. A program that is called gmap alone may be
// another one, so it has to say that it is Scotch's.
func (s Placer) program(ctx context.Context) (string, error) {
	if s.Program != "" {
		if path, err := exec.LookPath(s.Program); err == nil {
			return path, nil
		}
		return "", ErrUnavailable
	}
	if path, err := exec.LookPath("scotch_gmap"); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath("gmap"); err == nil {
		if said, err := exec.CommandContext(ctx, path, "-V").CombinedOutput(); err == nil && bytes.Contains(said, []byte("gmap/gpart")) {
			return path, nil
		}
	}
	return "", ErrUnavailable
}

func (s Placer) mapped(ctx context.Context, p *plan.Problem, ops *unit.Partition, devices []uint8) ([]uint8, error) {
	program, err := s.program(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.Dir, "placer-scotch-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	graph, target, result := filepath.Join(dir, "graph"), filepath.Join(dir, "target"), filepath.Join(dir, "map")
	if err := os.WriteFile(graph, source(p, ops, devices), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(target, architecture(p, devices), 0o600); err != nil {
		return nil, err
	}
	imbalance := s.Imbalance
	if imbalance == 0 {
		imbalance = 0.05
	}
	cmd := exec.CommandContext(ctx, program, graph, target, result, filepath.Join(dir, "log"), "-Cdf", "-b"+strconv.FormatFloat(imbalance, 'f', -1, 64))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SCOTCH_PTHREAD_NUMBER=1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		text := strings.TrimSpace(said.String())
		return nil, fmt.Errorf("gmap: %w: %s", err, text[strings.LastIndexByte(text, '\n')+1:])
	}
	return read(result, ops.NumUnits(), len(devices))
}

// read returns the mapping that gmap wrote: a count, then pairs of vertex and
// terminal.
func read(path string, n, d int) ([]uint8, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("gmap wrote no result: %w", err)
	}
	words := strings.Fields(string(text))
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
