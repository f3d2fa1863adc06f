package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/workloads"
)

// gnmt8 returns the training graph of GNMT with eight layers and eight P100s. The
// graph is made once.
var gnmt8 = sync.OnceValues(func() (*graph.Graph, *hw.Machine) {
	g, err := workloads.Build("gnmt8")
	if err != nil {
		panic(err)
	}
	m, err := hw.Take("p100", 8, false)
	if err != nil {
		panic(err)
	}
	return g, m
})

func simulator(b *testing.B, cfg sim.Config) (*sim.Simulator, *graph.Graph) {
	g, m := gnmt8()
	cost, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		b.Fatal(err)
	}
	s, err := sim.New(g, m, cost, cfg)
	if err != nil {
		b.Fatal(err)
	}
	return s, g
}

// byLayer puts a layer on each device, and what has none with the last.
func byLayer(g *graph.Graph, d int) []uint8 {
	device := make([]uint8, g.NumOps())
	group := map[int32]uint8{}
	for i := range device {
		op := g.Op(graph.OpID(i))
		layer := int(op.Layer)
		if layer < 1 || layer > d {
			layer = d
		}
		device[i] = uint8(layer - 1)
		if op.Group > 0 {
			if x, ok := group[op.Group]; ok {
				device[i] = x
			}
			group[op.Group] = device[i]
		}
	}
	return device
}

// scattered puts a share of the ops anywhere.
func scattered(r *rand.Rand, device []uint8, d int, share float64) []uint8 {
	out := append([]uint8(nil), device...)
	for i := range out {
		if r.Float64() < share {
			out[i] = uint8(r.IntN(d))
		}
	}
	return out
}

// benchmark reports simulated ops per second of the wall clock and of the core.
func benchmark(b *testing.B, s *sim.Simulator, device []uint8, priority []int32) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.Evaluate(plan.Decision{Device: device, Priority: priority})
	b.ReportAllocs()
	b.ResetTimer()
	start := cpuTime()
	for b.Loop() {
		s.Evaluate(plan.Decision{Device: device, Priority: priority})
	}
	cpu := cpuTime() - start
	ops := float64(len(device)) * float64(b.N)
	b.ReportMetric(ops/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(ops/cpu.Seconds(), "ops/core-s")
}

func BenchmarkSimulate(b *testing.B) {
	for _, memory := range []bool{true, false} {
		b.Run(fmt.Sprintf("ops=84k/devices=8/memory=%v", memory), func(b *testing.B) {
			s, g := simulator(b, sim.Config{Memory: memory})
			benchmark(b, s, byLayer(g, 8), sim.CriticalPathPriority(g, s.OpSeconds(0)))
		})
	}
}

// The time depends on how many tensors cross devices.
func BenchmarkSimulateScattered(b *testing.B) {
	for _, share := range []float64{0.01, 0.1, 1} {
		b.Run(fmt.Sprintf("ops=84k/devices=8/share=%v", share), func(b *testing.B) {
			s, g := simulator(b, sim.Default())
			device := scattered(rand.New(rand.NewPCG(1, 1)), byLayer(g, 8), 8, share)
			benchmark(b, s, device, sim.CriticalPathPriority(g, s.OpSeconds(0)))
		})
	}
}

// BenchmarkMoves scores random moves of a cell each by whole evaluations and by the
// evaluator of changes, in turns. The evaluator of changes may give up where a move makes
// the step longer: what it is worth depends on how good the placement is. The first is
// that of a recorded search, which decided on more than places; the others are a layer on
// each device, or blocks, that such moves have improved. It
// reports how many moves are scored in a second of the core each way, and the ratio.
func BenchmarkMoves(b *testing.B) {
	b.Run("gnmt8/devices=8/recorded", func(b *testing.B) {
		f, err := plan.ReadFile("../experiments/pictures/gnmt8/plan.json")
		if err != nil {
			b.Fatal(err)
		}
		x := newMover(b, "gnmt8", 8)
		x.start(f.Device)
		x.benchmark(b, false)
	})
	b.Run("gnmt8/devices=8/layers", func(b *testing.B) {
		x := newMover(b, "gnmt8", 8)
		g, _ := gnmt8()
		x.start(byLayer(g, 8))
		x.improve()
		x.benchmark(b, false)
	})
	for _, c := range []struct {
		workload string
		gpus     int
	}{{"gnmt8", 8}, {"rnnlm8", 8}, {"wavenet4", 4}, {"inception", 2}, {"amoebanet", 4}} {
		for _, fused := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/devices=%d/improved/fused=%v", c.workload, c.gpus, fused), func(b *testing.B) {
				x := newMover(b, c.workload, c.gpus)
				if fused {
					x.now.Fusion = slices.Repeat([]uint8{1}, len(x.old))
					x.start(x.now.Device)
				}
				x.improve()
				x.benchmark(b, false)
			})
		}
	}
}

// improvements is how many moves a benchmark tries on the placement that it starts from.
const improvements = 3000

// BenchmarkMovesScattered is BenchmarkMoves where a share of the ops is anywhere and
// every step is simulated to the end.
func BenchmarkMovesScattered(b *testing.B) {
	for _, share := range []float64{0, 0.01, 0.1, 1} {
		b.Run(fmt.Sprintf("gnmt8/devices=8/share=%v", share), func(b *testing.B) {
			x := newMover(b, "gnmt8", 8)
			x.start(scattered(x.r, x.now.Device, 8, share))
			x.best = plan.Score{Value: math.Inf(1)}
			x.benchmark(b, true)
		})
	}
}

