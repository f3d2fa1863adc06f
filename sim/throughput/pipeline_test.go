package throughput_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/sim/throughput"
	"placer/units"
)

// operators returns a random graph of operators, some of them views, weights or of no
// output, on a machine of a few equal devices.
func operators(t *testing.T, rng *rand.Rand) throughput.Source {
	b := graph.NewBuilder("operators")
	var made []graph.TensorID
	n := 1 + rng.IntN(12)
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Kind: "MatMul", Forward: graph.None, Workspace: units.Bytes(rng.IntN(3) * 50)}
		var in []graph.TensorID
		for _, x := range made {
			if rng.IntN(4) == 0 {
				in = append(in, x)
			}
		}
		if len(in) > 0 && rng.IntN(5) == 0 {
			in = append(in, in[0])
		}
		var out []graph.Tensor
		for range rng.IntN(3) {
			out = append(out, graph.Tensor{Bytes: units.Bytes(1 + rng.IntN(100))})
		}
		switch k := rng.IntN(6); {
		case k == 0:
			o.Kind, o.Resident = "VariableV2", units.Bytes(1+rng.IntN(200))
			in, out = nil, []graph.Tensor{{Bytes: o.Resident, Resident: true}}
		case k == 1 && len(in) > 0:
			o.Kind, o.Workspace = "Reshape", 0
			out = []graph.Tensor{{Bytes: min(7, b.TensorAt(in[0]).Bytes)}}
		}
		var waits []graph.OpID
		if i > 0 && rng.IntN(4) == 0 {
			waits = append(waits, graph.OpID(rng.IntN(i)))
		}
		id := b.Op(o, in, out...)
		for _, w := range waits {
			b.Control(w, id)
		}
		for k := range out {
			made = append(made, b.Output(id, k))
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", 1+rng.IntN(3), false)
	if err != nil {
		t.Fatal(err)
	}
	s := throughput.Source{Graph: g, Machine: m}
	for d := range m.Devices {
		m.Devices[d].Memory = 400
	}
	for range m.NumDevices() {
		seconds := make([]float64, g.NumOps())
		for i := range seconds {
			seconds[i] = 1 + rng.Float64()
		}
		s.Seconds = append(s.Seconds, seconds)
	}
	return s
}

// TestPeaksOfAPipeline runs a pipeline sample after sample, holding and letting go of
// memory one tensor at a time, and compares what devices held at most, once the
// pipeline was full, with the peaks.
func TestPeaksOfAPipeline(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	several := 0
	for c := range 400 {
		s := operators(t, rng)
		x, err := throughput.New(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		e, err := throughput.NewEvaluator(s)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			device := make([]uint8, s.Graph.NumOps())
			for i := range device {
				device[i] = uint8(rng.IntN(s.Machine.NumDevices()))
			}
			want := runPipeline(s.Graph, device, s.Machine.NumDevices())
			got, over := x.Evaluate(x.Gather(device)), int64(0)
			for d := range want {
				if got.Loads[d].Bytes != want[d] {
					t.Fatalf("case %d, placement %v: device %d peaks at %d, a pipeline run holds %d", c, device, d, got.Loads[d].Bytes, want[d])
				}
				if d > 0 && want[d] > 0 {
					several++
				}
				if sum := resident(s.Graph, device, d); want[d] < sum {
					t.Fatalf("case %d: device %d peaks at %d, below its resident %d", c, d, want[d], sum)
				}
				over += max(0, want[d]-int64(s.Machine.Devices[d].Memory))
			}
			if score := e.Evaluate(plan.Decision{Device: device}); got.Overflow != over || int64(score.Overflow) != over {
				t.Fatalf("case %d: %d over by the loads, %d by the evaluator, want %d", c, got.Overflow, score.Overflow, over)
			}
		}
	}
	if several < 400 {
		t.Errorf("only %d cases used a second device", several)
	}
}

func resident(g *graph.Graph, device []uint8, d int) (sum int64) {
	for i := range device {
		if int(device[i]) == d {
			sum += int64(g.Op(graph.OpID(i)).Resident)
		}
	}
	return sum
}

// held is one tensor of one sample on one device.
type held struct {
	tensor graph.TensorID
	sample int
	device uint8
}

