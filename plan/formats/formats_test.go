package formats_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/hw"
	"placer/plan"
	"placer/plan/formats"
)

// small is a step of a small decoder of n layers.
func small(t testing.TB, n int) *graph.Graph {
	t.Helper()
	x, err := decoder.ImportConfig(fmt.Appendf(nil, `{"model_type": "llama", "num_hidden_layers": %d, "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 32, "vocab_size": 64}`, n), "tiny", decoder.Options{Dims: map[string]int64{"seq": 4}})
	if err != nil {
		t.Fatal(err)
	}
	return x.Graph
}

func machine(t testing.TB, gpus int) *hw.Machine {
	t.Helper()
	m, err := hw.Load("a100")
	if err == nil {
		m, err = m.Take(gpus, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// split puts the parts of g on stages that begin at bounds.
func split(t testing.TB, g *graph.Graph, m *hw.Machine, bounds ...int) *formats.Split {
	t.Helper()
	parts, err := formats.FindParts(g)
	if err != nil {
		t.Fatal(err)
	}
	s := &formats.Split{Graph: g, Machine: m, Parts: parts, Device: make([]uint8, len(parts.List))}
	order := m.Accelerators()
	for k := range s.Device {
		for j, b := range bounds {
			if k >= b {
				s.Device[k] = order[j]
			}
		}
	}
	return s
}

func TestParts(t *testing.T) {
	parts, err := formats.FindParts(small(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	want := []formats.Part{{"model.embed_tokens", -1}, {"model.layers.0", 0}, {"model.layers.1", 1}, {"model.layers.2", 2}, {"model.norm", -1}, {"lm_head", -1}}
	if !slices.Equal(parts.List, want) || parts.Layers() != 3 {
		t.Errorf("parts %v", parts.List)
	}
	b := graph.NewBuilder("bare")
	b.Op(graph.Op{Name: "a", Kind: "Relu", Forward: graph.None}, nil)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := formats.FindParts(g); !errors.Is(err, formats.ErrNoModules) {
		t.Errorf("a graph without modules: %v", err)
	}
}

// What each target writes is what its documentation says, and reads back as the same
// placement.
func TestRoundTrips(t *testing.T) {
	g, m := small(t, 5), machine(t, 3)
	s := split(t, g, m, 0, 3, 5)
	for name, want := range map[string]string{
		"accelerate":       "{\n  \"model.embed_tokens\": 0,\n  \"model.layers.0\": 0,\n  \"model.layers.1\": 0,\n  \"model.layers.2\": 1,\n  \"model.layers.3\": 1,\n  \"model.layers.4\": 2,\n  \"model.norm\": 2,\n  \"lm_head\": 2\n}\n",
		"jax":              "{\"format\": \"placer jax 1\",\n\"device\": {\n  \"model.embed_tokens\": 0,",
		"vllm":             "VLLM_PP_LAYER_PARTITION=2,2,1 vllm serve MODEL --pipeline-parallel-size 3\n",
		"llama.cpp":        "llama-server -m MODEL.gguf -ngl 6 -sm layer -ts 2,2,2\n",
		"torch-pipelining": "{\n  \"split_spec\": {\n    \"model.layers.2\": \"BEGINNING\",\n    \"model.layers.4\": \"BEGINNING\"\n  },\n  \"stages\": 3\n}\n",
		"deepspeed":        `{"layers":["model.embed_tokens","model.layers.0","model.layers.1","model.layers.2","model.layers.3","model.layers.4","model.norm","lm_head"],"parts":[0,3,5,8],"num_stages":3}` + "\n",
	} {
		target, err := formats.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := target.Write(&b, s); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%s: %v, wrote %q", name, err, b.String())
			continue
		}
		if is, ok := formats.IsTarget(b.Bytes()); !ok || is.Name != name {
			t.Errorf("%s is taken for %s", name, is.Name)
		}
		p, err := formats.Read(b.Bytes(), "f", g, m)
		if err != nil || p.Method != name || !slices.Equal(p.Device, s.Parts.Spread(g, s.Device)) {
			t.Errorf("%s: read back: %v", name, err)
		}
	}
	if len(formats.Targets()) != 6 {
		t.Error("a target is not tested")
	}
}

// placer's own plans are read by the same function.
func TestOwn(t *testing.T) {
	g, m := small(t, 2), machine(t, 2)
	p := &plan.Plan{Graph: g.Hash(), Machine: m.Name, Method: "x", Decision: plan.Decision{Device: make([]uint8, g.NumOps())}}
	f, err := p.File(g, m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	if _, other := formats.IsTarget(b.Bytes()); other {
		t.Error("a plan is taken for another program's")
	}
	if got, err := formats.Read(b.Bytes(), "f", g, m); err != nil || got.Method != "x" {
		t.Errorf("%v", err)
	}
}

// Forms that people write by hand: ancestors, modules below blocks, quoted numbers,
// layers on the CPU.
func TestWrittenByOthers(t *testing.T) {
	g, m := small(t, 4), machine(t, 2)
	cpu := uint8(2)
	for text, want := range map[string][]uint8{
		`{"model.layers": 1, "": 0}`:                                 {0, 1, 1, 1, 1, 0, 0},
		`{"model": "cuda:1", "lm_head": "cpu", "model.layers.1": 0}`: {1, 1, 0, 1, 1, 1, cpu},
		`{"model.embed_tokens": 0, "model.layers": 0, "model.norm": 0, "lm_head": 1, "model.layers.3.self_attn": 1}`: {0, 0, 0, 0, 0, 0, 1},
		`export VLLM_PP_LAYER_PARTITION="1,3"`:                                                       {0, 0, 1, 1, 1, 1, 1},
		"llama-cli -m x.gguf -ngl 3 --tensor-split 1,2":                                              {cpu, cpu, cpu, 0, 1, 1, 1},
		"llama-cli -m x.gguf -ngl 0":                                                                 {cpu, cpu, cpu, cpu, cpu, cpu, cpu},
		"CUDA_VISIBLE_DEVICES=0,1 ./bin/llama-server -m llama.gguf \\\n  -ngl all -ts 1,4 -sm layer": {0, 0, 1, 1, 1, 1, 1},
		"VLLM_PP_LAYER_PARTITION=0,4":                                                                {0, 1, 1, 1, 1, 1, 1},
		"VLLM_PP_LAYER_PARTITION=4,0":                                                                {0, 0, 0, 0, 0, 1, 1},
		`{"split_spec": {"model.layers.1": "END"}}`:                                                  {0, 0, 0, 1, 1, 1, 1},
		`{"split_spec": {"model.layers.1": "END", "lm_head": "END"}}`:                                {0, 0, 0, 1, 1, 1, 1},
		`{"split_spec": {"model": "END"}}`:                                                           {0, 0, 0, 0, 0, 0, 1},
		`{"split_spec": {"lm_head": "BEGINNING"}}`:                                                   {0, 0, 0, 0, 0, 0, 1},
	} {
		p, err := formats.Read([]byte(text), "f", g, m)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		parts, err := formats.FindParts(g)
		if err != nil {
			t.Fatal(err)
		}
		if got := parts.Majority(p.Device, nil); !slices.Equal(got, want) {
			t.Errorf("%s: parts on %v, want %v", text, got, want)
		}
	}
}

// TestSharesOfMemory: without -ts, or with nothing but zeros, llama.cpp shares layers out by
// the GPUs' memory; a GPU that -ts does not name gets none.
func TestSharesOfMemory(t *testing.T) {
	g, m := small(t, 4), machine(t, 2)
	m.Devices[0].Memory = 3 * m.Devices[1].Memory // four layers and the output in five places
	for text, want := range map[string][]uint8{
		"llama-server -ngl 99":         {0, 0, 0, 0, 0, 1, 1},
		"llama-server -ngl 99 -ts 0,0": {0, 0, 0, 0, 0, 1, 1},
		"llama-server -ngl 99 -ts 1":   {0, 0, 0, 0, 0, 0, 0},
		"llama-server -ngl 99 -ts 1,1": {0, 0, 0, 0, 1, 1, 1},
	} {
		p, err := formats.Read([]byte(text), "f", g, m)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := formats.FindParts(g)
		if err != nil {
			t.Fatal(err)
		}
		if got := parts.Majority(p.Device, nil); !slices.Equal(got, want) {
			t.Errorf("%s: parts on %v, want %v", text, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	g, m := small(t, 4), machine(t, 2)
	for text, want := range map[string]string{
		`{"model": 7}`:                                        `f: accelerate: module "model": device "7" is none of machine a100`,
		`{"model": 0}`:                                        `f: accelerate: no device for module "lm_head"`,
		`{"encoder": 0}`:                                      `f: accelerate: no device for module "model.embed_tokens"`,
		"VLLM_PP_LAYER_PARTITION=2,3":                         "f: vllm: 5 layers, the graph has 4",
		"VLLM_PP_LAYER_PARTITION=2,1,1":                       "f: vllm: 3 stages, machine a100 has 2 accelerators",
		"llama-server -ngl 9 -ts 1,1,1":                       `f: llama.cpp: share 2 of -ts is "1", machine a100 has 2 GPUs`,
		"llama-server -ngl auto":                              `f: llama.cpp: -ngl "auto": want a number of layers, or all`,
		"llama-server -ngl 9 -sm row":                         `f: llama.cpp: "-sm row" is not read: want layers split over the GPUs in their order`,
		"llama-server -ngl 9 -dev CUDA1":                      `f: llama.cpp: "-dev CUDA1" is not read`,
		`{"split_spec": {"model.embed_tokens": "BEGINNING"}}`: "f: torch-pipelining: the stage before model.embed_tokens is empty",
		`{"split_spec": {"model.layers.0": "END", "model.layers.1": "BEGINNING"}}`: "f: torch-pipelining: the stage before model.layers.1 is empty",
		`{"split_spec": {"x": "BEGINNING"}}`:                                       `f: torch-pipelining: module "x" is no part of the graph and has none in it`,
		`{"num_stages": 2, "parts": [0, 9]}`:                                       "f: deepspeed: parts [0 9], want numbers from 0 to the graph's 7, ascending",
		"?":                                                                        "f: line 1",
	} {
		if _, err := formats.Read([]byte(text), "f", g, m); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	s := split(t, g, m, 0, 3)
	s.Device[1] = 1
	for _, target := range formats.Targets() {
		if err := target.Legal(s); (err != nil) != target.Stages {
			t.Errorf("%s: parts in no order of stages: %v", target.Name, err)
		}
	}
	vllm, err := formats.Find("vllm")
	if err != nil {
		t.Fatal(err)
	}
	s = split(t, g, m, 0, 6) // the head alone
	if err := vllm.Legal(s); err == nil || err.Error() != "lm_head is not on the device of the layer beside it" {
		t.Errorf("the head alone: %v", err)
	}
}

// FuzzRead: no input panics, and every error is one line that begins with the file's name.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"model": 0, "lm_head": "cpu"}`, "VLLM_PP_LAYER_PARTITION=1,1", "llama-server -ngl 3 -ts 1,1", `llama-server -ngl 9 -ncmoe 1 -ot "blk\.1\.ffn_.*_exps=CPU" -ot 'x=CUDA1'`, `{"split_spec": {"model.layers.1": "BEGINNING"}}`, `{"num_stages": 2, "parts": [0, 2, 5]}`, `{"format": "placer jax 1", "device": {"": 0}}`} {
		f.Add([]byte(text))
	}
	g, m := mixture(f, 2, 4), machine(f, 2)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := formats.Read(data, "f", g, m)
		if err == nil && p == nil || err != nil && (!strings.HasPrefix(err.Error(), "f: ") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q", fmt.Sprint(err))
		}
	})
}

// TestPartsInForwardOrder: where all weights come first, parts stand as they run all the same,
// those without weights among them.
func TestPartsInForwardOrder(t *testing.T) {
	b := graph.NewBuilder("net")
	weight := func(module string) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: module + ".weight", Module: module, Kind: "VariableV2", Resident: 8, Forward: graph.None}, nil, graph.Tensor{Bytes: 8, Resident: true}), 0)
	}
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{Bytes: 8}), 0)
	conv, fc := weight("conv"), weight("fc")
	for _, l := range []struct {
		module string
		in     []graph.TensorID
	}{{"conv", []graph.TensorID{conv}}, {"relu", nil}, {"fc", []graph.TensorID{fc}}} {
		x = b.Output(b.Op(graph.Op{Name: l.module, Module: l.module, Kind: "MatMul", Forward: graph.None}, append(l.in, x), graph.Tensor{Bytes: 8}), 0)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := formats.FindParts(g)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range parts.List {
		got = append(got, p.Path)
	}
	if !slices.Equal(got, []string{"conv", "relu", "fc"}) {
		t.Errorf("parts %v", got)
	}
}
