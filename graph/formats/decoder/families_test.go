package decoder

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/units"
)

// published are sizes that the authors of models publish in config.json, where these differ
// from what transformers' classes have, and the number of parameters of the model that
// transformers 5.24 builds of them (python/tests_libraries/test_decoders.py, which also holds
// each parameter's name and number to placer's).
func published(t testing.TB) map[string]struct {
	Parameters int64           `json:"parameters"`
	Config     json.RawMessage `json:"config"`
} {
	t.Helper()
	data, err := os.ReadFile("testdata/published.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]struct {
		Parameters int64           `json:"parameters"`
		Config     json.RawMessage `json:"config"`
	}{}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPublished(t *testing.T) {
	read := map[string]bool{}
	for name, m := range published(t) {
		x, err := ImportConfig(m.Config, "config.json", Options{Dims: map[string]int64{"seq": 1}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := x.Graph.Params(); got != m.Parameters {
			t.Errorf("%s: %d parameters, want %d", name, got, m.Parameters)
		}
		var c struct {
			config
			Text config `json:"text_config"`
		}
		if err := json.Unmarshal(m.Config, &c); err != nil {
			t.Fatal(err)
		}
		read[c.Type], read[c.Text.Type] = true, true
	}
	for kind := range families() {
		if !read[kind] {
			t.Errorf("no model of %s", kind)
		}
	}
}

// Every family of the table of defaults is read, and the other way round.
func TestDefaults(t *testing.T) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(defaults, &all); err != nil {
		t.Fatal(err)
	}
	have := families()
	for kind, as := range assumedAs {
		if _, ok := have[kind]; !ok || all[as] == nil {
			t.Errorf("%s is assumed to be as %s", kind, as)
		}
		delete(have, kind)
	}
	if a, b := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(have)); !slices.Equal(a, b) {
		t.Errorf("defaults of %v, families %v", a, b)
	}
}

// kept is what a graph's caches hold.
func kept(g *graph.Graph) (n units.Bytes) {
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "VariableV2" && strings.HasSuffix(o.Name, "_cache") {
			n += o.Resident
		}
	}
	return n
}

// sizes imports a config with dims.
func sizes(t *testing.T, config string, dims map[string]int64) *graph.Graph {
	t.Helper()
	x, err := ImportConfig([]byte(config), "m", Options{Dims: dims})
	if err != nil {
		t.Fatal(err)
	}
	return x.Graph
}

// A layer with a window keeps a token less than it, and a token of a prefill sees no more
// than it.
func TestWindow(t *testing.T) {
	const gptOSS = `{"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32, "torch_dtype": "bfloat16"}`
	const token = 2 * 8 * 64 * 2 // keys and values of 8 heads of 64, in bfloat16
	if got, want := kept(sizes(t, gptOSS, map[string]int64{"seq": 1, "past": 4096})), units.Bytes(12*(127+4096)*token); got != want {
		t.Errorf("keeps %d bytes, want %d", got, want)
	}
	var scores, mean []int64
	g := sizes(t, gptOSS, map[string]int64{"seq": 1024})
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == graph.Attention {
			mean = append(mean, o.GEMM.N)
		}
	}
	// 128 tokens see 64.5 in the mean, 896 see 128.
	if len(mean) != 24 || mean[0] != (128*129/2+896*128+1023)/1024 || mean[1] != 513 {
		t.Errorf("tokens see %v in the mean", mean)
	}
	g = sizes(t, gptOSS, map[string]int64{"seq": 1024, "attention_kernels": 3})
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "Softmax" && strings.HasSuffix(o.Module, "self_attn") {
			in := g.Tensor(g.Inputs(i)[0]).Shape
			scores = append(scores, in[len(in)-1])
		}
	}
	if len(scores) != 24 || scores[0] != 128 || scores[1] != 1024 {
		t.Errorf("tokens see %v", scores)
	}
}

