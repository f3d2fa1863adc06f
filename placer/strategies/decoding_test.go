package strategies

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/graph/merge"
	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/units"
)

// configs returns the configurations of published decoders, by name.
func configs(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	data, err := os.ReadFile("../../graph/formats/decoder/testdata/published.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct{ Config json.RawMessage }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]json.RawMessage{}
	for name, m := range all {
		found[name] = m.Config
	}
	return found
}

// divisible returns those of configs whose attention ranks share out: all but decoders with layers that
// read the keys and values of others.
func divisible(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	all := configs(t)
	maps.DeleteFunc(all, func(_ string, config json.RawMessage) bool {
		return strings.Contains(string(config), "num_kv_shared_layers")
	})
	return all
}

// forms are the numbers of kernels that attention may be: one, or three that store its scores.
var forms = []int64{1, 3}

// decoding returns steps of one token behind past others, whose attention is so many kernels.
func decoding(config []byte, past, kernels int64) Family {
	return func(batch int64) (*graph.Graph, error) {
		x, err := decoder.ImportConfig(config, "decoder", decoder.Options{Dims: map[string]int64{"batch": batch, "seq": 1, "past": past, "attention_kernels": kernels}})
		if err != nil {
			return nil, err
		}
		return x.Graph, nil
	}
}

// caches adds up what a graph holds that is no parameter.
func caches(g *graph.Graph) (b units.Bytes) {
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "VariableV2" && o.Params == 0 {
			b += o.Resident
		}
	}
	return b
}

// TestKeysAndValuesOfAllSamples: however a step is divided, its devices hold the keys and
// values of all samples, each once.
func TestKeysAndValuesOfAllSamples(t *testing.T) {
	_, j := models8(t, small[0])
	const config = `{"model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 512}`
	const batch, past = 16, 100
	want := units.Bytes(4 * 2 * batch * past * 4 * 32 * 2) // layers, keys and values, heads of 32 numbers of f16
	for _, kernels := range forms {
		x := newModels(decoding([]byte(config), past, kernels), batch)
		for _, s := range meshes8() {
			if s.Sharding != strategy.Replicated || s.Vocabulary { // decoding ends in scores
				continue
			}
			step, err := x.derive(j, s, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := caches(step.Graph); got != want {
				t.Errorf("%d kernels, %v: holds %v of keys and values, want %v", kernels, s, got, want)
			}
		}
	}
}

// TestTokensBeforeChangeNoBlock: keys and values of tokens before are divided as those of a
// prompt are, and cost no communication.
func TestTokensBeforeChangeNoBlock(t *testing.T) {
	for name, config := range divisible(t) {
		var blocks, sums [4]int // of a prompt and behind tokens, in one kernel and in three
		for k := range blocks {
			_, split := splitOf(t, decoding(config, int64(64*(k%2)), forms[k/2]))
			blocks[k] = split.Blocks
			for _, partial := range split.Partial {
				if partial {
					sums[k]++
				}
			}
			if blocks[k] != blocks[0] || sums[k] != sums[0] {
				t.Errorf("%s, %d kernels, %d tokens before: %d blocks with %d sums, %d with %d of a prompt", name, forms[k/2], 64*(k%2), blocks[k], sums[k], blocks[0], sums[0])
			}
		}
	}
}

// splitOf returns what of a decoding step can be cut.
func splitOf(t *testing.T, f Family) (*graph.Graph, *strategy.Split) {
	t.Helper()
	a, err := f(2)
	if err != nil {
		t.Fatal(err)
	}
	b, err := f(4)
	if err != nil {
		t.Fatal(err)
	}
	m, err := strategy.NewModel(a, a, strategy.States(a, b))
	if err != nil {
		t.Fatal(err)
	}
	return a, strategy.FindSplit(m, strategy.Single(1))
}

// TestAttentionOfEveryFamilyIsSplit: whatever norms queries and keys have, whatever heads share,
// ranks share out the products of attention, and of experts.
func TestAttentionOfEveryFamilyIsSplit(t *testing.T) {
	for name, config := range divisible(t) {
		for k := range 4 {
			past, kernels := int64(64*(k%2)), forms[k/2]
			g, split := splitOf(t, decoding(config, past, kernels))
			for i := range graph.OpID(g.NumOps()) {
				indexer := strings.HasSuffix(g.Op(i).Module, ".indexer") // of one key for all heads, and of scores that all ranks need
				if kind := g.Op(i).Kind; (kind == "BatchMatMul" || kind == graph.Attention) && split.Shared[i] == indexer {
					t.Fatalf("%s behind %d tokens, %d kernels: %s is whole on every rank: %v", name, past, kernels, g.Op(i).Name, !split.Shared[i])
				}
			}
		}
	}
}

// TestExpertsAreAddedUpOnce: what a token's experts and the expert of all tokens give is added up
// before it is all-reduced: two all-reduces a layer, as without experts.
func TestExpertsAreAddedUpOnce(t *testing.T) {
	_, split := splitOf(t, decoding(configs(t)["DeepSeek-V3"], 64, 1))
	n := 0
	for _, partial := range split.Partial {
		if partial {
			n++
		}
	}
	if n != 2*61 {
		t.Errorf("%d all-reduces in 61 layers, want two in each", n)
	}
}

// TestCopiedHeads: where ranks are more than heads of keys and values, each has the head of its
// queries: projections and caches of heads are there ranks/heads times, products with queries once.
func TestCopiedHeads(t *testing.T) {
	_, j := models8(t, small[0])
	const batch, past, layers = 4, 100, 2
	for k := range 8 {
		heads, kernels := int64(1)<<(k%4), forms[k/4]
		config := fmt.Sprintf(`{"model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": %d, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": %d, "intermediate_size": 512, "vocab_size": 512}`, layers, heads)
		x := newModels(decoding([]byte(config), past, kernels), batch)
		g, err := x.graph(variant{batch, strategy.RecomputeNothing, 0})
		if err != nil {
			t.Fatal(err)
		}
		step, err := x.derive(j, strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: 8}, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20}, false)
		if err != nil {
			t.Fatal(err)
		}
		copies := 8 / heads
		if got, want := caches(step.Graph), units.Bytes(copies)*caches(g); got != want {
			t.Errorf("%d heads: ranks hold %v of keys and values, want %v", heads, got, want)
		}
		of := func(g *graph.Graph, suffix string) (n units.FLOPs) {
			for i := range graph.OpID(g.NumOps()) {
				if o := g.Op(i); strings.Contains(o.Name, suffix) {
					n += o.FLOPs
				}
			}
			return n
		}
		for _, c := range []struct {
			name   string
			copies int64
		}{{"k_proj/MatMul", copies}, {"v_proj/MatMul", copies}, {"q_proj/MatMul", 1}, {"o_proj/MatMul", 1}, {map[int64]string{1: "self_attn/Attention", 3: "self_attn/BatchMatMul"}[kernels], 1}, {"mlp/", 1}} {
			if got, want := of(step.Graph, c.name), units.FLOPs(c.copies)*of(g, c.name); got != want || want == 0 {
				t.Errorf("%d heads: %s of all ranks does %v, want %v", heads, c.name, got, want)
			}
		}
		for i := range graph.OpID(step.Graph.NumOps()) {
			o := step.Graph.Op(i)
			if !o.GEMM.IsZero() && o.GEMM.FLOPs() != o.FLOPs {
				t.Errorf("%d heads: %s does %v, its product %v is of %v", heads, o.Name, o.FLOPs, o.GEMM, o.GEMM.FLOPs())
			}
		}
	}
}

