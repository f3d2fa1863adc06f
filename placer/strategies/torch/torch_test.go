package torch

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"placer/graph"
	"placer/graph/strategy"
)

// file is the file of a strategy of a captured step (python/tests/samples_fixture.py) of batch samples.
func file(t *testing.T, path, text string, batch int64) (*File, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := func(n int64) *graph.Graph {
		g, _, err := graph.ReadAt(data, path, map[string]int64{"batch": n})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	s, err := strategy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := strategy.NewModel(at(batch/int64(s.Data*s.MicroBatches)), at(batch), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Experts > 0 {
		m.Joint = at(batch / int64(s.Data*s.MicroBatches) * int64(s.Experts))
	}
	seconds := make([]float64, m.Micro.NumOps())
	for i := range seconds {
		seconds[i] = 1
	}
	blocks := strategy.NewBlocks(m, seconds)
	bounds, err := blocks.Cut(blocks.Loads([][]float64{seconds}, s.MicroBatches), s.Pipeline*s.Chunks, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	step, err := strategy.Derive(m, blocks, s, strategy.Options{Bounds: bounds, Fold: true})
	if err != nil {
		t.Fatalf("%s, %s: %v", path, text, err)
	}
	return New(m, step, batch)
}

const llama = "testdata/llama.json" // 2 layers, 4 heads, 2 of keys and values; hidden 32, feed-forward 64, 48 tokens, 8 of them a sample

// ofLayers is what each of llama's layers has of names.
func ofLayers(names ...string) (paths []string) {
	for _, layer := range []string{"layers.0.", "layers.1."} {
		for _, n := range names {
			paths = append(paths, layer+n)
		}
	}
	return paths
}

// TestSplitDecoder: Megatron-LM's split of a decoder (arXiv:1909.08053, section 3, and 2205.05198 for
// rows), by modules.
func TestSplitDecoder(t *testing.T) {
	f, err := file(t, llama, "tp=2 vocab sp", 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"columns", f.Columns, ofLayers("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")},
		{"rows", f.Rows, ofLayers("o_proj", "down_proj")},
		{"vocabulary's columns", f.VocabularyColumns, []string{"lm_head"}},
		{"vocabulary's rows", f.VocabularyRows, []string{"embed_tokens"}},
		{"by rows", f.ByRows, append(ofLayers("input_layernorm", "post_attention_layernorm"), "norm")},
	} {
		slices.Sort(c.got)
		slices.Sort(c.want)
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s:\n%s", c.what, d)
		}
	}
	if f, err = file(t, llama, "tp=2", 4); err != nil || f.VocabularyColumns != nil || f.VocabularyRows != nil || f.ByRows != nil {
		t.Errorf("without vocabulary and sequences: %+v, %v", f, err)
	}
}

// TestOrderOfColumns: an nn.Linear is cut where a rank's neighbouring columns are what its part of the
// block needs, and nowhere else.
func TestOrderOfColumns(t *testing.T) {
	for _, c := range []struct {
		block, strategy string
		parts           map[string][]int64
		want            string
	}{
		{"inner", "tp=2", nil, ""},
		{"inner", "tp=4", nil, ""},
		{"outer", "tp=2", map[string][]int64{"0.qkv": {16, 16, 16}}, ""}, // viewed as [3, heads, width]
		{"normed", "tp=2", nil, ""},                                      // every rank has the weight that all heads share
		{"averaged", "tp=2", nil, ""},
		{"experts", "tp=2", nil, ""}, // whose products are whole on every rank
		{"packed", "tp=2", map[string][]int64{"0.attention": {16, 16, 16}}, ""},
		{"packed", "tp=2 1f1b=2 mb=2", nil, "module 0.attention: an nn.MultiheadAttention is not cut in a pipeline"},
		{"halves", "tp=2", map[string][]int64{"0.up": {32, 32}}, ""},
		{"viewed", "tp=2", map[string][]int64{"0.up": {32, 32}}, ""}, // as [2, width]
		{"viewed", "tp=4", map[string][]int64{"0.up": {32, 32}}, ""},
		{"joined", "tp=2", nil, "module 0.a: cat: its columns [4 8 16] become [4 8 32]"},
		{"conv1d", "tp=2", nil, ""},
		{"crossed", "tp=2", nil, ""},
		{"scaled", "tp=2", nil, ""},
	} {
		f, err := file(t, "testdata/"+c.block+".json", c.strategy, 4)
		switch {
		case c.want == "" && (err != nil || len(f.Columns) != 1 || len(f.Rows) != 1):
			t.Errorf("%s, %s: %+v, %v", c.block, c.strategy, f, err)
		case c.want == "" && (f.Transposed != nil) != (c.block == "conv1d"):
			t.Errorf("%s, %s: transposed %v", c.block, c.strategy, f.Transposed)
		case c.want == "" && !cmp.Equal(f.Parts, c.parts):
			t.Errorf("%s, %s: parts %v, want %v", c.block, c.strategy, f.Parts, c.parts)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, %s: %v, want %q", c.block, c.strategy, err, c.want)
		}
	}
}

func TestStages(t *testing.T) {
	want := []string{"embed_tokens", "layers.0", "layers.1", "norm", "lm_head"}
	for _, c := range []struct {
		strategy, schedule string
		stages             int
	}{
		{"gpipe=2 mb=2", "gpipe", 2},
		{"1f1b=4 mb=4", "1f1b", 4},
		{"interleaved=2 chunks=2 mb=2", "interleaved", 4},
		{"zero-1=2 1f1b=2 tp=2 sp mb=2", "1f1b", 2},
	} {
		f, err := file(t, llama, c.strategy, 8)
		if err != nil {
			t.Errorf("%s: %v", c.strategy, err)
			continue
		}
		if len(f.Stages) != c.stages || !slices.Equal(slices.Concat(f.Stages...), want) || f.Schedule != c.schedule {
			t.Errorf("%s: %v, %q", c.strategy, f.Stages, f.Schedule)
		}
		for k, s := range f.Stages {
			if len(s) == 0 {
				t.Errorf("%s: stage %d has no module", c.strategy, k)
			}
		}
	}
	const tied = "../testdata/torch_gpt2.json" // whose head has the embedding's weight
	if f, err := file(t, tied, "1f1b=2 mb=2", 8); err != nil || f.Stages[0][0] != "wte" || !slices.Contains(f.Stages[1], "lm_head") {
		t.Errorf("a weight of two stages: %+v, %v", f, err)
	}
	if f, err := file(t, tied, "ddp=2", 8); err != nil || f.Stages != nil || f.Schedule != "" {
		t.Errorf("no stages: %+v, %v", f, err)
	}
}

// TestExperts: the modules whose experts ranks share out, and what is in the way.
func TestExperts(t *testing.T) {
	own := []string{"layers.0.experts", "layers.1.experts"}
	for _, c := range []struct {
		graph, strategy string
		paths           []string
		sent            Calls
		want            string
	}{
		// 8 samples of 8 tokens, each to two experts, 16 numbers of f32, and of f64 to a quarter of them. In
		// both passes rows go there and back, in two layers. Biases are picked by each row's expert, of
		// 8 bytes, of which torch sends their number alone.
		{"chosen", "ddp=2 ep", own, Calls{8, 8 * 4 * 8 * 2 * 16 * 4}, ""},
		{"chosen", "zero-1=4 ep=2 mb=2", own, Calls{16, 16 * 1 * 8 * 2 * 16 * 4}, ""},
		{"blocks", "ddp=4 ep", own, Calls{8, 8 * 2 * 8 * 16 * 8}, ""},
		{"blocks", "ddp=4", nil, Calls{}, ""},
		{"experts", "ddp=2 ep", nil, Calls{}, "module 0: it holds 0.router.weight beside its experts"},
		{"apart", "ddp=2 ep", nil, Calls{}, "module 0.experts.0.c_fc: experts are modules of their own"},
	} {
		f, err := file(t, "testdata/"+c.graph+".json", c.strategy, 8)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v, want %q", c.graph, c.strategy, err, c.want)
			}
		case err != nil:
			t.Errorf("%s, %s: %v", c.graph, c.strategy, err)
		default:
			got := f.Collectives.AllToAll
			if !slices.Equal(f.Experts, c.paths) || got.Calls != c.sent.Calls || got.Bytes < c.sent.Bytes || got.Bytes > c.sent.Bytes+c.sent.Bytes/20 {
				t.Errorf("%s, %s: experts %v, sent %+v, want %v and %+v", c.graph, c.strategy, f.Experts, got, c.paths, c.sent)
			}
		}
	}
}

