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
	"placer/units"
)

// mixture is the problem of a step of a mixture of experts, of 8 layers, on so many GPUs that
// hold that share of its weights each, beside a CPU.
func mixture(t *testing.T, gpus int, share float64, dims map[string]int64) *problem.Problem {
	t.Helper()
	x, err := decoder.ImportConfig([]byte(`{"model_type": "mixtral", "num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2048, "vocab_size": 1024, "num_local_experts": 4}`), "mixture", decoder.Options{Dims: dims})
	if err != nil {
		t.Fatal(err)
	}
	g := x.Graph
	m, err := hw.Load("a100")
	if err == nil {
		m, err = m.Take(gpus, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	var held units.Bytes
	for i := range graph.OpID(g.NumOps()) {
		held += g.Op(i).Resident
	}
	for i := range m.Devices {
		if m.Devices[i].Kind == hw.GPU {
			m.Devices[i].Memory = units.Bytes(share * float64(held))
		}
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A mixture of experts that the GPUs cannot hold gets a plan for llama.cpp that fits: with
// experts on the CPU that is no worse than --n-cpu-moe and than whole layers on the CPU, is
// written, and reads back as it is.
func TestExpertsOnTheHost(t *testing.T) {
	target, err := formats.Find("llama.cpp")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		gpus    int
		share   float64
		serving map[string]int64
		writes  string
	}{
		{1, 0.5, map[string]int64{"seq": 1, "past": 2048}, " -ot "},
		{2, 0.35, map[string]int64{"seq": 1, "past": 2048}, " -ot "},
		{1, 0.6, map[string]int64{"seq": 512}, "-ngl "},
		{1, 2, map[string]int64{"seq": 512}, "-ngl 9 -sm layer -ts 9\n"},
	} {
		t.Run(fmt.Sprintf("%d GPUs of %v, %d tokens", c.gpus, c.share, c.serving["seq"]), func(t *testing.T) {
			p := mixture(t, c.gpus, c.share, c.serving)
			out, err := stages.Search(context.Background(), &p.Problem, target, make([]uint8, p.Graph.NumOps()))
			if err != nil {
				t.Fatal(err)
			}
			score := p.Evaluate(out.Device)
			if !score.Feasible() || score != out.Score {
				t.Fatalf("judged %v, says %v", score, out.Score)
			}
			rival, err := stages.CPUExperts().Place(context.Background(), &p.Problem)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v s, --n-cpu-moe %v s", score.Value, rival.Score.Value)
			if !rival.Score.Feasible() || rival.Score.Better(score) {
				t.Errorf("%+v, --n-cpu-moe has %+v", score, rival.Score)
			}
			parts, err := formats.FindParts(p.Graph)
			if err != nil {
				t.Fatal(err)
			}
			for n := range parts.Layers() { // -ngl: so many layers on the CPU
				device := make([]uint8, len(parts.List))
				for k, x := range parts.List {
					if n > 0 && (x.Layer >= 0 && x.Layer < n || x.Path == "model.embed_tokens") {
						device[k] = uint8(c.gpus)
					} else if c.gpus > 1 && x.Layer < 0 || x.Layer > (parts.Layers()+n)/2 {
						device[k] = uint8(c.gpus - 1)
					}
				}
				if s := p.Evaluate(parts.Spread(p.Graph, device)); s.Better(score) {
					t.Errorf("%+v, %d layers on the CPU have %+v", score, n, s)
				}
			}
			split := target.Nearest(p.Graph, p.Machine, parts, out.Device, nil)
			var text bytes.Buffer
			if err := target.Write(&text, split); err != nil || !strings.Contains(text.String(), c.writes) {
				t.Fatalf("%v: wrote %s", err, &text)
			}
			back, err := formats.Read(text.Bytes(), "out", p.Graph, p.Machine)
			if err != nil || !slices.Equal(back.Device, out.Device) {
				t.Errorf("%s reads back otherwise: %v", &text, err)
			}
			again, _, err := stages.Nearest(context.Background(), &p.Problem, target, out.Device)
			if err != nil || !slices.Equal(again.Device, out.Device) {
				t.Errorf("the nearest plan to it is another (%v)", err)
			}
		})
	}
}

// A dense model that the GPU cannot hold has its first layers on the CPU, as few as fit.
func TestLayersOnTheHost(t *testing.T) {
	target, err := formats.Find("llama.cpp")
	if err != nil {
		t.Fatal(err)
	}
	x, err := decoder.ImportConfig([]byte(`{"model_type": "llama", "num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2048, "vocab_size": 1024}`), "dense", decoder.Options{Dims: map[string]int64{"seq": 1, "past": 64}})
	if err != nil {
		t.Fatal(err)
	}
	g := x.Graph
	m, err := hw.Load("a100")
	if err == nil {
		m, err = m.Take(1, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.Devices[0].Memory = 80e6 // a layer has 16.8 MB, eight 134 MB
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{Objective: plan.Step})
	if err != nil {
		t.Fatal(err)
	}
	out, err := stages.Search(context.Background(), &p.Problem, target, make([]uint8, g.NumOps()))
	if err != nil {
		t.Fatal(err)
	}
	if n := counts(t, p, out.Device); !out.Score.Feasible() || n[0] != 4 || n[1] != 4 {
		t.Errorf("%v layers on the devices, %+v", n, out.Score)
	}
}