// repeating is attention of eight heads of queries over two of keys and values that are repeated
// for them, as Hugging Face's repeat_kv does, behind past other tokens, whose keys and values the
// step is handed.
func repeating(t *testing.T, past int64) *graph.Graph {
	t.Helper()
	const batch, seq, heads, shared, d = 2, 16, 8, 2, 32
	b := graph.NewBuilder("repeating")
	of := func(dims ...int64) graph.Tensor {
		n := int64(1)
		for _, k := range dims {
			n *= k
		}
		return graph.Tensor{DType: graph.F16, Shape: dims, Bytes: units.Bytes(2 * n)}
	}
	op := func(name string, kind graph.Kind, m graph.GEMM, out graph.Tensor, in ...graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: kind, GEMM: m, FLOPs: m.FLOPs(), DType: graph.F16, Forward: graph.None}, in, out), 0)
	}
	linear := func(name string, x graph.TensorID, k, n int64) graph.TensorID {
		w := of(k, n)
		w.Resident = true
		v := b.Output(b.Op(graph.Op{Name: name + "/w", Kind: "VariableV2", Params: k * n, Resident: w.Bytes, DType: graph.F16, Forward: graph.None}, nil, w), 0)
		return op(name, "MatMul", graph.GEMM{Batch: 1, M: batch * seq, N: n, K: k}, of(batch*seq, n), x, v)
	}
	x := op("x", "Placeholder", graph.GEMM{}, of(batch*seq, heads*d))
	split := func(name string, y graph.TensorID, n int64) graph.TensorID {
		y = op(name+"/view", "Reshape", graph.GEMM{}, of(batch, seq, n, d), y)
		return op(name+"/transpose", "Transpose", graph.GEMM{}, of(batch, n, seq, d), y)
	}
	all := seq + past
	repeat := func(name string, y graph.TensorID) graph.TensorID {
		if past > 0 {
			y = op(name+"/concat", "ConcatV2", graph.GEMM{}, of(batch, shared, all, d), op(name+"/past", "Placeholder", graph.GEMM{}, of(batch, shared, past, d)), y)
		}
		y = op(name+"/expand", "Expand", graph.GEMM{}, of(batch, shared, heads/shared, all, d), y)
		return op(name+"/merge", "Reshape", graph.GEMM{}, of(batch, heads, all, d), y)
	}
	q := split("q", linear("q_proj", x, heads*d, heads*d), heads)
	k := repeat("k", split("k", linear("k_proj", x, heads*d, shared*d), shared))
	v := repeat("v", split("v", linear("v_proj", x, heads*d, shared*d), shared))
	p := op("scores", "BatchMatMul", graph.GEMM{Batch: batch * heads, M: seq, N: all, K: d}, of(batch, heads, seq, all), q, k)
	p = op("softmax", "Softmax", graph.GEMM{}, of(batch, heads, seq, all), p)
	y := op("values", "BatchMatMul", graph.GEMM{Batch: batch * heads, M: seq, N: d, K: all}, of(batch, heads, seq, d), p, v)
	y = op("y/transpose", "Transpose", graph.GEMM{}, of(batch, seq, heads, d), y)
	y = op("y/view", "Reshape", graph.GEMM{}, of(batch*seq, heads*d), y)
	linear("o_proj", y, heads*d, heads*d)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestRepeatedHeads: of keys and values that are repeated for their queries ranks share out the
