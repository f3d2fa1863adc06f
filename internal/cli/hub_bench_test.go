//go:build unix && !light

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"placer/hw"
	"placer/internal/dispatch"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

// BenchmarkWorkers measures samples of gnmt8 on eight devices a second: by the
// simulator in this process, and by one and two worker processes of one slot over
// loopback (docs/workers.md). A worker more helps as far as there are cores.
func BenchmarkWorkers(b *testing.B) {
	g, err := workloads.Build("gnmt8")
	if err != nil {
		b.Fatal(err)
	}
	m, err := hw.Take("p100", 8, false)
	if err != nil {
		b.Fatal(err)
	}
	s, _, err := problem.Simulator(problem.Source{Graph: g}, m, problem.Options{Scheduler: problem.FIFO})
	if err != nil {
		b.Fatal(err)
	}
	device := make([]uint8, g.NumOps())
	for i := range device {
		device[i] = uint8(i * 8 / len(device))
	}
	b.Run("workers=0", func(b *testing.B) {
		for b.Loop() {
			s.Evaluate(plan.Decision{Device: device})
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "samples/s")
	})
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprint("workers=", n), func(b *testing.B) { benchmarkWorkers(b, n, s, g.Write, m, device) })
	}
}

func benchmarkWorkers(b *testing.B, n int, local plan.Evaluator, graph func(io.Writer) error, m *hw.Machine, device []uint8) {
	hub := startHub(b)
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for range n {
		cmd := exec.Command(exe, "worker", "--hub", hub.URL(), "--slots", "1", "-q")
		cmd.Env = append(os.Environ(), "PLACER_TEST_MAIN=1", "GOMAXPROCS=1")
		cmd.Dir = filepath.Dir(exe)
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() { cmd.Process.Kill(); cmd.Wait() }()
	}
	var gText, mText bytes.Buffer
	if err := graph(&gText); err != nil {
		b.Fatal(err)
	}
	if err := m.Write(&mText); err != nil {
		b.Fatal(err)
	}
	clock := func() float64 { return b.Elapsed().Seconds() }
	x, err := dispatch.NewController(context.Background(), dispatch.Address{Hub: hub}, dispatch.DefaultController("bench", clock))
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	r, err := x.Remote(dispatch.Problem{Kind: dispatch.Roofline, Graph: gText.Bytes(), Machine: mText.Bytes()}, local.Clone())
	if err != nil {
		b.Fatal(err)
	}
	if err := x.Await(context.Background(), dispatch.Roofline, n); err != nil {
		b.Fatal(err)
	}
	clones := make([]plan.Evaluator, r.Parallel())
	for k := range clones {
		clones[k] = r.Clone()
	}
	round := func() {
		var wait sync.WaitGroup
		for _, e := range clones {
			wait.Go(func() {
				for range 16 {
					e.Evaluate(plan.Decision{Device: device})
				}
			})
		}
		wait.Wait()
	}
	for range 4 { // workers load the graph
		round()
	}
	b.ResetTimer()
	for range b.N {
		round()
	}
	b.ReportMetric(float64(b.N*len(clones)*16)/b.Elapsed().Seconds(), "samples/s")
	if s := x.Stats(); s.Local > 0 {
		b.Errorf("%+v: the controller did workers' work", s)
	}
}