// A token of a latent cache is 576 numbers a layer of DeepSeek-V3, for all 128 heads, and a
// decoding step behind many tokens reads it as it is: the weight that expands it is read
// once, by parts.
func TestLatent(t *testing.T) {
	const v3 = `{"model_type": "deepseek_v3", "torch_dtype": "bfloat16"}`
	g := sizes(t, v3, map[string]int64{"seq": 1, "past": 4096})
	if got, want := kept(g), units.Bytes(61*4096*576*2); got != want {
		t.Errorf("keeps %d bytes, want %d", got, want)
	}
	var flops units.FLOPs
	var bytes units.Bytes
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Module == "model.layers.7.self_attn.kv_b_proj" && o.Kind == "BatchMatMul" {
			flops, bytes = flops+o.FLOPs, bytes+o.Bytes
		}
	}
	const weight = 512 * 128 * (128 + 128)
	if flops != 2*weight || bytes < 2*weight || bytes > 2*weight+2*128*(192+576+512+128) {
		t.Errorf("%g operations, %d bytes", float64(flops), bytes)
	}
}

// A token of DeepSeek-V3.2 behind many attends to the 2,048 latents that its indexer chooses by
// the scores of all, and reads these and the indexer's keys: 128 numbers a token more are kept.
// A layer that takes over the choice of the one before has no indexer.
func TestIndexed(t *testing.T) {
	const past, chosen, heads, rank, rope, own, dim = 32767, 2048, 128, 512, 64, 64, 128
	g := sizes(t, `{"model_type": "deepseek_v32", "torch_dtype": "bfloat16"}`, map[string]int64{"seq": 1, "past": past})
	if got, want := kept(g), units.Bytes(61*past*(rank+rope+dim)*2); got != want {
		t.Errorf("keeps %d bytes, want %d", got, want)
	}
	found := 0
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		switch {
		case o.Module == "model.layers.7.self_attn" && o.Kind == graph.Attention:
			found++
			if want := units.FLOPs(2 * heads * (rank + rope + rank) * chosen); o.FLOPs != want {
				t.Errorf("attention takes %g operations, want %g", float64(o.FLOPs), float64(want))
			}
			if read := units.Bytes(2 * (rank + rope) * chosen); o.Bytes < read || o.Bytes > read+2*heads*(rank+rope+rank) {
				t.Errorf("attention moves %d bytes, of which latents are %d", o.Bytes, read)
			}
		case o.Module == "model.layers.7.self_attn.indexer" && o.Kind == "BatchMatMul":
			found++
			if want := units.FLOPs(2 * own * (dim + 1) * (past + 1)); o.FLOPs != want {
				t.Errorf("the indexer takes %g operations, want %g", float64(o.FLOPs), float64(want))
			}
		}
	}
	if found != 2 {
		t.Errorf("%d of attention and its indexer in a layer", found)
	}
	for config, want := range map[string]string{`"index_topk_pattern": "FSFSS"`: "02", `"index_topk_freq": 2`: "013", `"index_topk_freq": 3, "index_skip_topk_offset": 1`: "03", `"index_topk_freq": 1`: "01234"} {
		g, got := sizes(t, `{"model_type": "glm_moe_dsa", "num_hidden_layers": 5, `+config+`}`, nil), ""
		for i := range graph.OpID(g.NumOps()) {
			if m, ok := strings.CutSuffix(g.Op(i).Module, ".self_attn.indexer.wk"); ok && g.Op(i).Kind == "MatMul" {
				got += strings.TrimPrefix(m, "model.layers.")
			}
		}
		if got != want {
			t.Errorf("%s: layers %s have indexers, want %s", config, got, want)
		}
	}
	shared := sizes(t, `{"model_type": "glm_moe_dsa", "num_hidden_layers": 2, "indexer_types": ["full", "shared"]}`, nil)
	for i := range graph.OpID(shared.NumOps()) {
		if m := shared.Op(i).Module; strings.HasPrefix(m, "model.layers.1.self_attn.indexer") {
			t.Errorf("the second layer has %s", m)
		}
	}
	if n, m := sizes(t, `{"model_type": "glm_moe_dsa", "num_hidden_layers": 2, "indexer_types": ["full", "full"]}`, nil).Params(), shared.Params(); n-m != 2048*32*128+6144*128+2*128+6144*32 {
		t.Errorf("an indexer has %d parameters", n-m)
	}
}

