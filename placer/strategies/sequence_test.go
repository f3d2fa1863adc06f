package strategies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/graph/strategy"
	"placer/graph/train"
	"placer/units"
)

// randomDecoder returns a small Llama whose sizes 8 ranks can share, and its layers, width,
// columns of a feed-forward part, vocabulary and tokens of a sequence.
func randomDecoder(rng *rand.Rand) (name string, layers, hidden, ffn, vocab, seq int64) {
	heads := 8 * (1 + rng.Int64N(2))
	layers, hidden, ffn, vocab, seq = 1+rng.Int64N(4), heads*8*(1+rng.Int64N(3)), 8*(8+rng.Int64N(32)), 8*(10+rng.Int64N(100)), 8*(1+rng.Int64N(8))
	name = fmt.Sprintf("llama:layers=%d,hidden=%d,heads=%d,kv_heads=%d,ffn=%d,vocab=%d,seq=%d,attention=%s", layers, hidden, heads, heads, ffn, vocab, seq, []string{"products", "kernel"}[rng.IntN(2)])
	return
}

// TestSameBytes: sequences that are split cost no byte on rings: every all-reduce of activations
// or their gradients becomes a reduce-scatter and an all-gather of the same tensor (Korthikanti et
// al., arXiv:2205.05198, section 4.2.2). What is gathered besides is what the first products of
// the 2L blocks and of the output read, again before their gradients; what is all-reduced
// besides are the gradients of the norms, once, and three numbers of each row of the loss.
func TestSameBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0x73))
	for range 30 {
		name, layers, hidden, _, _, seq := randomDecoder(rng)
		name = strings.Replace(name, "attention=kernel", "attention=products", 1)
		tensor, micro := []int{2, 4, 8}[rng.IntN(3)], []int{1, 2, 4}[rng.IntN(3)]
		s := strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: tensor}, MicroBatches: micro, Chunks: 1, Bucket: 1 << 20, Vocabulary: true, Recompute: strategy.Recompute(rng.IntN(2))}
		var bytes [2][3]units.Bytes // plain and by rows, of each kind of collective
		for k := range bytes {
			s.Sequence = k == 1
			x, j := models8(t, name)
			step, err := x.derive(j, s, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range step.Collectives {
				if c.Axis == strategy.NormAxis {
					continue
				}
				bytes[k][c.Kind] += c.Bytes
			}
		}
		tokens := 16 * seq
		activation := units.Bytes(2 * tokens * hidden) // of all micro-batches
		loss := units.Bytes(3 * 4 * tokens)
		reduced := bytes[0][strategy.AllReduce] - loss
		norms := units.Bytes(2 * (2*layers + 1) * hidden)
		if micro > 1 { // sums of gradients are what the graph's gradients are of
			norms = bytes[1][strategy.AllReduce] - loss
		}
		want := [3]units.Bytes{loss + norms, reduced, reduced + units.Bytes(2*layers+1)*activation}
		if reduced != units.Bytes(4*layers+2)*activation || bytes[1] != want {
			t.Errorf("%s, %v: all-reduced %v without, %v with sequences split, want %v", name, s, bytes[0], bytes[1], want)
		}
	}
}

// TestSplitConserves: whatever is split, FLOPs and parameters of all ranks add up: norms are on
// every rank, tables and output layers on every rank unless vocabularies are split, all else once.
func TestSplitConserves(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 0x73))
	for range 40 {
		name, layers, hidden, _, vocab, _ := randomDecoder(rng)
		mesh := []strategy.Mesh{{Data: 1, Pipeline: 1, Tensor: 2}, {Data: 1, Pipeline: 1, Tensor: 8}, {Data: 2, Pipeline: 1, Tensor: 4}, {Data: 1, Pipeline: 2, Tensor: 4}}[rng.IntN(4)]
		s := strategy.Strategy{Mesh: mesh, MicroBatches: []int{1, 2, 4}[rng.IntN(3)], Chunks: 1, Bucket: 1 << 20, Vocabulary: rng.IntN(2) == 0, Sequence: rng.IntN(2) == 0, Recompute: strategy.Recompute(rng.IntN(3))}
		if s.Recompute == strategy.RecomputeSelective && strings.HasSuffix(name, "attention=kernel") {
			s.Recompute = strategy.RecomputeNothing // no scores are kept
		}
		x, j := models8(t, name)
		step, err := x.derive(j, s, false)
		if err != nil && strings.Contains(err.Error(), "can be cut into") {
			continue
		}
		if err != nil {
			t.Fatalf("%s, %v: %v", name, s, err)
		}
		conserved(t, x, s, step)
		params := int64(0)
		for i := range graph.OpID(step.Graph.NumOps()) {
			params += step.Graph.Op(i).Params
		}
		micro, err := x.graph(variant{x.batch / int64(s.Data*s.MicroBatches), s.Recompute, 0})
		if err != nil {
			t.Fatal(err)
		}
		whole := (2*layers + 1) * hidden
		if !s.Vocabulary {
			whole += 2 * vocab * hidden
		}
		if want := int64(s.Data) * (micro.Params() + int64(s.Tensor-1)*whole); params != want {
			t.Errorf("%s, %v: %d parameters on all ranks, want %d", name, s, params, want)
		}
	}
}

