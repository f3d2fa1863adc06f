package rules

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"placer/baselines/conformance"
	"placer/graph"
	"placer/graph/train"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

func TestAssign(t *testing.T) {
	for _, c := range []struct {
		name    string
		compute []float64
		d       int
		want    []int32
	}{
		{"a layer per device", []float64{1, 1, 1, 5}, 4, []int32{0, 1, 2, 3}},
		{"fewer layers than devices", []float64{1, 2}, 8, []int32{0, 1}},
		{"even layers in equal counts", []float64{1, 1, 1, 1, 1, 1, 1, 9}, 4, []int32{0, 0, 1, 1, 2, 2, 3, 3}},
		{"even layers that do not divide", []float64{3, 1, 1, 1, 3}, 2, []int32{0, 0, 0, 1, 1}},
		{"uneven layers by compute", []float64{1, 8, 1, 1, 1, 1, 1, 1}, 2, []int32{0, 0, 1, 1, 1, 1, 1, 1}},
		{"one device", []float64{1, 5, 1, 9}, 1, []int32{0, 0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := assign(c.compute, c.d); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestBlocksAreBest compares with every way to cut.
func TestBlocksAreBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 1, 9).Draw(t, "weight")
		d := rapid.IntRange(1, 4).Draw(t, "d")
		block := blocks(weight, d)
		sums := make([]float64, d)
		for i, b := range block {
			if b < 0 || int(b) >= d || i > 0 && (b < block[i-1] || b > block[i-1]+1) {
				t.Fatalf("blocks %v are not contiguous", block)
			}
			sums[b] += weight[i]
		}
		if first := block[0]; len(weight) >= d && (first != 0 || int(block[len(block)-1]) != d-1) {
			t.Fatalf("blocks %v leave a device out", block)
		}
		if got, want := slices.Max(sums), lightest(weight, d); got > want*(1+1e-12) {
			t.Fatalf("heaviest block is %v, could be %v", got, want)
		}
	})
}

// lightest returns the least heaviest block of all cuts into at most d.
func lightest(weight []float64, d int) float64 {
	if len(weight) == 0 {
		return 0
	}
	best, sum := 0.0, 0.0
	for i := range weight {
		sum += weight[i]
		if d == 1 && i < len(weight)-1 {
			continue
		}
		x := max(sum, lightest(weight[i+1:], d-1))
		if best == 0 || x < best {
			best = x
		}
	}
	return best
}

func place(t *testing.T, g *graph.Graph, gpus int, cpu bool) (*plan.Outcome, *hw.Machine) {
	t.Helper()
	m, err := hw.Take("p100", gpus, cpu)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	p.Priority = nil
	out, err := Expert().Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return out, m
}

// TestLayerPerDevice: in a recurrent stack everything of a layer, its parameters
// and its update included, is on the layer's device.
func TestLayerPerDevice(t *testing.T) {
	g, err := workloads.Build("rnnlm:layers=4,unroll=2")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := place(t, g, 4, false)
	for i, d := range out.Device {
		if o := g.Op(graph.OpID(i)); o.Layer > 0 && o.Group == 0 && int32(d) != min(o.Layer, 4)-1 {
			t.Errorf("op %s of layer %d is on device %d", o.Name, o.Layer, d)
		}
	}
}

// TestHostStaysFree: an expert gives layers to GPUs alone.
func TestHostStaysFree(t *testing.T) {
	g, err := workloads.Build("rnnlm:layers=2,unroll=2")
	if err != nil {
		t.Fatal(err)
	}
	out, m := place(t, g, 2, true)
	for i, d := range out.Device {
		if m.Devices[d].Kind != hw.GPU {
			t.Fatalf("op %d is on %s", i, m.Devices[d].Name)
		}
	}
}

// TestImported cuts a training graph without layers once: the only tensors that
// cross are the activation at the cut and its gradient.
func TestImported(t *testing.T) {
	b := graph.NewBuilder("mlp")
	x := b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{64, 256}, Bytes: graph.Auto})
	at := b.Output(x, 0)
	for l := range 4 {
		v := b.Op(graph.Op{Name: fmt.Sprintf("w%d", l), Kind: "VariableV2", Params: 256 * 256, Resident: 4 * 256 * 256, Forward: graph.None}, nil,
			graph.Tensor{Shape: graph.Shape{256, 256}, Bytes: graph.Auto, Resident: true})
		m := graph.GEMM{Batch: 1, M: 64, N: 256, K: 256}
		f := b.Op(graph.Op{Name: fmt.Sprintf("f%d", l), Kind: "MatMul", GEMM: m, FLOPs: m.FLOPs(), Bytes: graph.Auto, Forward: graph.None}, []graph.TensorID{at, b.Output(v, 0)},
			graph.Tensor{Shape: graph.Shape{64, 256}, Bytes: graph.Auto})
		at = b.Output(f, 0)
	}
	b.Op(graph.Op{Name: "loss", Kind: "Sum", FLOPs: 64 * 256, Bytes: graph.Auto, Forward: graph.None}, []graph.TensorID{at}, graph.Tensor{Shape: graph.Shape{}, Bytes: graph.Auto})
	forward, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	g, err := train.Derive(forward, train.Config{Optimizer: train.Adam})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := place(t, g, 2, false)
	crossing, on := 0, map[uint8]int{}
	for i := range g.NumTensors() {
		x := g.Tensor(graph.TensorID(i))
		on[out.Device[x.Producer]]++
		for _, c := range g.Consumers(graph.TensorID(i)) {
			if out.Device[c] != out.Device[x.Producer] && x.Bytes > 1000 {
				crossing++
				break
			}
		}
	}
	if len(on) != 2 || crossing != 2 {
		t.Errorf("%d large tensors cross between %v, want the activation at the cut and its gradient", crossing, on)
	}
}

func TestTogether(t *testing.T) {
	c := conformance.Cases()[4] // groups
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	device := make([]uint8, p.Graph.NumOps())
	for i := range device {
		device[i] = uint8(i % p.Machine.NumDevices())
	}
	together(p.Graph, device, c.Costs.Micros)
	if err := (&plan.Plan{Decision: plan.Decision{Device: device}}).Check(p.Graph, p.Machine); err != nil {
		t.Error(err)
	}
	for i := range device {
		if p.Graph.Op(graph.OpID(i)).Group == 0 && device[i] != uint8(i%p.Machine.NumDevices()) {
			t.Errorf("op %d belongs to no group but moved", i)
		}
	}
}
