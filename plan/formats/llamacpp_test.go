package formats_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/plan/formats"
)

// mixture is a step of a small mixture of experts of n layers, with so many tokens.
func mixture(t testing.TB, n int, tokens int64) *graph.Graph {
	t.Helper()
	x, err := decoder.ImportConfig(fmt.Appendf(nil, `{"model_type": "mixtral", "num_hidden_layers": %d, "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 32, "vocab_size": 64, "num_local_experts": 4}`, n), "mixture", decoder.Options{Dims: map[string]int64{"seq": tokens}})
	if err != nil {
		t.Fatal(err)
	}
	return x.Graph
}

// tensors are the names of a Mixtral's tensors in llama.cpp (gguf-py's constants.py).
func tensors(layers int) []string {
	names := []string{"token_embd.weight", "output_norm.weight", "output.weight"}
	for l := range layers {
		for _, x := range []string{"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"} {
			names = append(names, fmt.Sprintf("blk.%d.%s.weight", l, x))
		}
	}
	return names
}

// The grammar of llama.cpp's documentation: "-ot <tensor name pattern>=<buffer type>,...",
// the pattern searched for in names of tensors. What is written moves the experts of the
// layers named to the CPU and nothing else, and reads back as the same placement.
func TestExpertsOfLlama(t *testing.T) {
	target, err := formats.Find("llama.cpp")
	if err != nil {
		t.Fatal(err)
	}
	m := machine(t, 2)
	const cpu = 2
	for _, c := range []struct {
		tokens int64
		sent   bool
		layers []int
		flag   bool // that products are computed on the CPU has to be said
	}{{4, false, []int{0, 1, 10}, false}, {64, false, []int{3}, true}, {64, true, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, false}} {
		g := mixture(t, 12, c.tokens)
		s := split(t, g, m, 0, 6)
		s.Experts, s.Sent = slices.Clone(s.Device), c.sent
		for k, x := range s.Parts.List {
			if slices.Contains(c.layers, x.Layer) {
				s.Experts[k] = cpu
			}
		}
		var b bytes.Buffer
		if err := target.Write(&b, s); err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`^llama-server -m MODEL\.gguf -ngl 13 -sm layer -ts 5,8 -ot "([^"=,]+)=CPU"( --no-op-offload)?\n$`)
		found := line.FindStringSubmatch(b.String())
		if found == nil || (found[2] != "") != c.flag {
			t.Errorf("%d tokens: wrote %q", c.tokens, &b)
			continue
		}
		pattern := regexp.MustCompile(found[1])
		for _, name := range tensors(12) {
			want := false
			for _, l := range c.layers {
				want = want || strings.HasPrefix(name, fmt.Sprintf("blk.%d.ffn_", l)) && strings.HasSuffix(name, "_exps.weight")
			}
			if pattern.MatchString(name) != want {
				t.Errorf("%s is moved: %v", name, !want)
			}
		}
		p, err := formats.Read(b.Bytes(), "f", g, m)
		if err != nil || !slices.Equal(p.Device, s.Spread()) {
			t.Errorf("%q reads back otherwise: %v", &b, err)
		}
		on := [3]map[string]bool{{}, {}, {}}
		for i, d := range p.Device {
			if o := g.Op(graph.OpID(i)); strings.HasPrefix(o.Module, fmt.Sprintf("model.layers.%d.", c.layers[0])) {
				on[d][string(o.Kind)] = true
			}
		}
		if !on[cpu]["VariableV2"] || on[cpu]["TopK"] || on[cpu]["Softmax"] || on[cpu]["BatchMatMul"] == c.sent {
			t.Errorf("%d tokens: on the CPU %v", c.tokens, on[cpu])
		}
	}
}