// runPipeline is the definition in docs/memory.md, run literally: samples enter one a
// period, every device runs its ops of a period one by one, and memory is counted
// after each.
func runPipeline(g *graph.Graph, device []uint8, devices int) []int64 {
	n := g.NumOps()
	level := naiveLevels(g, device)
	deepest := 0
	for _, l := range level {
		deepest = max(deepest, l)
	}
	samples := 3*deepest + 4
	viewOf := func(i graph.OpID) graph.TensorID {
		if g.Op(i).Kind == "Reshape" {
			return g.Inputs(i)[0]
		}
		return -1
	}
	// A tensor on a device is in memory until nobody there will read it or a view of
	// it, and until it has left.
	done := map[[2]int]bool{}
	ran := func(i graph.OpID, sample int) bool { return done[[2]int{int(i), sample}] }
	var needed func(h held, period int) bool
	needed = func(h held, period int) bool {
		producer := g.Tensor(h.tensor).Producer
		for _, v := range g.Consumers(h.tensor) {
			if device[v] != h.device {
				if device[producer] == h.device && h.sample+level[producer] >= period {
					return true
				}
				continue
			}
			if !ran(v, h.sample) {
				return true
			}
			if viewOf(v) == h.tensor {
				first, _ := g.Outputs(v)
				if needed(held{first, h.sample, h.device}, period) {
					return true
				}
			}
		}
		return false
	}
	in := map[held]bool{}
	peak := make([]int64, devices)
	for period := range samples + deepest {
		steady := period >= 2*deepest+2 && period < samples
		// What crosses in this period arrives at once.
		for i := range graph.OpID(n) {
			sample := period - level[i]
			first, end := g.Outputs(i)
			for t := first; t < end && sample >= 0 && sample < samples; t++ {
				for _, v := range g.Consumers(t) {
					if device[v] != device[i] {
						in[held{t, sample, device[v]}] = true
					}
				}
			}
		}
		for d := range uint8(devices) {
			for l := deepest; l >= 0; l-- {
				for i := range graph.OpID(n) {
					sample := period - l
					if device[i] != d || level[i] != l || sample < 0 || sample >= samples {
						continue
					}
					first, end := g.Outputs(i)
					for t := first; t < end; t++ {
						if !g.Tensor(t).Resident && (t != first || viewOf(i) < 0) {
							in[held{t, sample, d}] = true
						}
					}
					bytes := int64(g.Op(i).Workspace) + resident(g, device, int(d))
					for h := range in {
						if h.device == d {
							bytes += int64(g.Tensor(h.tensor).Bytes)
						}
					}
					if steady {
						peak[d] = max(peak[d], bytes)
					}
					done[[2]int{int(i), sample}] = true
					for h := range in {
						if h.device == d && !needed(h, period) {
							delete(in, h)
						}
					}
				}
			}
		}
		for h := range in { // what has left
			if !needed(h, period+1) {
				delete(in, h)
			}
		}
	}
	return peak
}

// naiveLevels finds levels by trying: first the lowest, then the latest of those ops
// that make at least what they read, from the last op to the first.
func naiveLevels(g *graph.Graph, device []uint8) []int {
	n := g.NumOps()
	level := make([]int, n)
	least := func(i graph.OpID, p graph.OpID) int {
		if device[i] != device[p] {
			return level[p] + 1
		}
		return level[p]
	}
	for i := range graph.OpID(n) {
		for p := range g.Predecessors(i) {
			level[i] = max(level[i], least(i, p))
		}
	}
	for i := graph.OpID(n - 1); i >= 0; i-- {
		reads, makes := map[graph.TensorID]units.Bytes{}, units.Bytes(0)
		for _, t := range g.Inputs(i) {
			if !g.Tensor(t).Resident {
				reads[t] = g.Tensor(t).Bytes
			}
		}
		for _, b := range reads {
			makes -= b
		}
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			if !g.Tensor(t).Resident {
				makes += g.Tensor(t).Bytes
			}
		}
		if makes < 0 {
			continue
		}
		followed := false
		latest := n + 1
		for v := range graph.OpID(n) {
			for p := range g.Predecessors(v) {
				if p == i {
					followed = true
					room := level[v]
					if device[v] != device[i] {
						room--
					}
					latest = min(latest, room)
				}
			}
		}
		if followed {
			level[i] = latest
		}
	}
	return level
}
