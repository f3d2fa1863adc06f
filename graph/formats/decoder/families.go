package decoder

import (
	_ "embed" // for what transformers assumes
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/workloads"
)

// A family is decoders of one model_type: the names of their modules, and what sets their
// blocks apart from Llama's.
type family struct {
	names
	chosen []choice
}

// names are those of the modules in Hugging Face's implementation (transformers 5.24).
type names struct {
	table, positions, norm, blocks string // paths
	head                           string
	before, mlpBefore              string // within a block
	attention, query, key, value   string
	fused, out                     string
	mlp, gate, up, down            string
}

// llamaNames are Llama's, which most families have.
func llamaNames() names {
	return names{table: "model.embed_tokens", norm: "model.norm", blocks: "model.layers", head: "lm_head", before: "input_layernorm", mlpBefore: "post_attention_layernorm",
		attention: "self_attn", query: "q_proj", key: "k_proj", value: "v_proj", out: "o_proj", mlp: "mlp", gate: "gate_proj", up: "up_proj", down: "down_proj"}
}

// plainNames are Llama's for a perceptron without a gate.
func plainNames(up, down string) names {
	n := llamaNames()
	n.gate, n.up, n.down = "", up, down
	return n
}

// gptNames are GPT-2's, with other names of what follows.
func gptNames(table, attention, fused, out, up, down string) names {
	return names{table: "transformer." + table, norm: "transformer.ln_f", blocks: "transformer.h", head: "lm_head", before: "ln_1", mlpBefore: "ln_2",
		attention: attention, fused: fused, out: out, mlp: "mlp", up: up, down: down}
}

// seeingNames are Llama's within a model that sees too.
func seeingNames() names {
	n := llamaNames()
	n.table, n.norm, n.blocks = "model.language_model.embed_tokens", "model.language_model.norm", "model.language_model.layers"
	return n
}

// ofWhole reports whether the family's paths are those of a model of several parts.
func (f family) ofWhole() bool { return f.names == seeingNames() }

