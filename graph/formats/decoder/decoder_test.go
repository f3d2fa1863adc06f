package decoder

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"placer/graph"
	"placer/units"
)

// Published sizes of the four families. want is the number of parameters that their
// authors give, in billions.
var configs = map[string]struct {
	json string
	want float64
}{
	"llama 2 7B":   {`{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 32000, "torch_dtype": "float16"}`, 6.738},
	"mistral 7B":   {`{"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "torch_dtype": "bfloat16"}`, 7.242},
	"mixtral 8x7B": {`{"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16"}`, 46.703},
	"qwen2 0.5B":   {`{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}`, 0.494},
}

func TestConfig(t *testing.T) {
	for name, c := range configs {
		x, err := ImportConfig([]byte(c.json), "config.json", Options{Dims: map[string]int64{"seq": 64}})
		if err != nil || !SniffConfig([]byte(c.json)) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := float64(x.Graph.Params()) / 1e9; got < c.want-0.001 || got > c.want+0.001 {
			t.Errorf("%s: %.3f billion parameters, want %.3f", name, got, c.want)
		}
	}
}

// A prefill computes twice its parameters but the table for each token, and the
// attention's products; a decoding step reads every weight and the cache once.
func TestStep(t *testing.T) {
	c := []byte(configs["llama 2 7B"].json)
	prefill, err := ImportConfig(c, "m", Options{})
	if err != nil {
		t.Fatal(err)
	}
	apart, err := ImportConfig(c, "m", Options{Dims: map[string]int64{"attention_kernels": 3}})
	if err != nil {
		t.Fatal(err)
	}
	layers := 6.738e9 - 2*32000*4096
	rest := 2*512*layers + 2*32000*4096
	for _, x := range []struct {
		name string
		g    *graph.Graph
		seen float64 // keys, by a query in the mean
	}{{"prefill", prefill.Graph, 257}, {"prefill whose scores are stored", apart.Graph, 512}} {
		if f, want := float64(x.g.FLOPs()), rest+32*2*2*512*x.seen*4096; f < want || f > 1.01*want {
			t.Errorf("%s: %.4g FLOPs, want %.4g", x.name, f, want)
		}
	}
	if _, err := ImportConfig(c, "m", Options{Dims: map[string]int64{"attention_kernels": 2}}); err == nil || !strings.Contains(err.Error(), "attention_kernels is 2, want 1") {
		t.Errorf("two kernels: %v", err)
	}
	decode, err := ImportConfig(c, "m", Options{Dims: map[string]int64{"seq": 1, "past": 2048, "batch": 2}})
	if err != nil {
		t.Fatal(err)
	}
	cache := units.Bytes(2 * 32 * 2048 * 4096 * 2 * 2)
	weights := units.Bytes(2 * decode.Graph.Params())
	if got := decode.Graph.Resident(); got < weights+cache || got > weights+cache+1e6 {
		t.Errorf("decoding holds %d bytes, want %d", got, weights+cache)
	}
	var moved units.Bytes
	modules := map[string]bool{}
	for i := range decode.Graph.NumOps() {
		o := decode.Graph.Op(graph.OpID(i))
		moved += o.Bytes
		modules[o.Module] = true
	}
	table := units.Bytes(2 * 32000 * 4096)
	if moved < weights-table+cache || moved > (weights-table+cache)*11/10 {
		t.Errorf("decoding moves %v, want about %v", moved, weights-table+cache)
	}
	for _, m := range []string{"model.embed_tokens", "model.layers.31.self_attn.q_proj", "model.layers.0.mlp.down_proj", "model.norm", "lm_head"} {
		if !modules[m] {
			t.Errorf("no op of module %s", m)
		}
	}
}