// A layer of linear attention keeps a state of 128 x 128 numbers of 4 bytes for each of 32 heads,
// and three tokens of what it convolves, however many tokens came before; a decoding step reads
// and writes the state once. Every fourth layer of Qwen3-Next attends to all tokens.
func TestLinear(t *testing.T) {
	const c = `{"model_type": "qwen3_next", "torch_dtype": "bfloat16"}`
	const state, convolved, full = 32 * 128 * 128 * 4, 3 * (2*16*128 + 32*128) * 2, 2 * 2 * 256 * 2
	for _, past := range []int64{1, 100, 10000} {
		g := sizes(t, c, map[string]int64{"seq": 1, "past": past, "batch": 3})
		if got, want := kept(g), units.Bytes(3*(36*(state+convolved)+12*full*past)); got != want {
			t.Errorf("behind %d tokens it keeps %d bytes, want %d", past, got, want)
		}
		for i := range graph.OpID(g.NumOps()) {
			o := g.Op(i)
			if o.Module != "model.layers.5.linear_attn" || o.Kind != "BatchMatMul" {
				continue
			}
			if want := units.FLOPs(3 * 32 * 7 * 128 * 128); o.FLOPs != want {
				t.Errorf("the rule takes %g operations, want %g", float64(o.FLOPs), float64(want))
			}
			if o.Bytes < 2*3*state || o.Bytes > 2*3*state+3*30000 {
				t.Errorf("the rule moves %d bytes, of which the state is %d", o.Bytes, 2*3*state)
			}
		}
	}
	if _, err := ImportConfig([]byte(c), "m", Options{Training: true}); err == nil || err.Error() != "m: model.layers.0.linear_attn is linear attention, of which no training step is built" {
		t.Errorf("a training step: %v", err)
	}
}

// A state-space layer of Granite 4.0 keeps 128 heads of 64 x 128 numbers of 4 bytes, and three
// tokens of what it convolves, however many tokens came before; four layers of forty attend.
func TestStateSpaces(t *testing.T) {
	c := string(published(t)["granite-4.0-h-small"].Config)
	const state, convolved, full = 128 * 64 * 128 * 4, 3 * (128*64 + 2*128) * 2, 2 * 8 * 128 * 2
	c = strings.Replace(c, "{", `{"torch_dtype": "bfloat16", `, 1)
	for _, past := range []int64{1, 10000} {
		g := sizes(t, c, map[string]int64{"seq": 1, "past": past, "batch": 3})
		if got, want := kept(g), units.Bytes(3*(36*(state+convolved)+4*full*past)); got != want {
			t.Errorf("behind %d tokens it keeps %d bytes, want %d", past, got, want)
		}
		for i := range graph.OpID(g.NumOps()) {
			if o := g.Op(i); o.Module == "model.layers.7.mamba" && o.Kind == "BatchMatMul" && (o.FLOPs != 3*128*6*64*128 || o.Bytes < 2*3*state || o.Bytes > 2*3*state+3*60000) {
				t.Errorf("the scan takes %g operations and moves %d bytes, of which the state is %d", float64(o.FLOPs), o.Bytes, 2*3*state)
			}
		}
	}
	// A prefill of two chunks of 256 tokens: of each head outputs by inputs, these by tokens, and
	// the state twice.
	g := sizes(t, c, map[string]int64{"seq": 512})
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Module == "model.layers.7.mamba" && o.Kind == "BatchMatMul" {
			want := 2.0 * 512 * (128*256*64 + 256*128 + 128*2*64*128)
			if got := float64(o.FLOPs); got < want || got > 1.01*want {
				t.Errorf("the scan takes %g operations, want %g", got, want)
			}
		}
	}
	if _, err := ImportConfig([]byte(c), "m", Options{Training: true}); err == nil || err.Error() != "m: model.layers.0.mamba is a state space, of which no training step is built" {
		t.Errorf("a training step: %v", err)
	}
	for config, kinds := range map[string]string{`"hybrid_override_pattern": "M*-E"`: "sa.m", `"layers_block_type": ["mamba", "moe", "attention", "mlp"]`: "sma."} {
		g, got := sizes(t, `{"model_type": "nemotron_h", `+config+`}`, nil), ""
		of := map[string]byte{"model.layers.%d.mixer.in_proj": 's', "model.layers.%d.mixer.q_proj": 'a', "model.layers.%d.mixer.gate": 'm'}
		modules := map[string]bool{}
		for i := range graph.OpID(g.NumOps()) {
			modules[g.Op(i).Module] = true
		}
		for l := range 4 {
			kind := byte('.')
			for path, k := range of {
				if modules[fmt.Sprintf(path, l)] {
					kind = k
				}
			}
			got += string(kind)
		}
		if got != kinds {
			t.Errorf("%s: layers are %s, want %s", config, got, kinds)
		}
	}
}