func TestLayers(t *testing.T) {
	for path, want := range map[string][][]string{
		llama:                         {{"layers.0"}, {"layers.1"}},
		"../testdata/torch_gpt2.json": {{"h.0"}, {"h.1"}},
		"testdata/packed.json":        {{"0"}, {"1"}, {"2"}},
	} {
		if f, err := file(t, path, "zero-3=2", 4); err != nil || !cmp.Equal(f.Layers, want) {
			t.Errorf("%s: %+v, %v, want %v", path, f, err, want)
		}
	}
}

// TestCollectives: what rank 0 calls, by formulas. B samples of 8 tokens of 32 f32 are an activation.
func TestCollectives(t *testing.T) {
	const batch = 8
	data, err := os.ReadFile(llama)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := graph.ReadAt(data, llama, nil)
	if err != nil {
		t.Fatal(err)
	}
	params := 4 * g.Params()
	activation := func(samples int64) int64 { return samples * 8 * 32 * 4 }
	for _, c := range []struct {
		strategy string
		want     Collectives
	}{
		{"one device", Collectives{}},
		{"ddp=2", Collectives{AllReduce: Calls{1, params}}}, // one bucket
		{"ddp=2 mb=2", Collectives{AllReduce: Calls{1, params}}},
		{"zero-1=2", Collectives{ReduceScatter: Calls{1, params}, AllGather: Calls{1, params}}},
		{"tp=2", Collectives{AllReduce: Calls{2 * 4, 2 * 4 * activation(batch)}}}, // two blocks a layer, each once in either pass
		{"tp=2 mb=4", Collectives{AllReduce: Calls{4 * 2 * 4, 2 * 4 * activation(batch)}}},
		{"1f1b=2 mb=4", Collectives{Send: Calls{4, activation(batch)}}},
		{"ddp=2 1f1b=2 tp=2 mb=4", Collectives{Send: Calls{4, activation(batch / 2)}}},
	} {
		f, err := file(t, llama, c.strategy, batch)
		if err != nil {
			t.Fatal(err)
		}
		got := f.Collectives
		if f.Pipeline > 1 && f.Tensor > 1 { // of the first stage's layers, which the cut tells
			got.AllReduce = Calls{}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s:\n%s", c.strategy, d)
		}
	}
	// Where norms are behind the sums, two blocks a layer are reduced once in either pass too.
	const hidden = 16
	f, err := file(t, "testdata/encoder.json", "tp=2", batch)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Collectives{AllReduce: Calls{2 * 4, 2 * 4 * batch * 8 * hidden * 4}}, f.Collectives); d != "" {
		t.Errorf("norms behind sums:\n%s", d)
	}
	// A rank has half of each table's gradient, as of all but the 5 norms' 32 factors.
	norms := int64(4 * 5 * 32)
	for _, text := range []string{"zero-1=2 tp=2 vocab", "zero-2=2 tp=2 vocab mb=2"} {
		if f, err = file(t, llama, text, batch); err != nil {
			t.Fatal(err)
		}
		own := (params-norms)/2 + norms
		if c := f.Collectives; c.AllGather.Bytes != own || c.ReduceScatter.Bytes != own*int64(f.MicroBatches) {
			t.Errorf("%s: %+v of %d bytes of parameters", text, c, own)
		}
	}
	if f, err = file(t, llama, "zero-3=2", batch); err != nil {
		t.Fatal(err)
	}
	// Parameters are gathered for each pass (ZeRO, arXiv:1910.02054, section 7.2.2: 3 times the parameters
	// in all), but for the last layer's, which are there still.
	if c := f.Collectives; c.ReduceScatter.Bytes != params || c.AllGather.Bytes > 2*params || c.AllGather.Bytes < params {
		t.Errorf("zero-3: %+v of %d bytes of parameters", c, params)
	}
}