// Quantized weights occupy what their method stores: so many bits for each of the 6.476e9
// elements of the layers of a model of 7 billion, and a scale for each group of them.
func TestQuantized(t *testing.T) {
	const layers, outputs = 32 * (4*4096*4096 + 3*4096*11008), 32 * (5*4096 + 2*11008)
	const rest = 2 * (2*32000*4096 + 65*4096) // the table, the head and the norms in half precision
	base := strings.TrimSuffix(configs["llama 2 7B"].json, "}") + `, "quantization_config": `
	for _, c := range []struct {
		name, config string
		want         units.Bytes
	}{
		{"gptq", `{"quant_method": "gptq", "bits": 4, "group_size": 128}`, layers/2 + 2*layers/128 + rest},
		{"gptq of 3 bits, a scale for each output", `{"quant_method": "gptq", "bits": 3, "group_size": -1}`, layers*3/8 + 2*outputs + rest},
		{"gptq with its head", `{"quant_method": "gptq", "bits": 4, "lm_head": true}`, (layers+32000*4096)/2 + 2*(layers+32000*4096)/128 + rest - 2*32000*4096},
		{"awq", `{"quant_method": "awq", "bits": 4, "group_size": 64}`, layers/2 + 2*layers/64 + rest},
		{"awq by its own names", `{"quant_method": "awq", "w_bit": 4, "q_group_size": 128}`, layers/2 + 2*layers/128 + rest},
		{"bitsandbytes in 4 bits", `{"quant_method": "bitsandbytes", "load_in_4bit": true}`, layers/2 + 4*layers/64 + rest},
		{"bitsandbytes, scales quantized too", `{"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_use_double_quant": true}`, layers/2 + layers/64 + rest},
		{"bitsandbytes in 8 bits", `{"quant_method": "bitsandbytes", "load_in_8bit": true}`, layers + 4*outputs + rest},
		{"fp8 in blocks", `{"quant_method": "fp8", "weight_block_size": [128, 128]}`, layers + 4*layers/(128*128) + rest},
		{"compressed-tensors in f8", `{"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}, "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true}}}}`, layers + 2*outputs + rest},
		{"compressed-tensors with its head", `{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "tensor"}}}}`, layers + 32000*4096 + rest - 2*32000*4096},
		{"compressed-tensors in 4 bits", `{"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}, "input_activations": null}}}`, layers/2 + 2*layers/128 + rest},
		{"compressed-tensors in blocks, but for the MLPs", `{"quant_method": "compressed-tensors", "ignore": ["re:.*mlp.*", "lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}}}}`, 32*4*4096*4096 + 2*32*4*32*32 + 2*32*3*4096*11008 + rest},
		{"compressed-tensors in floats of 4 bits", `{"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}, "input_activations": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}}}}`, layers/2 + layers/16 + rest},
		{"modelopt in 4 bits", `{"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}`, layers/2 + layers/16 + rest},
		{"modelopt in 4 bits, but for attention", `{"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "model.layers.*.self_attn*"]}`, 2*32*4*4096*4096 + 32*3*4096*11008/2 + 32*3*4096*11008/16 + rest},
		{"modelopt in 8 bits", `{"quant_method": "modelopt", "quant_algo": "FP8"}`, layers + 4*32*7 + rest},
		{"compressed-tensors of two groups", `{"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["re:.*self_attn\\..*_proj$"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}, "b": {"targets": ["down_proj", "up_proj", "gate_proj"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64}}}}`, 32*(4*4096*4096+2*4*4096) + 32*3*4096*11008*(64/2+2)/64 + rest},
		{"fp8 but for the MLPs", `{"quant_method": "fp8", "modules_to_not_convert": ["mlp"]}`, layers + 4*32*4 + 32*3*4096*11008 + rest},
	} {
		x, err := ImportConfig([]byte(base+c.config+"}"), "m", Options{Dims: map[string]int64{"seq": 1}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := x.Graph.Resident(); got < c.want || got > c.want+1e4 || x.Graph.Params() < 6.7e9 {
			t.Errorf("%s: %d bytes, want %d; %d parameters", c.name, got, c.want, x.Graph.Params())
		}
	}
	for config, want := range map[string]string{
		`{"quant_method": "aqlm"}`: `m: quantization_config: method "aqlm" is not one of those that are read: gptq, awq, bitsandbytes, fp8, fbgemm_fp8, compressed-tensors, modelopt, mxfp4`,
		`{"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 32}}}}`: `m: quantization_config: weights of 4 bits of type "float", want int of 4 or 8, float of 8, or of 4 in groups of 16`,
		`{"quant_method": "modelopt", "quant_algo": "W4A8"}`: `m: quantization_config: modelopt's "W4A8" is not one of those that are read: FP8, NVFP4`,
		`{"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "block"}}}}`:                                                        `m: quantization_config: weights by the strategy "block" with groups of 0 and blocks of , want tensor, channel, group or block with its size`,
		`{"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["re:("], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}}}`:                                                        `m: quantization_config: "re:(" is no regular expression that is read`,
		`{"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}, "input_activations": {"num_bits": 4, "type": "int"}}}}`: `m: quantization_config: activations of 4 bits of type "int", want int or float of 8, or none`,
		`{"quant_method": "gptq", "bits": 400}`: "m: quantization_config: gptq of 400 bits, want 2 to 8",
	} {
		if _, err := ImportConfig([]byte(base+config+"}"), "m", Options{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Products are of 8 bits where activations are quantized with the weights, and of the model's
// type where weights alone are, in training, and of what a file leaves as it was.
func TestQuantizedProducts(t *testing.T) {
	const layers, head, rows = 32 * (4*4096*4096 + 3*4096*11008), 32000 * 4096, 2 * 64
	base := strings.TrimSuffix(configs["llama 2 7B"].json, "}") + `, "quantization_config": `
	group := func(inputs string) string {
		return `{"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}` + inputs + `}}}`
	}
	for _, c := range []struct {
		name, config string
		train        bool
		as           graph.DType
		want         units.FLOPs
	}{
		{"fp8", `{"quant_method": "fp8", "weight_block_size": [128, 128]}`, false, graph.F8, 2 * layers * rows},
		{"fbgemm_fp8", `{"quant_method": "fbgemm_fp8"}`, false, graph.F8, 2 * layers * rows},
		{"modelopt", `{"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["*lm_head"]}`, false, graph.F4, 2 * layers * rows},
		{"compressed-tensors of integers", group(`, "input_activations": {"num_bits": 8, "type": "int"}`), false, graph.I8, 2 * layers * rows},
		{"compressed-tensors of weights", group(""), false, graph.I8, 0},
		{"awq", `{"quant_method": "awq", "bits": 4}`, false, graph.F8, 0},
		{"fp8 but for the MLPs", `{"quant_method": "fp8", "modules_to_not_convert": ["mlp"]}`, false, graph.F8, 2 * 32 * 4 * 4096 * 4096 * rows},
		{"fp8 in training", `{"quant_method": "fp8"}`, true, graph.F8, 0},
	} {
		x, err := ImportConfig([]byte(base+c.config+"}"), "m", Options{Dims: map[string]int64{"batch": 2, "seq": 64}, Training: c.train})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := units.FLOPs(0)
		for i := range x.Graph.NumOps() {
			if o := x.Graph.Op(graph.OpID(i)); o.DType == c.as {
				got += o.FLOPs
			}
		}
		if got != c.want {
			t.Errorf("%s: %.6g FLOPs in %v, want %.6g", c.name, float64(got), c.as, float64(c.want))
		}
	}
}

// writer makes a GGUF header.
type writer struct{ b []byte }

func (w *writer) u32(x uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, x) }
func (w *writer) u64(x uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, x) }
func (w *writer) text(s string) {
	w.u64(uint64(len(s)))
	w.b = append(w.b, s...)
}

// sample is a header of a llama of 2 layers, of Q4_K weights, with n tokens.
func sample(arch string, n int) []byte {
	w := &writer{[]byte("GGUF")}
	w.u32(3)
	type tensor struct {
		name string
		dims []uint64
		kind uint32
	}
	tensors := []tensor{{"token_embd.weight", []uint64{256, 512}, 12}, {"output.weight", []uint64{256, 512}, 14}, {"output_norm.weight", []uint64{256}, 0}, {"rope_freqs.weight", []uint64{32}, 0}}
	for l := range 2 {
		for _, x := range []tensor{{"attn_norm", []uint64{256}, 0}, {"ffn_norm", []uint64{256}, 0}, {"attn_q", []uint64{256, 256}, 12}, {"attn_k", []uint64{256, 128}, 12}, {"attn_v", []uint64{256, 128}, 14}, {"attn_output", []uint64{256, 256}, 12},
			{"ffn_gate", []uint64{256, 768}, 12}, {"ffn_up", []uint64{256, 768}, 12}, {"ffn_down", []uint64{768, 256}, 14}} {
			tensors = append(tensors, tensor{fmt.Sprintf("blk.%d.%s.weight", l, x.name), x.dims, x.kind})
		}
	}
	numbers := map[string]uint32{"block_count": 2, "embedding_length": 256, "feed_forward_length": 768, "attention.head_count": 4, "attention.head_count_kv": 2}
	w.u64(uint64(len(tensors)))
	w.u64(uint64(len(numbers) + 2))
	w.text("general.architecture")
	w.u32(8)
	w.text(arch)
	for key, x := range numbers {
		w.text(arch + "." + key)
		w.u32(4)
		w.u32(x)
	}
	w.text("tokenizer.ggml.tokens")
	w.u32(9)
	w.u32(8)
	w.u64(uint64(n))
	for range n {
		w.text("t")
	}
	for _, x := range tensors {
		w.text(x.name)
		w.u32(uint32(len(x.dims)))
		for _, d := range x.dims {
			w.u64(d)
		}
		w.u32(x.kind)
		w.u64(0)
	}
	return w.b
}

// The weights of a GGUF file occupy what its types store: 144 bytes for 256 elements of
// Q4_K, 210 of Q6_K.
func TestGGUF(t *testing.T) {
	data := sample("llama", 512)
	x, err := ImportGGUF(data, "dir/tiny.gguf", Options{Dims: map[string]int64{"seq": 1, "past": 7}})
	if err != nil {
		t.Fatal(err)
	}
	if x.Weights != 22 || x.Graph.Name() != "tiny" || !SniffGGUF(data) {
		t.Errorf("%d tensors, name %s", x.Weights, x.Graph.Name())
	}
	held := map[string]units.Bytes{}
	for i := range x.Graph.NumOps() {
		o := x.Graph.Op(graph.OpID(i))
		if o.Kind == "VariableV2" {
			held[o.Module] += o.Resident
		}
	}
	for module, want := range map[string]units.Bytes{"model.embed_tokens": 512 * 144, "lm_head": 512 * 210, "model.layers.1.mlp.down_proj": 768 * 210, "model.layers.0.self_attn.q_proj": 256 * 144,
		"model.layers.1.self_attn": 2 * 2 * 7 * 64 * 2, "model.layers.0.input_layernorm": 256 * 4} {
		if held[module] != want {
			t.Errorf("%s holds %d bytes, want %d", module, held[module], want)
		}
	}
}

// A tied output layer reads the table as it is stored, and makes no second one.
func TestTied(t *testing.T) {
	f, err := parseGGUF(sample("llama", 512))
	if err != nil {
		t.Fatal(err)
	}
	delete(f.tensors, "output.weight")
	d, err := f.decoder()
	if err != nil || !d.Head.Tied {
		t.Fatalf("tied: %v, %v", d, err)
	}
	x, err := f.tensors.step(d, ggufNames(d), "m", Options{Dims: map[string]int64{"batch": 3, "seq": 1}})
	if err != nil {
		t.Fatal(err)
	}
	g := x.Graph
	last := g.Op(graph.OpID(g.NumOps() - 1))
	table := units.Bytes(512 * 144) // 256 elements of Q4_K a row
	if want := table + 2*3*(256+512); last.Kind != "MatMul" || last.Bytes != want || last.GEMM != (graph.GEMM{Batch: 1, M: 3, N: 512, K: 256}) {
		t.Errorf("%+v moves %d bytes, want %d", last, last.Bytes, want)
	}
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "Transpose" && o.Module == "lm_head" {
			t.Error("the table is transposed")
		}
	}
}

// header is a header of safetensors of so many layers, in half precision, of tensors "NAME
// ROWS COLUMNS", of which those that begin with a dot are in each layer.
func header(layers int, tensors ...string) []byte {
	all := []string{`"__metadata__": {"format": "pt"}`}
	at := int64(0)
	add := func(name string, shape ...int64) {
		n := int64(2)
		for _, x := range shape {
			n *= x
		}
		dims, _ := json.Marshal(shape)
		all = append(all, fmt.Sprintf(`%q: {"dtype": "F16", "shape": %s, "data_offsets": [%d, %d]}`, name, dims, at, at+n))
		at += n
	}
	for _, t := range tensors {
		f := strings.Fields(t)
		var shape []int64
		for _, x := range f[1:] {
			n, _ := strconv.ParseInt(x, 10, 64)
			shape = append(shape, n)
		}
		if !strings.HasPrefix(t, ".") {
			add(f[0], shape...)
			continue
		}
		for l := range layers {
			add(fmt.Sprintf("model.layers.%d%s", l, f[0]), shape...)
		}
	}
	h := "{" + strings.Join(all, ",\n") + "}"
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...)
}

func TestSafetensors(t *testing.T) {
	outside := []string{"model.embed_tokens.weight 512 64", "model.norm.weight 64", "lm_head.weight 512 64"}
	attention := []string{".input_layernorm.weight 64", ".post_attention_layernorm.weight 64", ".self_attn.q_proj.weight 64 64", ".self_attn.k_proj.weight 32 64", ".self_attn.v_proj.weight 32 64", ".self_attn.o_proj.weight 64 64"}
	mlp := []string{".mlp.gate_proj.weight 128 64", ".mlp.up_proj.weight 128 64", ".mlp.down_proj.weight 64 128"}
	llama := slices.Concat(outside, attention, mlp)
	if _, err := ImportSafetensors(header(2, llama...), "m", Options{}); err == nil || !strings.Contains(err.Error(), "state them by --dim heads=N") {
		t.Error(err)
	}
	const rest, layer = 2*512*64 + 64, 2*64*64 + 2*32*64 + 2*64
	for _, c := range []struct {
		name    string
		tensors []string
		count   int
		want    int64
		heads   int64
	}{
		{"llama", llama, 21, rest + 2*(layer+3*128*64), 4},
		{"tied, with a buffer", slices.Concat(outside[:2], attention, mlp, []string{".self_attn.rotary_emb.inv_freq 8"}), 22, rest - 512*64 + 2*(layer+3*128*64), 4},
		{"qwen2", append(slices.Clone(llama), ".self_attn.q_proj.bias 64", ".self_attn.k_proj.bias 32", ".self_attn.v_proj.bias 32"), 27, rest + 2*(layer+3*128*64+128), 4},
		{"qwen3, whose norms say the size of a head", append(slices.Clone(llama), ".self_attn.q_norm.weight 16", ".self_attn.k_norm.weight 16"), 25, rest + 2*(layer+3*128*64+32), 0},
		{"mixtral", slices.Concat(outside, attention, []string{".block_sparse_moe.gate.weight 2 64", ".block_sparse_moe.experts.0.w1.weight 96 64", ".block_sparse_moe.experts.0.w2.weight 64 96", ".block_sparse_moe.experts.0.w3.weight 96 64",
			".block_sparse_moe.experts.1.w1.weight 96 64", ".block_sparse_moe.experts.1.w2.weight 64 96", ".block_sparse_moe.experts.1.w3.weight 96 64"}), 29, rest + 2*(layer+2*64+2*3*96*64), 4},
	} {
		dims := map[string]int64{"seq": 8}
		if c.heads > 0 {
			dims["heads"] = c.heads
		}
		data := header(2, c.tensors...)
		x, err := ImportSafetensors(data, "m.safetensors", Options{Dims: dims})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if x.Weights != c.count || x.Graph.Params() != c.want || !SniffSafetensors(data) {
			t.Errorf("%s: %d tensors, %d parameters, want %d", c.name, x.Weights, x.Graph.Params(), c.want)
		}
	}
	for want, tensors := range map[string][]string{
		"m: safetensors: of 20 tensors none is model.norm.weight: is it a whole model, in one file?":         slices.Concat(outside[:1], outside[2:], attention, mlp),
		"m: safetensors: tensor model.layers.0.self_attn.sinks is none of this architecture's as it is read": append(slices.Clone(llama), ".self_attn.sinks 4"),
		"m: safetensors: tensor model.norm.weight has 32 elements, want 64 of model.norm.weight":             slices.Concat([]string{"model.norm.weight 32"}, outside[:1], outside[2:], attention, mlp),
	} {
		if _, err := ImportSafetensors(header(2, tensors...), "m", Options{Dims: map[string]int64{"heads": 4}}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		data []byte
		want string
	}{
		{[]byte("GGUF\x01\x00\x00\x00"), "f: GGUF: version 1, want 2 or 3"},
		{sample("llama", 512)[:200], "f: GGUF: the header is cut off"},
		{sample("falcon", 512), `f: GGUF: architecture "falcon" is not one of those that are read: cohere2, command-r, deepseek2, gemma, gemma2, gemma3, glm4, gpt-oss, granite, llama, olmo2, phi3, qwen2, qwen2moe, qwen3, qwen3moe, smollm3, stablelm, starcoder2`},
		{sample("qwen3", 512), "f: GGUF: of 22 tensors none is blk.0.attn_q_norm.weight: is it a whole model, in one file?"},
		{sample("gpt-oss", 512), "f: GGUF: number of experts is 0, want 1 to 4096"},
	} {
		if _, err := ImportGGUF(c.data, "f", Options{}); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := ImportConfig([]byte(`{"model_type": "bert"}`), "f", Options{}); err == nil || !strings.HasPrefix(err.Error(), `f: architecture "bert" is not`) {
		t.Error(err)
	}
}

// FuzzImport: no input panics, and every error is one line that begins with the file's
// name.
func FuzzImport(f *testing.F) {
	f.Add(sample("llama", 16))
	f.Add([]byte(configs["qwen2 0.5B"].json))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	o := Options{Dims: map[string]int64{"seq": 2, "heads": 1}}
	for _, c := range []string{
		`{"model_type": "qwen3_next", "num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4}`, `{"model_type": "nemotron_h", "hybrid_override_pattern": "M*-E", "moe_latent_size": 64}`,
		`{"model_type": "gemma4_text", "num_hidden_layers": 6, "num_kv_shared_layers": 2, "per_layer_config": {"05": {"head_dim": 64}}}`, `{"model_type": "glm_moe_dsa", "num_hidden_layers": 4, "index_topk_freq": 2}`,
		`{"model_type": "llama4", "text_config": {"model_type": "llama4_text", "num_hidden_layers": 2}}`, `{"model_type": "granitemoehybrid", "num_hidden_layers": 2, "layer_types": ["mamba", "attention"], "mamba_d_head": "auto"}`,
	} {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for sniff, read := range map[string]func([]byte, string, Options) (*Imported, error){"G": ImportGGUF, "{": ImportConfig, "": ImportSafetensors} {
			if sniff == "G" && !SniffGGUF(data) || sniff == "" && !SniffSafetensors(data) {
				continue
			}
			x, err := read(data, "f", o)
			if err == nil && x == nil || err != nil && (!strings.HasPrefix(err.Error(), "f: ") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%q", err)
			}
		}
	})
}

// Heads have a size where the file says it or the hidden size is a multiple of their number; else the
// model is refused, as transformers does.
func TestHeadsThatDoNotDivide(t *testing.T) {
	for text, want := range map[string]string{
		`"hidden_size": 64, "num_attention_heads": 4`:                 "",
		`"hidden_size": 64, "num_attention_heads": 5, "head_dim": 16`: "",
		`"hidden_size": 64, "num_attention_heads": 5`:                 "the hidden size 64 is no multiple of the 5 heads of attention, and nothing says the size of a head",
	} {
		config := `{"model_type": "llama", "num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 256, ` + text + `}`
		_, err := ImportConfig([]byte(config), "m", Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestCacheBits: keys and values are kept in 8 bits where the file says so, or --dim does.
func TestCacheBits(t *testing.T) {
	const model = `{"model_type": "llama", "dtype": "bfloat16", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100%s}`
	const modelopt = `, "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"%s}`
	plain, scheme := fmt.Sprintf(modelopt, ""), fmt.Sprintf(modelopt, `, "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": false}`)
	const two = 2 * 2 * 2 * 16 * 3 * 100 * 2 // keys and values of two layers: heads, columns, sequences, tokens, bytes
	for _, c := range []struct {
		rest string
		bits int64
		want units.Bytes
	}{{"", 0, two}, {"", 16, two}, {"", 8, two / 2}, {plain, 0, two}, {scheme, 0, two / 2}, {scheme, 16, two}} {
		dims := map[string]int64{"batch": 3, "seq": 1, "past": 100}
		if c.bits > 0 {
			dims["cache_bits"] = c.bits
		}
		x, err := ImportConfig([]byte(fmt.Sprintf(model, c.rest)), "m", Options{Dims: dims})
		if err != nil {
			t.Fatal(err)
		}
		kept := units.Bytes(0)
		for i := range graph.OpID(x.Graph.NumOps()) {
			if o := x.Graph.Op(i); o.Params == 0 && o.Kind == "VariableV2" {
				kept += o.Resident
			}
		}
		if kept != c.want {
			t.Errorf("%q in %d bits: %v are kept, want %v", c.rest, c.bits, kept, c.want)
		}
	}
	if _, err := ImportConfig([]byte(fmt.Sprintf(model, "")), "m", Options{Dims: map[string]int64{"cache_bits": 4}}); err == nil || !strings.Contains(err.Error(), "cache_bits is 4, want 8 or 16") {
		t.Errorf("4 bits: %v", err)
	}
}