// families are those that are read, by model_type.
func families() map[string]family {
	llama, seeing, plain := llamaNames(), seeingNames(), plainNames("up_proj", "down_proj")
	neox := names{table: "gpt_neox.embed_in", norm: "gpt_neox.final_layer_norm", blocks: "gpt_neox.layers", head: "lm_head", before: "input_layernorm", mlpBefore: "post_attention_layernorm",
		attention: "attention", fused: "query_key_value", out: "dense", mlp: "mlp", up: "dense_h_to_4h", down: "dense_4h_to_h"}
	opt := names{table: "model.decoder.embed_tokens", positions: "model.decoder.embed_positions", norm: "model.decoder.final_layer_norm", blocks: "model.decoder.layers", head: "lm_head",
		before: "self_attn_layer_norm", mlpBefore: "final_layer_norm", attention: "self_attn", query: "q_proj", key: "k_proj", value: "v_proj", out: "out_proj", up: "fc1", down: "fc2"}
	phi := plainNames("fc1", "fc2")
	phi.out, phi.norm = "dense", "model.final_layernorm"
	gpt2 := gptNames("wte", "attn", "c_attn", "c_proj", "c_fc", "c_proj")
	gpt2.positions = "transformer.wpe"
	gptj := gptNames("wte", "attn", "", "out_proj", "fc_in", "fc_out")
	gptj.query, gptj.key, gptj.value = "q_proj", "k_proj", "v_proj"
	falcon := gptNames("word_embeddings", "self_attention", "query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h")
	falcon.before, falcon.mlpBefore = "input_layernorm", "post_attention_layernorm"

	bamba := llama
	bamba.norm, bamba.mlpBefore, bamba.mlp = "model.final_layernorm", "pre_ff_layernorm", "feed_forward"
	vault, llama4 := llama, llama
	llama4.mlp = "feed_forward"
	vault.mlpBefore = "pre_feedforward_layernorm"

	attentionBias := biases(func(c *config) (qkv, out, mlp bool) { return c.AttentionBias, c.AttentionBias, false })
	llamaBias := biases(func(c *config) (qkv, out, mlp bool) { return c.AttentionBias, c.AttentionBias, c.MLPBias })
	inputBias := biases(func(c *config) (qkv, out, mlp bool) { return c.AttentionBias, false, c.MLPBias })
	always := func(qkv, out, mlp bool) choice {
		return biases(func(*config) (bool, bool, bool) { return qkv, out, mlp })
	}
	deepSeek := func(sparse func(*config, int64) bool) choice {
		return experts(routed{router: "gate", shared: "shared_experts", correction: true}, sparse)
	}
	mayHaveHeadNorms := when(func(c *config) bool { return c.QKNorm }, headNorms)
	qwenWindow := windows(func(c *config, i int64) bool { return i >= c.MaxWindow }, ifUsed)
	together := linear(workloads.Delta{QKVZ: workloads.Linear{Name: "in_proj_qkvz"}, BA: workloads.Linear{Name: "in_proj_ba"}})
	apart := linear(workloads.Delta{QKV: workloads.Linear{Name: "in_proj_qkv"}, Z: workloads.Linear{Name: "in_proj_z"}, B: workloads.Linear{Name: "in_proj_b"}, A: workloads.Linear{Name: "in_proj_a"}})
	qwen2 := []choice{always(true, false, false), qwenWindow}
	return map[string]family{
		"arcee":            {plain, []choice{llamaBias}},
		"bamba":            {bamba, []choice{llamaBias, hybrid}},
		"bloom":            {falcon, []choice{layerNorm(true, true), always(true, true, true), noRotary, embeddingNorm("transformer.word_embeddings_layernorm")}},
		"cohere":           {llama, []choice{layerNorm(true, false), attentionBias, parallel(sharedNorm), scaledLogits, cohereNorms}},
		"cohere2":          {llama, []choice{layerNorm(true, false), attentionBias, parallel(sharedNorm), scaledLogits, windows(each(4)), rotaryIfLocal}},
		"cwm":              {llama, []choice{windows(afterFourth)}},
		"deepseek_v2":      {llama, []choice{latent, experts(routed{router: "gate", shared: "shared_experts"}, denseFirst)}},
		"deepseek_v3":      {llama, []choice{latent, deepSeek(denseFirst)}},
		"deepseek_v32":     {llama, []choice{latent, indexed, deepSeek(typed(3))}},
		"dots1":            {llama, []choice{attentionBias, headNorms, windows(func(c *config, i int64) bool { return i >= c.MaxWindow }), deepSeek(denseFirst)}},
		"ernie4_5":         {llama, []choice{biases(func(c *config) (qkv, out, mlp bool) { return c.UseBias, c.UseBias, c.UseBias })}},
		"ernie4_5_moe":     {llama, []choice{biases(func(c *config) (qkv, out, mlp bool) { return c.UseBias, c.UseBias, c.UseBias }), experts(routed{router: "gate", shared: "shared_experts", correction: true, statics: "moe_statics"}, between)}},
		"exaone4":          {llama, []choice{headNorms, normsAfter, windows(each(4)), rotaryIfLocal}},
		"exaone_moe":       {llama, []choice{headNorms, windows(each(4)), rotaryIfLocal, deepSeek(typed(1))}},
		"falcon":           {falcon, []choice{layerNorm(true, true), biases(func(c *config) (qkv, out, mlp bool) { return c.Bias, c.Bias, c.Bias }), falconHeads, falconNorms}},
		"flex_olmo":        {llama, []choice{attentionBias, wholeNorms, normsAfter, experts(routed{router: "gate"}, allSparse)}},
		"gemma":            {llama, []choice{attentionBias, scaledEmbedding}},
		"gemma2":           {llama, []choice{attentionBias, scaledEmbedding, normsAround("post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"), windows(each(2)), caps}},
		"gemma3_text":      {llama, []choice{attentionBias, scaledEmbedding, headNorms, normsAround("post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"), windows(each(6)), caps, causal}},
		"gemma4_text":      {llama, []choice{attentionBias, scaledEmbedding, normsAround("post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"), windows(each(6)), lastSeesAll, caps, causal, gemma4}},
		"glm":              {llama, []choice{inputBias, fusedMLP}},
		"glm4":             {llama, []choice{inputBias, fusedMLP, normsAround("post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm")}},
		"glm4_moe":         {llama, []choice{inputBias, mayHaveHeadNorms, deepSeek(denseFirst)}},
		"glm4_moe_lite":    {llama, []choice{latent, deepSeek(typed(1))}},
		"glm4v_moe_text":   {seeing, []choice{inputBias, mayHaveHeadNorms, deepSeek(denseFirst)}},
		"glm4v_text":       {seeing, []choice{always(true, false, false), fusedMLP, normsAround("post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm")}},
		"glm_moe_dsa":      {llama, []choice{latent, indexed, deepSeek(typed(3))}},
		"gpt2":             {gpt2, []choice{layerNorm(true, true), always(true, true, true), noRotary}},
		"gpt_bigcode":      {gpt2, []choice{layerNorm(true, true), always(true, true, true), noRotary, when(func(c *config) bool { return c.MultiQuery }, oneKey)}},
		"gpt_neox":         {neox, []choice{layerNorm(true, true), biases(func(c *config) (qkv, out, mlp bool) { return c.AttentionBias, c.AttentionBias, true }), when(func(c *config) bool { return c.Parallel }, parallel(ownNorm))}},
		"gpt_oss":          {llama, []choice{attentionBias, sinks, windows(each(2)), experts(routed{router: "router", bias: true}, allSparse)}},
		"gptj":             {gptj, []choice{layerNorm(true, true), always(false, false, true), parallel(sharedNorm), headBias}},
		"granite":          {llama, []choice{llamaBias, multipliers}},
		"granite_swa":      {llama, []choice{llamaBias, multipliers, sinks, windows(afterFourth)}},
		"granitemoe":       {llama, []choice{attentionBias, multipliers, experts(routed{path: "block_sparse_moe", router: "router"}, allSparse)}},
		"granitemoehybrid": {llama, []choice{attentionBias, multipliers, sharedMLP, hybrid}},
		"helium":           {llama, []choice{inputBias}},
		"hunyuan_v1_dense": {llama, []choice{attentionBias, headNormsNamed("query_layernorm", "key_layernorm")}},
		"hy_v3":            {llama, []choice{attentionBias, headNorms, deepSeek(typed(1))}},
		"internlm3": {llama, []choice{biases(func(c *config) (qkv, out, mlp bool) {
			return c.AttentionBias || c.QKVBias, c.AttentionBias || c.QKVBias, c.MLPBias || c.Bias
		})}},
		"iquestcoder":     {llama, []choice{llamaBias}},
		"jais2":           {plain, []choice{layerNorm(true, true), llamaBias}},
		"kimi_k2":         {llama, []choice{latent, deepSeek(denseFirst)}},
		"llama":           {llama, []choice{llamaBias}},
		"llama4_text":     {llama4, []choice{attentionBias, llama4Attention, experts(routed{router: "router", shared: "shared_expert", sharedCount: 1}, interleaved), widerDense}},
		"mamba2":          {scanNames("backbone", "norm_f"), []choice{single(keepsState)}},
		"mellum":          {llama, []choice{attentionBias, headNorms, windows(none), experts(routed{router: "gate"}, typed(0))}},
		"minicpm3":        {llama, []choice{latent, scaledEmbedding, scaledLogits, scaledBlocks}},
		"minimax_m2":      {llama, []choice{wholeNorms, experts(routed{router: "gate", correction: true}, allSparse)}},
		"ministral":       {llama, []choice{windows(everywhere)}},
		"ministral3":      {llama, []choice{windows(everywhere)}},
		"mistral":         {llama, []choice{windows(everywhere)}},
		"mistral4":        {llama, []choice{latent, experts(routed{router: "gate", shared: "shared_experts"}, denseFirst)}},
		"mixtral":         {llama, []choice{windows(everywhere), experts(routed{router: "gate"}, allSparse)}},
		"nemotron":        {plain, []choice{layerNorm(true, true), llamaBias}},
		"nemotron_h":      {scanNames("model", "norm_f"), []choice{biases(func(c *config) (qkv, out, mlp bool) { return false, false, c.MLPBias }), single(keepsState), nemotronExperts}},
		"olmo":            {llama, []choice{layerNorm(false, false), attentionBias}},
		"olmo2":           {llama, []choice{attentionBias, wholeNorms, normsAfter}},
		"olmo3":           {llama, []choice{attentionBias, wholeNorms, normsAfter, windows(each(4))}},
		"olmoe":           {llama, []choice{attentionBias, wholeNorms, experts(routed{router: "gate"}, allSparse)}},
		"opt":             {opt, []choice{layerNorm(true, true), biases(func(c *config) (qkv, out, mlp bool) { return c.EnableBias, c.EnableBias, c.EnableBias }), noRotary, optKinds}},
		"phi":             {phi, []choice{layerNorm(true, true), always(true, true, true), parallel(sharedNorm), headBias, noHeadNorms}},
		"phi3":            {llama, []choice{fusedQKV, fusedMLP, windows(everywhere)}},
		"phimoe":          {llama, []choice{layerNorm(true, true), attentionBias, windows(everywhere), experts(routed{router: "router"}, allSparse), when(func(c *config) bool { return c.HeadBias }, headBias)}},
		"qwen2":           {llama, qwen2},
		"qwen2_5_vl":      {seeing, qwen2},
		"qwen2_5_vl_text": {seeing, qwen2},
		"qwen2_moe": {llama, []choice{biases(func(c *config) (qkv, out, mlp bool) { return c.QKVBias, false, false }), windows(func(c *config, i int64) bool { return i%2 == 0 && i < c.MaxWindow }, ifUsed),
			experts(routed{router: "gate", shared: "shared_expert", sharedGate: "shared_expert_gate"}, sparseSteps)}},
		"qwen2_vl":          {seeing, qwen2},
		"qwen2_vl_text":     {seeing, qwen2},
		"qwen3":             {llama, []choice{attentionBias, headNorms, qwenWindow}},
		"qwen3_5_moe_text":  {seeing, []choice{attentionBias, headNorms, gated, apart, experts(routed{router: "gate", shared: "shared_expert", sharedGate: "shared_expert_gate"}, allSparse)}},
		"qwen3_5_text":      {seeing, []choice{attentionBias, headNorms, gated, apart}},
		"qwen3_moe":         {llama, []choice{attentionBias, headNorms, windows(everywhere, ifUsed), experts(routed{router: "gate"}, sparseSteps)}},
		"qwen3_next":        {llama, []choice{attentionBias, headNorms, gated, together, experts(routed{router: "gate", shared: "shared_expert", sharedGate: "shared_expert_gate"}, sparseSteps)}},
		"qwen3_vl_moe_text": {seeing, []choice{attentionBias, headNorms, experts(routed{router: "gate"}, sparseSteps)}},
		"qwen3_vl_text":     {seeing, []choice{attentionBias, headNorms}},
		"sarvam_mla":        {llama, []choice{latent, deepSeek(denseFirst)}},
		"sarvam_moe":        {llama, []choice{biases(func(c *config) (qkv, out, mlp bool) { return c.AttentionBias || c.UseQKVBias, false, false }), mayHaveHeadNorms, deepSeek(denseFirst)}},
		"seed_oss":          {llama, []choice{biases(func(c *config) (qkv, out, mlp bool) { return c.AttentionBias, c.OutBias, c.MLPBias })}},
		"smollm3":           {llama, []choice{llamaBias, smolRotary, windows(func(c *config, i int64) bool { return !c.turned(i) }, ifUsed)}},
		"solar_open":        {llama, []choice{attentionBias, deepSeek(allSparse)}},
		"stablelm":          {llama, []choice{layerNorm(true, true), biases(func(c *config) (qkv, out, mlp bool) { return c.UseQKVBias, false, false }), when(func(c *config) bool { return c.Parallel }, parallel(sharedNorm)), noHeadNorms}},
		"starcoder2":        {plainNames("c_fc", "c_proj"), []choice{layerNorm(true, true), biases(func(c *config) (qkv, out, mlp bool) { return c.UseBias, c.UseBias, c.UseBias }), windows(everywhere)}},
		"vaultgemma":        {vault, []choice{attentionBias, scaledEmbedding, windows(each(2)), caps}},
		"youtu":             {llama, []choice{latent}},
	}
}

