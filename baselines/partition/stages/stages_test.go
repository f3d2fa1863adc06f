package stages_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"placer/baselines/partition/stages"
	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/plan/formats"
)

// small is the problem of a decoder of n layers on so many GPUs, by the largest load.
func small(t *testing.T, n, gpus int) *problem.Problem { return tiny(t, n, 512, gpus) }

// tiny is small with an output of so many words.
func tiny(t *testing.T, n, vocab, gpus int) *problem.Problem {
	t.Helper()
	x, err := decoder.ImportConfig(fmt.Appendf(nil, `{"model_type": "llama", "num_hidden_layers": %d, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": %d}`, n, vocab), "tiny", decoder.Options{Dims: map[string]int64{"batch": 4, "seq": 64}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Load("a100")
	if err == nil {
		m, err = m.Take(gpus, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := problem.New(problem.Source{Graph: x.Graph}, m, problem.Options{Objective: plan.Throughput})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// counts returns how many layers each device has.
func counts(t *testing.T, p *problem.Problem, device []uint8) []int {
	t.Helper()
	parts, err := formats.FindParts(p.Graph)
	if err != nil {
		t.Fatal(err)
	}
	n := make([]int, p.Machine.NumDevices())
	for k, d := range parts.Majority(device, nil) {
		if parts.List[k].Layer >= 0 {
			n[d]++
		}
	}
	return n
}

// The published rules: vLLM's remainder goes before the last stage, torchtitan counts
// embedding and output, llama.cpp the output, accelerate fills the first device.
func TestRivals(t *testing.T) {
	p := small(t, 10, 4)
	for _, c := range []struct {
		method plan.Placer
		want   []int
	}{
		{stages.VLLM(), []int{2, 3, 3, 2}}, {stages.TorchTitan(), []int{2, 3, 3, 2}}, {stages.LlamaCPP(), []int{3, 3, 3, 1}}, {stages.Accelerate(), []int{10, 0, 0, 0}},
	} {
		out, err := c.method.Place(context.Background(), &p.Problem)
		if err != nil {
			t.Fatal(err)
		}
		if got := counts(t, p, out.Device); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v layers, want %v", c.method.Name(), got, c.want)
		}
	}
}

// With few layers the embedding of torchtitan's first stage and the output of its last are
// alone on them; llama.cpp's output is on the GPU behind that of the last layer where its share
// says so, and GPUs behind it have nothing.
func TestRivalsWithFewLayers(t *testing.T) {
	for _, c := range []struct {
		method       plan.Placer
		layers, gpus int
		want         []uint8 // of embedding, layers, norm, head
	}{
		{stages.TorchTitan(), 10, 8, []uint8{0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7}},
		{stages.TorchTitan(), 2, 4, []uint8{0, 1, 2, 3, 3}},
		{stages.TorchTitan(), 2, 8, []uint8{0, 1, 2, 3, 3}},
		{stages.TorchTitan(), 2, 1, []uint8{0, 0, 0, 0, 0}},
		{stages.LlamaCPP(), 3, 4, []uint8{0, 0, 1, 2, 3, 3}},
		{stages.LlamaCPP(), 1, 2, []uint8{0, 0, 1, 1}},
		{stages.LlamaCPP(), 2, 4, []uint8{0, 0, 1, 2, 2}},
		{stages.LlamaCPP(), 1, 1, []uint8{0, 0, 0, 0}},
		{stages.VLLM(), 2, 4, []uint8{0, 0, 1, 1, 1}},
	} {
		p := small(t, c.layers, c.gpus)
		out, err := c.method.Place(context.Background(), &p.Problem)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := formats.FindParts(p.Graph)
		if err != nil {
			t.Fatal(err)
		}
		if got := parts.Majority(out.Device, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s, %d layers on %d GPUs: parts on %v, want %v", c.method.Name(), c.layers, c.gpus, got, c.want)
		}
	}
}

// The best contiguous split is no worse than any split of the bounds, and the rivals.
func TestLayers(t *testing.T) {
	p := small(t, 6, 3)
	out, err := stages.Layers().Place(context.Background(), &p.Problem)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := formats.FindParts(p.Graph)
	if err != nil {
		t.Fatal(err)
	}
	best := out.Score
	n := len(parts.List)
	for a := 1; a < n; a++ {
		for b := a + 1; b < n; b++ {
			device := make([]uint8, n)
			for k := range device {
				if k >= b {
					device[k] = 2
				} else if k >= a {
					device[k] = 1
				}
			}
			if s := p.Evaluate(parts.Spread(p.Graph, device)); s.Better(best) {
				t.Errorf("bounds %d and %d: %v, the method has %v", a, b, s.Value, best.Value)
			}
		}
	}
}

// The nearest legal plan of one that is legal is no worse; of one that is not it is
// legal, and uses as many devices.
func TestNearest(t *testing.T) {
	p := small(t, 6, 3)
	parts, err := formats.FindParts(p.Graph)
	if err != nil {
		t.Fatal(err)
	}
	mixed := make([]uint8, p.Graph.NumOps())
	for i := range mixed {
		mixed[i] = uint8(int(parts.Of[i]) % 2)
	}
	for _, target := range formats.Targets() {
		out, s, err := stages.Nearest(context.Background(), &p.Problem, target, mixed)
		if err != nil {
			t.Fatal(err)
		}
		if err := target.Legal(s); err != nil {
			t.Errorf("%s: %v", target.Name, err)
		}
		used := slices.Compact(slices.Sorted(slices.Values(s.Device)))
		if len(used) != 2 || !slices.Equal(s.Spread(), out.Device) {
			t.Errorf("%s: uses devices %v", target.Name, used)
		}
		if got := p.Evaluate(out.Device); target.Stages && got != out.Score {
			t.Errorf("%s: judged %v, says %v", target.Name, got, out.Score)
		}
	}
}

// What Search finds is legal, no worse than the nearest plan, written and read back
// equal, and stays as it is when the nearest plan to it is asked for.
func TestSearch(t *testing.T) {
	p := small(t, 7, 3)
	parts, err := formats.FindParts(p.Graph)
	if err != nil {
		t.Fatal(err)
	}
	mixed := make([]uint8, p.Graph.NumOps())
	for i := range mixed {
		mixed[i] = uint8(int(parts.Of[i]) % 3)
	}
	for _, target := range formats.Targets() {
		near, _, err := stages.Nearest(context.Background(), &p.Problem, target, mixed)
		if err != nil {
			t.Fatal(err)
		}
		out, err := stages.Search(context.Background(), &p.Problem, target, mixed)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Evaluate(out.Device); got != out.Score || p.Evaluate(near.Device).Better(got) {
			t.Errorf("%s: judged %v, says %v, nearest %v", target.Name, got, out.Score, p.Evaluate(near.Device))
		}
		s := target.Nearest(p.Graph, p.Machine, parts, out.Device, nil)
		var text bytes.Buffer
		if err := target.Write(&text, s); err != nil {
			t.Errorf("%s: %v", target.Name, err)
			continue
		}
		back, err := formats.Read(text.Bytes(), "out", p.Graph, p.Machine)
		if err != nil || !slices.Equal(back.Device, out.Device) {
			t.Errorf("%s: read back otherwise: %v", target.Name, err)
		}
		again, _, err := stages.Nearest(context.Background(), &p.Problem, target, out.Device)
		if err != nil || !slices.Equal(again.Device, out.Device) {
			t.Errorf("%s: the nearest plan to it is another (%v)", target.Name, err)
		}
	}
}

// llama.cpp counts the output as a layer behind the last, which may have a GPU of its own: its
// search finds that where it is best, and is no worse than any split that is legal. vLLM's
// stages all have layers.
func TestSearchOutputAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		vocab  int
		llama  string // ends so
		legal  int    // splits of embedding, four layers, norm and head on three GPUs in a row
		always bool   // the output is with the last layer
	}{
		{"llama.cpp", 1 << 20, "-ts 4,1,0\n", 11, false},
		{"llama.cpp", 512, "", 11, true},
		{"vllm", 1 << 20, "", 7, true},
	} {
		p := tiny(t, 4, c.vocab, 3)
		g := p.Graph
		target, err := formats.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := formats.FindParts(g)
		if err != nil {
			t.Fatal(err)
		}
		out, err := stages.Search(context.Background(), &p.Problem, target, make([]uint8, g.NumOps()))
		if err != nil {
			t.Fatal(err)
		}
		n, legal := len(parts.List), 0
		for a := 1; a <= n; a++ {
			for b := a; b <= n; b++ {
				if a == b && a < n {
					continue
				}
				s := &formats.Split{Graph: g, Machine: p.Machine, Parts: parts, Device: make([]uint8, n)}
				for k := range n {
					if k >= b {
						s.Device[k] = 2
					} else if k >= a {
						s.Device[k] = 1
					}
				}
				if target.Legal(s) != nil {
					continue
				}
				legal++
				if x := p.Evaluate(s.Spread()); x.Better(out.Score) {
					t.Errorf("%s, vocabulary %d: bounds %d and %d: %v, found %v", c.name, c.vocab, a, b, x.Value, out.Score.Value)
				}
			}
		}
		if legal != c.legal {
			t.Errorf("%s: %d legal splits, want %d", c.name, legal, c.legal)
		}
		s := target.Nearest(g, p.Machine, parts, out.Device, nil)
		if alone := s.Device[n-1] != s.Device[n-3]; alone == c.always {
			t.Errorf("%s, vocabulary %d: parts on %v", c.name, c.vocab, s.Device)
		}
		var text bytes.Buffer
		if err := target.Write(&text, s); err != nil || !strings.HasSuffix(text.String(), c.llama) {
			t.Fatalf("%s: %v: wrote %s", c.name, err, &text)
		}
		if back, err := formats.Read(text.Bytes(), "out", g, p.Machine); err != nil || !slices.Equal(back.Device, out.Device) {
			t.Errorf("%s reads back otherwise: %v", &text, err)
		}
	}
}

// For accelerate, JAX and llama.cpp a machine has one CPU: of several the plan that they can take
// is on the first, and is written.
func TestSearchOnCPUs(t *testing.T) {
	m, err := hw.Take("a100", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	cpu := m.Devices[m.Host()]
	cpu.Name = "cpu:"
	if m, err = hw.Star("cores", "", []hw.Spokes{{Count: 2, Device: cpu}}, 1e12, 1e-9); err != nil {
		t.Fatal(err)
	}
	p, err := problem.New(problem.Source{Graph: small(t, 3, 1).Graph}, m, problem.Options{Objective: plan.Throughput})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := formats.FindParts(p.Graph)
	if err != nil {
		t.Fatal(err)
	}
	half := make([]uint8, p.Graph.NumOps())
	for i := range half {
		half[i] = uint8(parts.Of[i] % 2)
	}
	for _, name := range []string{"accelerate", "jax", "llama.cpp"} {
		target, err := formats.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		out, err := stages.Search(context.Background(), &p.Problem, target, half)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := target.Write(&text, target.Nearest(p.Graph, m, parts, out.Device, nil)); err != nil || slices.Max(out.Device) != 0 {
			t.Errorf("%s: on %v: %v", name, out.Device, err)
		}
	}
}

// TestNearestOfOps: a target that places single ops divides three layers over two devices
// more evenly than one that places modules, in contiguous stages, with each weight where it
// is read first.
func TestNearestOfOps(t *testing.T) {
	p := small(t, 3, 2)
	half := make([]uint8, p.Graph.NumOps())
	for i := len(half) / 2; i < len(half); i++ {
		half[i] = 1
	}
	value := map[bool]float64{}
	for _, ops := range []bool{false, true} {
		out, _, err := stages.Nearest(context.Background(), &p.Problem, formats.Target{Name: "t", Stages: true, Ops: ops}, half)
		if err != nil {
			t.Fatal(err)
		}
		value[ops] = p.Evaluate(out.Device).Value
		if !ops {
			continue
		}
		for i := range graph.OpID(p.Graph.NumOps()) {
			first, end := p.Graph.Outputs(i)
			for x := first; x < end; x++ {
				readers := p.Graph.Consumers(x)
				for _, c := range readers {
					if out.Device[c] < out.Device[i] {
						t.Errorf("%s of stage 1 goes back to %s", p.Graph.Op(i).Name, p.Graph.Op(c).Name)
					}
				}
				if len(p.Graph.Inputs(i)) == 0 && len(readers) > 0 && out.Device[readers[0]] != out.Device[i] {
					t.Errorf("%s is on %d, %s, which reads it first, on %d", p.Graph.Op(i).Name, out.Device[i], p.Graph.Op(readers[0]).Name, out.Device[readers[0]])
				}
			}
		}
	}
	if value[true] > 0.95*value[false] {
		t.Errorf("largest load %g s by ops, %g s by modules", value[true], value[false])
	}
}