// heads before that, or have copies, and behind it as many as queries have.
func TestRepeatedHeads(t *testing.T) {
	for _, past := range []int64{0, 48} {
		sharesRepeated(t, repeating(t, past))
	}
}

func sharesRepeated(t *testing.T, g *graph.Graph) {
	t.Helper()
	m, err := strategy.NewModel(g, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	alike := make([]float64, g.NumOps()) // blocks are not cut
	for i := range alike {
		alike[i] = 1
	}
	blocks := strategy.NewBlocks(m, alike)
	for _, ranks := range []int{2, 4, 8} {
		step, err := strategy.Derive(m, blocks, strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: ranks}, MicroBatches: 1, Chunks: 1, Bucket: 1}, strategy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		flops, bytes := map[string]units.FLOPs{}, map[string]units.Bytes{}
		for i := range graph.OpID(step.Graph.NumOps()) {
			if from := step.From[i]; from != graph.None {
				name := g.Op(from).Name
				flops[name] += step.Graph.Op(i).FLOPs
				out, _ := step.Graph.Outputs(i)
				bytes[name] += step.Graph.Tensor(out).Bytes
			}
		}
		copies := units.FLOPs(max(1, ranks/2))
		for i := range graph.OpID(g.NumOps()) {
			o := g.Op(i)
			want := o.FLOPs
			if o.Name == "k_proj" || o.Name == "v_proj" {
				want *= copies
			}
			if flops[o.Name] != want {
				t.Errorf("%d ranks: %s does %v, want %v", ranks, o.Name, flops[o.Name], want)
			}
			out, _ := g.Outputs(i)
			if size := g.Tensor(out).Bytes; o.Name == "k/merge" && bytes[o.Name] != size || (o.Name == "k/transpose" || o.Name == "k/past") && bytes[o.Name] != units.Bytes(copies)*size {
				t.Errorf("%d ranks: %s has %v on all, %v in the model", ranks, o.Name, bytes[o.Name], size)
			}
		}
	}
}

