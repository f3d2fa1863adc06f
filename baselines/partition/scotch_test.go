package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/baselines/conformance"
	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/units"
)

func problem(t *testing.T, c conformance.Case) *plan.Problem {
	t.Helper()
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNoScotch(t *testing.T) {
	p := problem(t, conformance.Cases()[3])
	for _, s := range []Scotch{{}, {MinCut: true}} {
		s.program = filepath.Join(t.TempDir(), "gmap")
		if _, err := s.Place(context.Background(), p); !errors.Is(err, errNoScotch) || !strings.HasPrefix(err.Error(), s.Name()+": scotch_gmap not found") {
			t.Errorf("error %v, want errNoScotch", err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (Scotch{}).Place(context.Background(), p); !errors.Is(err, errNoScotch) {
		t.Errorf("error %v with an empty PATH, want errNoScotch", err)
	}
	// Another program of the same name.
	if err := os.WriteFile(filepath.Join(os.Getenv("PATH"), "gmap"), []byte("#!/bin/sh\necho GMAP version 2021-08-25\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (Scotch{}).Place(context.Background(), p); !errors.Is(err, errNoScotch) {
		t.Errorf("error %v with another gmap, want errNoScotch", err)
	}
}

// TestBadAnswers replaces the program by ones that misbehave.
func TestBadAnswersOfScotch(t *testing.T) {
	p := problem(t, conformance.Cases()[3]) // 40 ops, 4 devices
	for _, x := range []struct{ name, script, want string }{
		{"fails", "echo no memory; exit 3", "exit status 3: no memory"},
		{"writes nothing", "exit 0", "wrote no result"},
		{"too few", "echo '40 0 1' >$3", "placed 1 vertices of 40"},
		{"no such terminal", "(echo 40; for k in $(seq 0 39); do echo $k 4; done) >$3", `terminal "4" of 4`},
		{"no number", "(echo 40; yes '1 x' | head -40) >$3", `terminal "x" of 4`},
	} {
		t.Run(x.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "gmap")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+x.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			_, err := Scotch{program: program}.Place(context.Background(), p)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("error %v, want %q", err, x.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%d files left behind", len(left))
			}
		})
	}
}

// TestArchitecture: three GPUs, of which the last is farther from the others, and
// their numbers in the tree of halves.
func TestArchitecture(t *testing.T) {
	c := conformance.Cases()[2] // three devices
	for k := range c.Machine.Routes {
		if v, w := k/3, k%3; v != w && (v == 2 || w == 2) {
			c.Machine.Links[c.Machine.Routes[k][0]].Bandwidth = 5e8
			c.Machine.Links[c.Machine.Routes[k][0]].Latency *= 2
		}
	}
	c.Costs.Uniform = true
	p := problem(t, c)
	if got, want := string(architecture(p, []uint8{0, 1, 2})), "deco\n0\n3 5\n0 3333 4\n1 3333 5\n2 3333 3\n8 \n16 16 \n"; got != want {
		t.Errorf("architecture\n%swant\n%s", got, want)
	}
	c.Costs.Uniform = false // devices 0 and 1 take 1 and 1.5 times as long
	if got, want := string(architecture(problem(t, c), []uint8{0, 1})), "deco\n0\n2 3\n0 6000 2\n1 4000 3\n1 \n"; got != want {
		t.Errorf("architecture\n%swant\n%s", got, want)
	}
}

// cliques is k sets of n ops, each op reading all before it in its set, with one
// small tensor from each set to the next.
func cliques(k, n int) *graph.Graph {
	b := graph.NewBuilder("cliques")
	var last graph.TensorID
	for s := range k {
		var in []graph.TensorID
		if s > 0 {
			in = append(in, last)
		}
		for i := range n {
			id := b.Op(graph.Op{Name: fmt.Sprintf("s%d_%d", s, i), Kind: "MatMul", Forward: graph.None}, slices.Clone(in), graph.Tensor{Bytes: 10000}, graph.Tensor{Bytes: 10})
			if s > 0 && i == 0 {
				in = in[1:]
			}
			in = append(in, b.Output(id, 0))
			last = b.Output(id, 1)
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// TestMapping: sets of ops that exchange much stay together, one set a device;
// MinCut leaves the CPU alone, and Scotch gives it the little it can do.
func TestMapping(t *testing.T) {
	if _, err := (Scotch{}).find(context.Background()); err != nil {
		t.Skip(err)
	}
	c := conformance.Cases()[2]
	c.Graph, c.Costs = cliques(2, 12), conformance.Costs{Micros: slices.Repeat([]float64{10}, 24), Uniform: true}
	c.Machine.Devices[2].Kind = hw.CPU
	c.Machine.Devices[2].Memory = units.Bytes(1 << 40)
	p := problem(t, c)
	out, err := Scotch{MinCut: true}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range out.Device {
		if d > 1 || d != out.Device[i/12*12] || out.Device[0] == out.Device[12] {
			t.Fatalf("mincut: devices %v, want a GPU for each half", out.Device)
		}
	}
	if out, err = (Scotch{}).Place(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	var used [3]int
	for _, d := range out.Device {
		used[d]++
	}
	if slices.Min(used[:]) == 0 {
		t.Errorf("scotch: %v ops on three equal devices, one of them the CPU, want some on each", used)
	}
	if got := len(p.Units.Levels[unit.Op].Ops); got != 24 {
		t.Fatalf("%d units", got)
	}
}