func TestWrite(t *testing.T) {
	f, err := file(t, llama, "zero-3=2 1f1b=2 tp=2 sp mb=2 recompute", 8)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"format": "placer strategy 1", "graph": "llama", "batch": 8.0, "trains": true, "strategy": "zero-3=2 1f1b=2 tp=2 sp mb=2 recompute",
		"data": 2.0, "sharding": "zero-3", "pipeline": 2.0, "schedule": "1f1b", "chunks": 1.0, "tensor": 2.0, "micro_batches": 2.0, "recompute": "layers",
		"vocabulary": false, "sequence": true,
	} {
		if got[key] != want {
			t.Errorf("%s: %v, want %v", key, got[key], want)
		}
	}
}

// TestStagesWithoutModules: the last stage may be the loss alone, and is a list in the file; no other may.
func TestStagesWithoutModules(t *testing.T) {
	s, err := strategy.Parse("gpipe=2 mb=2")
	if err != nil {
		t.Fatal(err)
	}
	x := &strategy.Modules{Paths: []string{"layer"}, Of: []int32{0, -1}}
	found, err := stages(x, &strategy.Step{Strategy: s, Chunk: []int32{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(found); err != nil || string(got) != `[["layer"],[]]` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := stages(x, &strategy.Step{Strategy: s, Chunk: []int32{1, 0}}); err == nil || !strings.Contains(err.Error(), "stage 0 has no module") {
		t.Errorf("a first stage without modules: %v", err)
	}
}