// Options as people write them.
func TestOverrides(t *testing.T) {
	g, m := mixture(t, 4, 4), machine(t, 2)
	const cpu = 2
	parts, err := formats.FindParts(g)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]uint8{ // of the experts of each layer
		"llama-server -ngl 99 -ts 1,1 -ot exps=CPU":                                            {cpu, cpu, cpu, cpu},
		"llama-server -ngl 99 --cpu-moe -ts 1,1":                                               {cpu, cpu, cpu, cpu},
		"llama-server -ngl 99 -ts 1,1 --n-cpu-moe 2":                                           {cpu, cpu, 0, 1},
		`llama-server -ngl 99 -ts 1,1 -ncmoe 1 -ot 'blk\.3\.ffn_.*_exps\.=CPU'`:                {cpu, 0, 0, cpu},
		`llama-server -ngl 99 -ts 1,1 -ot "blk\.[01]\.ffn_(up|down|gate)_exps=CUDA1,exps=CPU"`: {1, 1, cpu, cpu},
		`llama-server -ngl 99 -ts 1,1 -ot blk\\.2.ffn_.*_exps=CPU`:                             {0, 0, cpu, 1},
		`llama-server -ngl 99 -ts 1,1 --override-tensor=blk.0.ffn_.*=CUDA0 -ot "exps=CPU"`:     {0, cpu, cpu, cpu},
		"llama-server -ngl 3 -ts 1,1 -ot exps=CPU":                                             {cpu, cpu, cpu, cpu},
		"llama-server -ngl 99 -ts 1,1":                                                         {0, 0, 0, 1},
	} {
		p, err := formats.Read([]byte(text), "f", g, m)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for i, d := range p.Device {
			x := parts.List[parts.Of[i]]
			if x.Layer >= 0 && parts.Role[i] != formats.NoExpert && d != want[x.Layer] {
				t.Errorf("%s: %s is on %d, want %v", text, g.Op(graph.OpID(i)).Name, d, want)
				break
			}
		}
	}
	for text, want := range map[string]string{
		"llama-server -ngl 9 -ot exps":                  `f: llama.cpp: -ot: "exps" is not PATTERN=BUFFER`,
		"llama-server -ngl 9 -ot (=CPU":                 `f: llama.cpp: -ot: the expression "(" is not read`,
		"llama-server -ngl 9 -ot exps=CUDA2":            "f: llama.cpp: -ot: machine a100 has no CUDA2",
		"llama-server -ngl 9 -ot exps=TPU":              `f: llama.cpp: -ot: buffer "TPU" is none of machine a100`,
		"llama-server -ngl 9 -ot .*=CPU":                "f: llama.cpp: -ot moves blk.0.attn_norm.weight, of a layer's tensors only the experts",
		"llama-server -ngl 9 -ot ffn_up_exps=CPU":       "f: llama.cpp: -ot has blk.0.ffn_up_exps.weight apart from the layer's other experts",
		"llama-server -ngl 9 --n-cpu-moe some -ts 1,1":  `f: llama.cpp: --n-cpu-moe "some": want a number of layers`,
		`llama-server -ngl 9 -ot "attn_output\.=CUDA1"`: "f: llama.cpp: -ot moves blk.0.attn_output.weight",
	} {
		if _, err := formats.Read([]byte(text), "f", g, m); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Weights are sent for 32 tokens or more, other targets have experts with their layer.
func TestIllegalExperts(t *testing.T) {
	m := machine(t, 2)
	for _, c := range []struct {
		target string
		tokens int64
		sent   bool
		on     uint8
		want   string
	}{
		{"llama.cpp", 4, true, 2, "llama.cpp sends weights from the CPU for 32 tokens or more, the step has 4"},
		{"llama.cpp", 4, false, 1, "the experts of model.layers.0 are on gpu:1"},
		{"vllm", 4, false, 2, "the experts of model.layers.0 are on cpu:0"},
	} {
		target, err := formats.Find(c.target)
		if err != nil {
			t.Fatal(err)
		}
		s := split(t, mixture(t, 4, c.tokens), m, 0, 3)
		s.Experts, s.Sent = slices.Clone(s.Device), c.sent
		s.Experts[1] = c.on
		if err := target.Legal(s); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.target, err, c.want)
		}
	}
}