// TestCopiedHeadsOfOneProduct: where one product makes queries, keys and values, each of as many
// ranks as there are heads of queries has the columns of one and those of the head that it reads:
// together H + 2H of H + 2K heads' columns, of weights, operations and biases.
func TestCopiedHeadsOfOneProduct(t *testing.T) {
	_, j := models8(t, small[0])
	const batch, past, ranks = 4, 100, 8
	for name, config := range map[string]string{
		"self_attn/qkv_proj/":             `{"model_type": "phi3", "torch_dtype": "bfloat16", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": %d, "intermediate_size": 512, "vocab_size": 512}`,
		"self_attention/query_key_value/": `{"model_type": "falcon", "torch_dtype": "bfloat16", "new_decoder_architecture": true, "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8, "num_kv_heads": %d, "bias": true, "vocab_size": 512}`,
	} {
		for k := range 8 {
			heads, kernels := int64(1)<<(k%4), forms[k/4]
			x := newModels(decoding(fmt.Appendf(nil, config, heads), past, kernels), batch)
			g, err := x.graph(variant{batch, strategy.RecomputeNothing, 0})
			if err != nil {
				t.Fatal(err)
			}
			step, err := x.derive(j, strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: ranks}, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20}, false)
			if err != nil {
				t.Errorf("%s, %d heads: %v", name, heads, err)
				continue
			}
			if got, want := caches(step.Graph), units.Bytes(ranks/heads)*caches(g); got != want {
				t.Errorf("%s, %d heads: ranks hold %v of keys and values, want %v", name, heads, got, want)
			}
			sum := func(g *graph.Graph) (params, flops float64) {
				for i := range graph.OpID(g.NumOps()) {
					if o := g.Op(i); strings.Contains(o.Name, name) {
						params += float64(o.Params)
						if flops += float64(o.FLOPs); !o.GEMM.IsZero() && o.GEMM.FLOPs() != o.FLOPs {
							t.Errorf("%s: %v, its product %v is of %v", o.Name, o.FLOPs, o.GEMM, o.GEMM.FLOPs())
						}
					}
				}
				return params, flops
			}
			params, flops := sum(step.Graph)
			p, f := sum(g)
			more := float64(ranks+2*ranks) / float64(ranks+2*heads)
			if params != more*p || flops != more*f || p == 0 {
				t.Errorf("%s, %d heads: %g parameters and %g operations of %g and %g, want %g times as many", name, heads, params, flops, p, f, more)
			}
		}
	}
}

// TestMergedProductsAreSplit: merged products of queries, keys and values, and of gate and up, are
// shared out as the ones that they are made of: as many blocks and sums, no attention whole, and as
// many parameters on all ranks, also where these are more than the heads of keys and values.
func TestMergedProductsAreSplit(t *testing.T) {
	_, j := models8(t, small[0])
	for name, config := range divisible(t) {
		for _, kernels := range forms {
			apart := decoding(config, 64, kernels)
			together := func(batch int64) (*graph.Graph, error) {
				g, err := apart(batch)
				if err != nil {
					return nil, err
				}
				return merge.Products(g, merge.All)
			}
			_, before := splitOf(t, apart)
			g, after := splitOf(t, together)
			sums := func(s *strategy.Split) (n int) {
				for _, partial := range s.Partial {
					if partial {
						n++
					}
				}
				return n
			}
			if before.Blocks != after.Blocks || sums(before) != sums(after) {
				t.Errorf("%s: %d blocks with %d sums, %d with %d where products are apart", name, after.Blocks, sums(after), before.Blocks, sums(before))
			}
			for i := range graph.OpID(g.NumOps()) {
				if kind := g.Op(i).Kind; (kind == "BatchMatMul" || kind == graph.Attention) && after.Shared[i] == strings.HasSuffix(g.Op(i).Module, ".indexer") {
					t.Fatalf("%s: %s is whole on every rank: %v", name, g.Op(i).Name, !after.Shared[i])
				}
			}
			if strings.Contains(string(config), "experts") { // large, and told by blocks
				continue
			}
			s := strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: 8}, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20}
			one, err := newModels(apart, 4).derive(j, s, true)
			if err != nil {
				if _, why := newModels(together, 4).derive(j, s, true); why == nil {
					t.Errorf("%s: apart %v, merged well", name, err)
				}
				continue
			}
			other, err := newModels(together, 4).derive(j, s, true)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if a, b := one.Graph.Params(), other.Graph.Params(); a != b {
				t.Errorf("%s: a rank has %d parameters, %d where products are apart", name, b, a)
			}
		}
	}
}

// TestPrefillsFollowOneAnother: stages begin the next prompt before the last has left the pipeline, in a
// stream of prompts one at a time too: constants that have a number for each sample hold nothing of it.
func TestPrefillsFollowOneAnother(t *testing.T) {
	const config = `{"model_type": "llama", "dtype": "bfloat16", "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 1024, "vocab_size": 100}`
	family := func(batch int64) (*graph.Graph, error) {
		x, err := decoder.ImportConfig([]byte(config), "decoder", decoder.Options{Dims: map[string]int64{"batch": batch, "seq": 4096}})
		if err != nil {
			return nil, err
		}
		return x.Graph, nil
	}
	m, err := hw.Take("h100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	g, err := family(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := strategy.Parse("1f1b=2")
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewComparison(problem.Source{Graph: g}, family, m, Config{Batch: 1, Strategy: &s, Clock: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	r := x.Rows(t.Context(), nil)[0]
	if r.Result == nil || r.Stream == nil || r.Stream.Every > 0.6*r.Seconds {
		t.Errorf("a prompt takes %+v, a stream of them %+v", r.Result, r.Stream)
	}
}