// Of the 35 layers of Gemma 4 E2B the last 20 read the keys and values of two before, one with a
// window of 512 tokens and one without: 15 keep any, and a prefill computes one token of the 20.
func TestSharedKeys(t *testing.T) {
	c := strings.Replace(string(published(t)["Gemma 4 E2B, text"].Config), "{", `{"torch_dtype": "bfloat16", `, 1)
	g := sizes(t, c, map[string]int64{"seq": 1, "past": 4096, "batch": 3})
	if got, want := kept(g), units.Bytes(3*2*2*(12*511*256+3*4096*512)); got != want {
		t.Errorf("keeps %d bytes, want %d", got, want)
	}
	rows := map[string]int64{}
	g = sizes(t, c, map[string]int64{"seq": 64, "batch": 3})
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "MatMul" {
			rows[o.Module] = o.GEMM.M
		}
	}
	for path, want := range map[string]int64{"model.layers.14.mlp.up_proj": 3 * 64, "model.layers.15.mlp.up_proj": 3, "model.layers.15.self_attn.q_proj": 3, "model.layers.34.mlp.down_proj": 3, "lm_head": 3} {
		if rows[path] != want {
			t.Errorf("%s has %d rows, want %d", path, rows[path], want)
		}
	}
}

// In a model that sees, the decoder's paths are those of the whole.
func TestDecoderOfWhole(t *testing.T) {
	x, err := ImportConfig([]byte(`{"model_type": "qwen2_5_vl", "num_hidden_layers": 1, "vision_config": {"depth": 32}}`), "m", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(x.Notes, "of the qwen2_5_vl its text decoder alone") {
		t.Errorf("notes %q", x.Notes)
	}
	paths := map[string]bool{}
	for i := range graph.OpID(x.Graph.NumOps()) {
		paths[x.Graph.Op(i).Module] = true
	}
	for _, path := range []string{"model.language_model.embed_tokens", "model.language_model.layers.0.self_attn.q_proj", "model.language_model.norm", "lm_head"} {
		if !paths[path] {
			t.Errorf("no op of %s", path)
		}
	}
}

// A token of a mixture reads the weights of the experts that it is sent to, many read all of
// them: Qwen3-30B-A3B has 3.3 billion parameters for a token, of 30.5.
func TestBusyExperts(t *testing.T) {
	c := string(published(t)["Qwen3-30B-A3B"].Config)
	const table, all = 151936 * 2048, 48 * 128 * 3 * 2048 * 768
	for _, x := range []struct {
		batch     int64
		low, high float64 // parameters that are read, without the table
	}{{1, 3.35e9 - table, 3.35e9 - table}, {8, 0.40*all + 1.2e9, 0.41*all + 1.3e9}, {512, all + 1.2e9, all + 2e9}} {
		g := sizes(t, c, map[string]int64{"seq": 1, "batch": x.batch})
		var read, held units.Bytes
		for i := range graph.OpID(g.NumOps()) {
			o := g.Op(i)
			held += o.Resident
			if o.Kind == "MatMul" || o.Kind == "BatchMatMul" && strings.HasSuffix(o.Module, "experts") {
				read += o.Bytes
			}
		}
		read -= units.Bytes(float64(x.batch) * 48 * 2 * 8 * (2*2048 + 3*768)) // rows in and out of experts
		if got := float64(read) / 2; got < 0.985*x.low || got > 1.015*x.high || held < 2*30.5e9 {
			t.Errorf("batch %d: %.3g parameters read, want %.3g to %.3g; %d bytes held", x.batch, got, x.low, x.high, held)
		}
	}
}

// Quantized models as published: DeepSeek-V3 in FP8 with a float for each block of 128 by 128
// (671 GB of weights, 688.6 GB of files with the layers that predict further tokens), gpt-oss's
// experts in MXFP4, 4.25 bits an element (13.8 GB of files).
func TestPublishedQuantized(t *testing.T) {
	for name, c := range map[string]struct {
		config    string
		low, high float64
	}{
		"DeepSeek-V3": {`{"model_type": "deepseek_v3", "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}}`, 672e9, 674e9},
		"gpt-oss-20b": {`{"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32, "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "mxfp4",
			"modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}`, 13.7e9, 13.8e9},
	} {
		if got := float64(sizes(t, c.config, map[string]int64{"seq": 1}).Resident()); got < c.low || got > c.high {
			t.Errorf("%s: %.4g bytes, want %.4g to %.4g", name, got, c.low, c.high)
		}
	}
}

// The text decoder of a model of several parts, whose file leaves sizes to the class.
func TestText(t *testing.T) {
	const c = `{"model_type": "gemma3", "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}, "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}}`
	x, err := ImportConfig([]byte(c), "m", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := published(t)["gemma-3-4b, text"].Parameters; x.Graph.Params() != want || x.Graph.Resident() < units.Bytes(2*want) || x.Graph.Resident() > units.Bytes(2*want)+1e6 {
		t.Errorf("%d parameters, %d bytes", x.Graph.Params(), x.Graph.Resident())
	}
	if want := "of the gemma3 its text decoder alone, a gemma3_text, with that model's own module paths"; !slices.Contains(x.Notes, want) {
		t.Errorf("notes %q", x.Notes)
	}
}

// What a family has in some models only, and is not read, is refused by name.
func TestRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{"model_type": "stablelm", "qk_layernorm": true}`:                                              "m: qk_layernorm is not read: a norm of each head by itself",
		`{"model_type": "opt", "do_layer_norm_before": false}`:                                          "m: an OPT with norms behind sums, norms without weights or projected embeddings is not read",
		`{"model_type": "gemma3_text", "use_bidirectional_attention": true}`:                            "m: use_bidirectional_attention is not read: this is no decoder",
		`{"model_type": "qwen3", "num_hidden_layers": 1, "layer_types": ["linear_attention"]}`:          "m: layer 0 has linear_attention, which is not read",
		`{"model_type": "qwen3", "num_hidden_layers": 2, "layer_types": ["full_attention"]}`:            "m: layer_types names 1 of 2 layers",
		`{"model_type": "llama", "hidden_act": "xielu"}`:                                                `m: activation "xielu" is not one of those that are read: silu, gelu, relu, relu2`,
		`{"model_type": "hy_v3", "mlp_layer_types": ["dense"]}`:                                         "m: mlp_layer_types names 1 of 80 layers",
		`{"model_type": "glm4_moe_lite", "num_hidden_layers": 2, "mlp_layer_types": ["dense", "moe"]}`:  `m: mlp_layer_types: layer 1 has "moe", want dense or sparse`,
		`{"model_type": "deepseek_v32", "q_lora_rank": null}`:                                           "m: an indexer without q_lora_rank is not read",
		`{"model_type": "glm_moe_dsa", "indexer_types": ["full"]}`:                                      "m: indexer_types names 1 of 78 layers",
		`{"model_type": "glm_moe_dsa", "index_topk_pattern": "FSS"}`:                                    "m: index_topk_pattern names 3 of 78 layers",
		`{"model_type": "glm_moe_dsa", "num_hidden_layers": 2, "index_topk_pattern": "SF"}`:             "m: the first layer has no indexer to share",
		`{"model_type": "deepseek_v32", "index_topk": 0}`:                                               "m: number of tokens that the indexer chooses is 0, want 1 to 1073741824",
		`{"model_type": "qwen3_next", "num_hidden_layers": 1, "layer_types": ["mamba"]}`:                "m: layer 0 has mamba, which is not read",
		`{"model_type": "qwen3_next", "linear_num_value_heads": 24}`:                                    "m: 24 linear heads of values are no multiple of 16 of keys",
		`{"model_type": "nemotron_h", "hybrid_override_pattern": "M*X"}`:                                "m: hybrid_override_pattern: layer 2 is 'X', want M, *, - or E",
		`{"model_type": "nemotron_h", "num_hidden_layers": 3, "hybrid_override_pattern": "M*"}`:         "m: the kinds of 2 of 3 layers are named",
		`{"model_type": "granitemoehybrid", "num_hidden_layers": 1, "layer_types": ["mlp"]}`:            "m: layer 0 is mlp alone, which this family has not",
		`{"model_type": "bamba", "num_hidden_layers": 1, "layers_block_type": ["rwkv"]}`:                "m: layer 0 has rwkv, which is not read",
		`{"model_type": "mamba2", "num_heads": 0}`:                                                      "m: number of state-space heads is 0, want 1 to 4096",
		`{"model_type": "gemma4_text", "num_kv_shared_layers": 30}`:                                     "m: model.layers.0 has no keys and values, nor has a layer of its kind before",
		`{"model_type": "gemma4_text", "num_kv_shared_layers": 31}`:                                     "m: num_kv_shared_layers is 31 of 30 layers",
		`{"model_type": "gemma4_text", "vocab_size_per_layer_input": 9}`:                                "m: vocab_size_per_layer_input other than vocab_size is not read",
		`{"model_type": "llama4_text", "layer_types": []}`:                                              "m: layer_types names 0 of 48 layers",
		`{"model_type": "llama", "num_hidden_layers": 100000}`:                                          "m: number of layers is 100000, want 1 to 1024",
		`{"model_type": "kimi_linear"}`:                                                                 fmt.Sprintf(`m: architecture "kimi_linear" is not one of those that are read: %s`, strings.Join(slices.Sorted(maps.Keys(families())), ", ")),
		`{"model_type": "exaone4", "num_hidden_layers": 2, "sliding_window_pattern": "LG"}`:             "m: sliding_window_pattern is text, and layer_types is missing",
		`{"model_type": "falcon", "new_decoder_architecture": true, "parallel_attn": false}`:            "m: new_decoder_architecture without parallel_attn is not read",
		`{"model_type": "mllama", "text_config": {"model_type": "mllama_text_model", "vocab_size": 2}}`: fmt.Sprintf(`m: architecture "mllama" is not one of those that are read: %s`, strings.Join(slices.Sorted(maps.Keys(families())), ", ")),
	} {
		if _, err := ImportConfig([]byte(config), "m", Options{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
