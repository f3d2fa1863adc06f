package partition

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"placer/baselines/conformance"
	"placer/graph"
)

func TestNoMETIS(t *testing.T) {
	c := conformance.Cases()[3]
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	_, err = METIS{program: filepath.Join(t.TempDir(), "gpmetis")}.Place(context.Background(), p)
	if !errors.Is(err, errNoMETIS) {
		t.Errorf("error %v, want errNoMETIS", err)
	}
}

// TestBadAnswers replaces the program by ones that misbehave.
func TestBadAnswersOfMETIS(t *testing.T) {
	c := conformance.Cases()[3] // 40 ops, 4 devices
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ name, script, want string }{
		{"fails", "echo no memory; exit 3", "exit status 3: no memory"},
		{"writes nothing", "exit 0", "wrote no result"},
		{"too few", "echo 0 >$4.part.4", "placed 1 vertices of 40"},
		{"no such part", "yes 4 | head -40 >$4.part.4", `part "4" of 4`},
		{"no number", "yes x | head -40 >$4.part.4", `part "x" of 4`},
	} {
		t.Run(x.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "gpmetis")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+x.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			_, err := METIS{program: program}.Place(context.Background(), p)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("error %v, want %q", err, x.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%d files left behind", len(left))
			}
		})
	}
}

// TestCut: the parts of two cliques joined by one edge are the cliques, and parts
// have about equal compute.
func TestCut(t *testing.T) {
	if _, err := exec.LookPath("gpmetis"); err != nil {
		t.Skip(errNoMETIS)
	}
	c := twoClusters(12)
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	out, err := METIS{}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range out.Device {
		if d != out.Device[i/12*12] || out.Device[0] == out.Device[12] {
			t.Fatalf("devices %v, want one for the first twelve ops and another for the others", out.Device)
		}
	}
}

// twoClusters is two sets of n ops, each op reading all before it in its set, and
// one small edge between the sets.
func twoClusters(n int) conformance.Case {
	c := conformance.Cases()[3]
	b := graph.NewBuilder("clusters")
	var in []graph.TensorID
	for i := range 2 * n {
		if i == n {
			in = in[:1:1]
		}
		id := b.Op(graph.Op{Name: "op" + string(rune('A'+i)), Kind: "MatMul", Forward: graph.None}, append([]graph.TensorID(nil), in...), graph.Tensor{Bytes: 10000})
		in = append(in, b.Output(id, 0))
		if i == n {
			in = in[1:]
		}
		c.Costs.Micros = append(c.Costs.Micros[:i], 10)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	c.Graph = g
	c.Machine.Devices = c.Machine.Devices[:2]
	c.Machine.Routes = [][]int32{nil, {0}, {1}, nil}
	return c
}