// TestSplitLoss: of an output layer that vocabularies split, each rank does a T-th of the
// product, and a vocabulary that T does not divide is padded.
func TestSplitLoss(t *testing.T) {
	x, j := models8(t, "gpt:layers=2,hidden=64,heads=8,ffn=128,seq=16,vocab=1001")
	s, err := strategy.Parse("tp=8 vocab")
	if err != nil {
		t.Fatal(err)
	}
	step, err := x.derive(j, s, true)
	if err != nil {
		t.Fatal(err)
	}
	g := step.Graph
	var got []graph.GEMM
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); strings.Contains(o.Name, "output/BatchMatMul") && !o.GEMM.IsZero() {
			got = append(got, o.GEMM)
		}
	}
	const rows, part, hidden = 256, 126, 64
	if want := []graph.GEMM{{Batch: 1, M: rows, N: part, K: hidden}, {Batch: 1, M: rows, N: hidden, K: part}, {Batch: 1, M: part, N: hidden, K: rows}}; !slices.Equal(got, want) {
		t.Errorf("products of the output layer: %v, want %v", got, want)
	}
}

// TestNothingToSplit: a strategy that asks for what a model does not have says so.
func TestNothingToSplit(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"clip:images=1,captions=1,hidden=128,heads=8,tokens=16,size=32,patch=16,vocab=64,joint=16", "tp=8 vocab", "no output layer leads to a cross entropy alone"},
		{"llama:layers=2,hidden=64,heads=8,kv_heads=8,ffn=64,seq=3,vocab=100", "tp=8 sp mb=8", "rows in multiples of 6, which 8 ranks cannot share"},
		{"gnmt:layers=3,source=4,target=4,hidden=64,vocab=500", "recompute=selective tp=8", "no attention"},
	} {
		s, err := strategy.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		x, j := models8(t, c.name)
		if _, err := x.derive(j, s, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.name, c.text, err, c.want)
		}
	}
}

// TestGatedGradients: a layer of a file's training step, whose gradients wait for one another as
// TensorFlow's do, has the four all-reduces of activations that a workload's has.
func TestGatedGradients(t *testing.T) {
	const batch, seq, hidden = 16, 32, 64
	var bytes [2]units.Bytes
	for k := range bytes {
		config := fmt.Sprintf(`{"model_type": "llama", "num_hidden_layers": %d, "hidden_size": %d, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 128, "vocab_size": 128, "torch_dtype": "bfloat16"}`, 2+k, hidden)
		_, j := models8(t, "llama:layers=1,hidden=64,heads=8,kv_heads=8,ffn=64,vocab=64,seq=8")
		x := newModels(func(batch int64) (*graph.Graph, error) {
			step, err := decoder.ImportConfig([]byte(config), "config.json", decoder.Options{Training: true, Dims: map[string]int64{"batch": batch, "seq": seq}})
			if err != nil {
				return nil, err
			}
			return train.Derive(step.Graph, train.Default())
		}, batch)
		step, err := x.derive(j, strategy.Strategy{Mesh: strategy.Mesh{Data: 1, Pipeline: 1, Tensor: 8}, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20}, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range step.Collectives {
			if c.Kind == strategy.AllReduce {
				bytes[k] += c.Bytes
			}
		}
	}
	if got, want := bytes[1]-bytes[0], units.Bytes(4*2*batch*seq*hidden); got != want {
		t.Errorf("a layer all-reduces %v, want %v", got, want)
	}
}