// mover moves cells at random.
type mover struct {
	r     *rand.Rand
	s     *sim.Simulator
	moves plan.Moves
	cells *unit.Partition
	gpus  int
	now   plan.Decision
	old   []uint8 // [N] before the move under way
	best  plan.Score
}

// newMover starts from blocks of even time.
func newMover(b *testing.B, workload string, gpus int) *mover {
	g, err := workloads.Build(workload)
	if err != nil {
		b.Fatal(err)
	}
	m, err := hw.Take("p100", gpus, false)
	if err != nil {
		b.Fatal(err)
	}
	cost, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		b.Fatal(err)
	}
	s, err := sim.New(g, m, cost, sim.Default())
	if err != nil {
		b.Fatal(err)
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		b.Fatal(err)
	}
	now := plan.Decision{Device: h.Blocks(s.OpSeconds(0), gpus), Priority: sim.CriticalPathPriority(g, s.OpSeconds(0))}
	x := &mover{r: rand.New(rand.NewPCG(1, 2)), s: s, moves: s.Moves(), cells: h.Levels[unit.Cell], gpus: gpus, now: now, old: make([]uint8, g.NumOps())}
	x.start(now.Device)
	return x
}

// start goes to a placement.
func (x *mover) start(device []uint8) {
	x.now.Device = slices.Clone(device)
	x.best = x.s.Evaluate(x.now)
	x.moves.Reset(x.now)
}

// improve keeps those of many moves that make the step no longer.
func (x *mover) improve() {
	for range improvements {
		if k, d := x.draw(); !x.try(k, d) {
			x.takeBack(k)
		}
	}
}

// draw returns a cell and another device for it.
func (x *mover) draw() (cell int, device uint8) {
	cell = x.r.IntN(x.cells.NumUnits())
	d := int(x.now.Device[x.cells.Ops[cell][0]])
	return cell, uint8((d + 1 + x.r.IntN(x.gpus-1)) % x.gpus)
}

func (x *mover) set(cell int, device uint8) {
	for _, i := range x.cells.Ops[cell] {
		x.old[i], x.now.Device[i] = x.now.Device[i], device
	}
}

// try moves a cell and reports whether the step is no longer for it.
func (x *mover) try(cell int, device uint8) bool {
	x.set(cell, device)
	x.moves.Move(x.cells.Ops[cell], device)
	score, ok := x.moves.Score(x.best.Value)
	if !ok || x.best.Better(score) {
		return false
	}
	x.best = score
	return true
}

func (x *mover) takeBack(cell int) {
	ops := x.cells.Ops[cell]
	for k, i := range ops {
		x.now.Device[i] = x.old[i]
		x.moves.Move(ops[k:k+1], x.old[i])
	}
}

// benchmark scores moves, none of which it keeps, both ways.
func (x *mover) benchmark(b *testing.B, toTheEnd bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const turn = 25
	var whole, moved time.Duration
	n := 0
	best := x.best
	for b.Loop() {
		var cells [turn]int
		var devices [turn]uint8
		var want [turn]plan.Score
		start := cpuTime()
		for k := range turn {
			cells[k], devices[k] = x.draw()
			x.set(cells[k], devices[k])
			want[k] = x.s.Evaluate(x.now)
			for _, i := range x.cells.Ops[cells[k]] {
				x.now.Device[i] = x.old[i]
			}
		}
		middle := cpuTime()
		for k := range turn {
			if taken := x.try(cells[k], devices[k]); taken != (toTheEnd || !best.Better(want[k])) || taken && x.best != want[k] {
				b.Fatalf("a move scores %v, want %v", x.best, want[k])
			}
			x.best = best
			x.takeBack(cells[k])
		}
		whole, moved = whole+middle-start, moved+cpuTime()-middle
		n += turn
	}
	b.ReportMetric(float64(n)/whole.Seconds(), "whole/core-s")
	b.ReportMetric(float64(n)/moved.Seconds(), "moves/core-s")
	b.ReportMetric(whole.Seconds()/moved.Seconds(), "ratio")
}

func BenchmarkSimulateFIFO(b *testing.B) {
	b.Run("ops=84k/devices=8", func(b *testing.B) {
		s, g := simulator(b, sim.Default())
		benchmark(b, s, byLayer(g, 8), nil)
	})
}

func BenchmarkSimulateFairShare(b *testing.B) {
	b.Run("ops=84k/devices=8", func(b *testing.B) {
		s, g := simulator(b, sim.Config{Memory: true, Contention: sim.FairShare})
		benchmark(b, s, byLayer(g, 8), sim.CriticalPathPriority(g, s.OpSeconds(0)))
	})
}

func BenchmarkRun(b *testing.B) {
	s, g := simulator(b, sim.Default())
	p := &plan.Plan{Decision: plan.Decision{Device: byLayer(g, 8), Priority: sim.CriticalPathPriority(g, s.OpSeconds(0))}}
	for b.Loop() {
		if _, err := s.Run(p, sim.Options{Trace: true}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLowerBound(b *testing.B) {
	s, _ := simulator(b, sim.Default())
	for b.Loop() {
		s.LowerBound(b.Context())
	}
}
