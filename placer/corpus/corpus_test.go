package corpus_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"placer/placer/corpus"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
)

// tiny is the configuration of a corpus whose labels take a moment.
func tiny() corpus.Config { return corpus.Config{Format: corpus.Format, Seed: 5, Evaluations: 30} }

func host(workers int, report func(corpus.Progress)) corpus.Host {
	return corpus.Host{Teach: methods.Teach, Workers: workers, Report: report}
}

func bytesOf(t *testing.T, folder string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, corpus.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestMake: a corpus is the same file whoever makes it, and goes on where it was stopped
// or killed; every plan scores what is recorded.
func TestMake(t *testing.T) {
	const n = 3
	whole := t.TempDir()
	if err := corpus.Make(t.Context(), whole, n, tiny(), host(2, nil)); err != nil {
		t.Fatal(err)
	}
	want := bytesOf(t, whole)

	again := filepath.Join(t.TempDir(), "new")
	ctx, stop := context.WithCancel(t.Context())
	err := corpus.Make(ctx, again, n, tiny(), host(1, func(corpus.Progress) { stop() }))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	part := bytesOf(t, again)
	if !bytes.HasPrefix(want, part) || bytes.Count(part, []byte("\n")) != 2 {
		t.Fatalf("after the first problem the file holds\n%s", part)
	}
	next := want[len(part):] // what a kill leaves of the next line
	if err := os.WriteFile(filepath.Join(again, corpus.FileName), append(part, next[:len(next)/4]...), 0o644); err != nil {
		t.Fatal(err)
	}
	told := 0
	if err := corpus.Make(t.Context(), again, n, tiny(), host(1, func(p corpus.Progress) { told = p.Done })); err != nil {
		t.Fatal(err)
	}
	if got := bytesOf(t, again); !bytes.Equal(got, want) || told != n {
		t.Errorf("made in parts the file differs:\n%s\nwant\n%s", got, want)
	}

	all, err := corpus.Read(whole)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Problems) != n || all.Problems[0].Families[0] == all.Problems[1].Families[0] {
		t.Fatalf("%d problems: %+v", len(all.Problems), all.Problems)
	}
	for _, x := range all.Problems {
		if err := x.Check(); err != nil {
			t.Error(err)
		}
		if x.Best.Overflow > 0 || x.Best.Seconds > x.OneDevice.Seconds && x.OneDevice.Overflow == 0 || x.Best.Seconds < x.Bound {
			t.Errorf("problem %d: %+v", x.Index, x)
		}
	}
	x := all.Problems[1]
	x.Best.Seconds *= 1.001
	if err := x.Check(); err == nil || !strings.Contains(err.Error(), "problem 1: best") {
		t.Errorf("a wrong score: %v", err)
	}
	x = all.Problems[1]
	x.Net = all.Problems[0].Net
	if err := x.Check(); err == nil || !strings.Contains(err.Error(), "generator has changed") {
		t.Errorf("another graph: %v", err)
	}
	other := tiny()
	other.Evaluations++
	if err := corpus.Make(t.Context(), whole, n, other, host(1, nil)); err == nil || !strings.Contains(err.Error(), "was begun with") {
		t.Errorf("another configuration: %v", err)
	}
	if got := bytesOf(t, whole); !bytes.Equal(got, want) {
		t.Error("a refused configuration changed the file")
	}
}

// TestMakeFails: the error of a teacher ends the run and leaves what is whole.
func TestMakeFails(t *testing.T) {
	folder, calls := t.TempDir(), 0
	broken := errors.New("broken")
	teach := func(_ context.Context, p *problem.Problem, _ plan.Budget, _ func() float64, _ uint64) (*search.Row, error) {
		if calls++; calls > 1 {
			return nil, broken
		}
		return &search.Row{Decision: plan.Decision{Device: make([]uint8, p.Graph.NumOps())}, Evaluations: 1}, nil
	}
	err := corpus.Make(t.Context(), folder, 3, tiny(), corpus.Host{Teach: teach, Workers: 1})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "problem 1") {
		t.Errorf("error %v", err)
	}
	all, err := corpus.Read(folder)
	if err != nil || len(all.Problems) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	c := tiny()
	c.Seconds, c.Evaluations = 1, 0
	if err := corpus.Make(t.Context(), t.TempDir(), 1, c, corpus.Host{Teach: teach, Workers: 1}); err == nil {
		t.Error("labels by CPU seconds without a clock")
	}
}

// TestLabelTakesItsSeconds: the search of a label takes its seconds of processor time, of
// which each of the problems searched at once is charged its part.
func TestLabelTakesItsSeconds(t *testing.T) {
	folder := t.TempDir()
	c := tiny()
	c.Seconds, c.Evaluations = 2, 0
	var now atomic.Int64
	cpu := func() float64 { return float64(now.Add(1)) / 100 } // every look takes 10 ms
	if err := corpus.Make(t.Context(), folder, 2, c, corpus.Host{Teach: methods.Teach, CPU: cpu, Workers: 2}); err != nil {
		t.Fatal(err)
	}
	all, err := corpus.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, x := range all.Problems {
		if sum += x.CPUSeconds; x.CPUSeconds < 2 || x.Check() != nil {
			t.Errorf("problem %d: %g s, %v", x.Index, x.CPUSeconds, x.Check())
		}
	}
	if used := cpu(); sum > used {
		t.Errorf("labels took %g s of %g s", sum, used)
	}
}

// TestFingerprint: lists of which a problem differs in any of what makes it, or in its label,
// are told apart.
func TestFingerprint(t *testing.T) {
	one := func() corpus.Problem {
		return corpus.Problem{Index: 1, Graph: "g", Plan: "p", Recipe: corpus.Recipe{Net: "n", Tasks: "place", Machine: corpus.Machine{GPUs: []string{"p100", "p100"}, Group: 2, Bandwidth: 10}}}
	}
	seen := map[string]string{"": "none"}
	for name, change := range map[string]func(x *corpus.Problem){
		"as it is":  func(*corpus.Problem) {},
		"index":     func(x *corpus.Problem) { x.Index = 2 },
		"graph":     func(x *corpus.Problem) { x.Graph = "h" },
		"net":       func(x *corpus.Problem) { x.Net = "m" },
		"tasks":     func(x *corpus.Problem) { x.Tasks = "place,fuse" },
		"GPUs":      func(x *corpus.Problem) { x.Machine.GPUs = []string{"p100", "a100"} },
		"bandwidth": func(x *corpus.Problem) { x.Machine.Bandwidth = 10.5 },
		"memory":    func(x *corpus.Problem) { x.Machine.Memory = 1 << 30 },
		"plan":      func(x *corpus.Problem) { x.Plan = "q" },
	} {
		x := one()
		change(&x)
		f := corpus.Fingerprint([]corpus.Problem{x})
		if other, ok := seen[f]; ok {
			t.Errorf("%s: the fingerprint is that of %s", name, other)
		}
		seen[f] = name
	}
	if corpus.Fingerprint(nil) != "" {
		t.Error("no problems have a fingerprint")
	}
}