// known reports an architecture that is not read.
func known(name string) error {
	all := families()
	if _, ok := all[name]; ok {
		return nil
	}
	return fmt.Errorf("architecture %q is not one of those that are read: %s", foreign.Brief(name), strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}

// defaults has, by model_type, what transformers 5.24 takes where a config.json says nothing.
//
//go:embed defaults.json
var defaults []byte

// assumedAs has families of which transformers has no class for a decoder, and the family whose
// defaults theirs are: files of a model of several parts that have the decoder's sizes beside
// those of the parts, and Kimi K2's, which is built as DeepSeek-V3.
var assumedAs = map[string]string{"kimi_k2": "deepseek_v3", "qwen2_vl": "qwen2_vl_text", "qwen2_5_vl": "qwen2_5_vl_text"}

// assumed returns what a config.json of that family has where it says nothing.
func assumed(kind string) (*config, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(defaults, &all); err != nil {
		return nil, err
	}
	c := &config{}
	if as, ok := assumedAs[kind]; ok {
		kind = as
	}
	return c, json.Unmarshal(all[kind], c)
}

// decoderOf returns the decoder that c describes.
func decoderOf(c *config) (*workloads.Decoder, error) {
	f := families()[c.Type]
	if n := c.layers(); n < 1 || n > workloads.MaxLayers {
		return nil, fmt.Errorf("number of layers is %d, want 1 to %d", n, workloads.MaxLayers)
	}
	if c.MLPTypes != nil {
		if err := c.named("mlp_layer_types", len(c.MLPTypes)); err != nil {
			return nil, err
		}
	}
	for i, t := range c.MLPTypes {
		if t != "dense" && t != "sparse" {
			return nil, fmt.Errorf("mlp_layer_types: layer %d has %q, want dense or sparse", i, foreign.Brief(t))
		}
	}
	act, err := c.activation()
	if err != nil {
		return nil, err
	}
	d := &workloads.Decoder{Hidden: c.hidden(), Vocab: c.Vocab, DType: c.dtype(), Embedding: workloads.Embedding{Table: f.table, Positions: f.positions},
		Norm: workloads.Norm{Path: f.norm, Kind: "RMSNorm", Dims: []int64{c.hidden()}}, Head: workloads.Head{Path: f.head, Tied: c.Tied}}
	if f.positions != "" {
		d.Embedding.Rows = max(c.NPos, c.Positions)
	}
	d.Blocks = make([]workloads.Block, c.layers())
	for i := range d.Blocks {
		d.Blocks[i] = f.block(c, act, fmt.Sprintf("%s.%d", f.blocks, i))
		for _, choose := range f.chosen {
			if err := choose(c, d, &d.Blocks[i], int64(i)); err != nil {
				return nil, err
			}
		}
		if err := c.divided(&d.Blocks[i].Attention); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// divided reports heads of attention a whose size nothing says and the hidden size does not give.
func (c *config) divided(a *workloads.Attention) error {
	heads := c.heads()
	if heads == 0 || a.Heads != heads || or(c.HeadDim) > 0 || a.KeyDim != c.headDim() || c.hidden()%heads == 0 {
		return nil
	}
	return fmt.Errorf("the hidden size %d is no multiple of the %d heads of attention, and nothing says the size of a head", c.hidden(), heads)
}

// block is a block of Llama's kind under the family's names.
func (f family) block(c *config, act graph.Kind, path string) workloads.Block {
	norm := func(name string) workloads.Norm {
		return workloads.Norm{Path: path + "." + name, Kind: "RMSNorm", Dims: []int64{c.hidden()}}
	}
	inside := func(name string) string { return strings.TrimSuffix(path+"."+name, ".") }
	named := func(name string) workloads.Linear { return workloads.Linear{Name: name} }
	return workloads.Block{Path: path, Before: norm(f.before), MLPBefore: norm(f.mlpBefore),
		Attention: workloads.Attention{Path: inside(f.attention), Heads: c.heads(), KVHeads: c.kvHeads(), KeyDim: c.headDim(), ValueDim: c.headDim(),
			Query: named(f.query), Key: named(f.key), Value: named(f.value), Fused: named(f.fused), Out: named(f.out), Rotary: true},
		MLP: workloads.MLP{Path: inside(f.mlp), Width: c.ffn(), Activation: act, Gate: named(f.gate), Up: named(f.up), Down: named(f.down)}}
}
