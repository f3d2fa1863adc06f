package strategies

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"placer/graph"
	"placer/graph/strategy"
	"placer/units"
)

// Steps that placer_torch captured, a GPT-2 of two layers at any batch, with Adam, and with clipped
// gradients and Adafactor (python/tests/samples_fixture.py).
const (
	withAdam = "testdata/torch_gpt2.json"
	clipped  = "testdata/torch_gpt2_clipped.json"
)

func captured(t testing.TB) Family { return capturedAs(t, withAdam) }

func capturedAs(t testing.TB, file string) Family {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return func(batch int64) (*graph.Graph, error) {
		g, _, err := graph.ReadAt(data, file, map[string]int64{"batch": batch})
		return g, err
	}
}

func TestCapturedConserved(t *testing.T) {
	for _, file := range []string{withAdam, clipped} {
		for _, s := range meshes8() {
			x, j := models8(t, small[0])
			x.family = capturedAs(t, file)
			step, err := x.derive(j, s, false)
			if err != nil {
				t.Fatalf("%s, %v: %v", file, s, err)
			}
			conserved(t, x, s, step)
		}
	}
}

// derived returns a captured step of 16 samples, and what a strategy makes of it.
func derived(t *testing.T, file, text string) (*graph.Graph, *strategy.Step) {
	t.Helper()
	x, j := models8(t, small[0])
	x.family = capturedAs(t, file)
	s, err := strategy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	g, err := x.graph(variant{16, strategy.RecomputeNothing, 0})
	if err != nil {
		t.Fatal(err)
	}
	step, err := x.derive(j, s, false)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return g, step
}

// TestCapturedExperts: products of groups of rows are of experts, which replicas share out and ranks that
// split products do not.
func TestCapturedExperts(t *testing.T) {
	for text, want := range map[string]struct{ flops, held int }{"ddp=2 ep": {1, 1}, "ddp=2": {1, 2}, "tp=2": {2, 2}} { // of all ranks together, in those of one device
		g, step := derived(t, "torch/testdata/experts.json", text)
		of := func(g *graph.Graph) (flops units.FLOPs, held units.Bytes) {
			for i := range graph.OpID(g.NumOps()) {
				o := g.Op(i)
				if o.Kind == "GroupedMatMul" {
					flops += o.FLOPs
				}
				if strings.HasSuffix(o.Name, "0.up") || strings.Contains(o.Name, "0.up@") {
					held += o.Resident
				}
			}
			return flops, held
		}
		flops, held := of(g)
		gotFLOPs, gotHeld := of(step.Graph)
		if gotFLOPs != flops*units.FLOPs(want.flops) || gotHeld != held*units.Bytes(want.held) || flops == 0 || held == 0 {
			t.Errorf("%s: %v FLOPs, want %d times %v; %v held, want %d times %v", text, gotFLOPs, want.flops, flops, gotHeld, want.held, held)
		}
	}
}

// TestCapturedClipped: the norm and the product of each gradient are on the rank that updates its
// parameter, in a pipeline and where ranks share products, and each is there as often as the update.
func TestCapturedClipped(t *testing.T) {
	for _, text := range []string{"1f1b=2 mb=2", "tp=2", "zero-2=4"} {
		g, step := derived(t, clipped, text)
		ranks := make([][]int32, g.NumOps())
		for i, from := range step.From {
			if from != graph.None {
				ranks[from] = append(ranks[from], step.Rank[i])
			}
		}
		updates := 0
		for u := range graph.OpID(g.NumOps()) {
			if g.Op(u).Kind != "ApplyAdafactor" {
				continue
			}
			updates++
			product := g.Tensor(g.Inputs(u)[1]).Producer
			norm := graph.None
			for _, c := range g.Consumers(g.Inputs(product)[0]) {
				if g.Op(c).Kind == "ReduceL2" {
					norm = c
				}
			}
			if norm == graph.None || len(ranks[u]) == 0 {
				t.Fatalf("%s: %s: no norm, or no update", text, g.Op(u).Name)
			}
			want := ranks[u]
			if step.Strategy.Pipeline > 1 && g.Op(u).Name == "update.wte.weight" { // tied: both stages update, the norm is the first's
				if d := cmp.Diff([]int32{0, 1}, want); d != "" {
					t.Errorf("%s: a tied weight is updated on other ranks:\n%s", text, d)
				}
				want = want[:1]
			}
			for i, want := range map[graph.OpID][]int32{product: ranks[u], norm: want} {
				if d := cmp.Diff(want, ranks[i]); d != "" {
					t.Errorf("%s: %s and %s on other ranks:\n%s", text, g.Op(u).Name, g.Op(i).Name, d)
				}
			}
		}
		if updates != 28 {
			t.Errorf("%s: %d updates, want 28", text, updates)
		}
	}
}

// Each block of a decoder is cut as in Megatron-LM (arXiv:1909.08053, section 3): the first
// product's weight and bias by columns, the second's weight by rows, its bias whole.
func TestCapturedSplit(t *testing.T) {
	for _, file := range []string{withAdam, clipped} {
		capturedSplit(t, file)
	}
}

func capturedSplit(t *testing.T, file string) {
	t.Helper()
	g, err := capturedAs(t, file)(4)
	if err != nil {
		t.Fatal(err)
	}
	m, err := strategy.NewModel(g, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	split := strategy.FindSplit(m, strategy.Single(1))
	var got, want []string
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Params > 0 && split.Shared[i] {
			got = append(got, o.Name)
		}
	}
	for _, layer := range []string{"h.0.", "h.1."} {
		for _, w := range []string{"attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight"} {
			want = append(want, layer+w)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" || split.Blocks != 4 || split.Heads != 4 {
		t.Errorf("%s: %d blocks of %d heads, cut weights:\n%s", file, split.Blocks, split.Heads, d)
	}
	// Two all-reduces a layer in the forward pass, two in the backward: of [4*8,32] f32.
	partial := 0
	for x := range graph.TensorID(g.NumTensors()) {
		if split.Partial[x] {
			if partial++; g.Tensor(x).Bytes != 4*8*32*4 {
				t.Errorf("%v of %s is reduced", g.Tensor(x).Shape, g.Op(g.Tensor(x).Producer).Name)
			}
		}
	}
	if partial != 8 {
		t.Errorf("%d tensors are reduced, want 8", partial)
	}
}

// What a rank holds of parameters and Adam's two moments (4 and 8 bytes each) under ZeRO, as in its
// paper's figure 1 (arXiv:1910.02054): moments by the replicas from stage 1, parameters in stage 3.
// Replicas that share out nothing hold the buckets of their gradients too.
func TestCapturedSharded(t *testing.T) {
	for _, c := range []struct {
		sharding          strategy.Sharding
		params, optimizer units.Bytes // replicas that share them
		buckets           units.Bytes // bytes of gradients for each parameter
	}{
		{strategy.Replicated, 1, 1, 4},
		{strategy.ShardOptimizer, 1, 4, 0},
		{strategy.ShardGradients, 1, 4, 0},
		{strategy.ShardAll, 4, 4, 0},
	} {
		x, j := models8(t, small[0])
		x.family = captured(t)
		s := strategy.Strategy{Mesh: strategy.Mesh{Data: 4, Pipeline: 1, Tensor: 1}, Sharding: c.sharding, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20}
		step, err := x.derive(j, s, false)
		if err != nil {
			t.Fatal(err)
		}
		g, err := x.graph(variant{16, strategy.RecomputeNothing, 0})
		if err != nil {
			t.Fatal(err)
		}
		var params, held units.Bytes
		for i := range graph.OpID(g.NumOps()) {
			params += units.Bytes(g.Op(i).Params)
		}
		for i := range graph.OpID(step.Graph.NumOps()) {
			if o := step.Graph.Op(i); step.Rank[i] == 0 {
				held += o.Resident
			}
		}
		if want := 4*params/c.params + 8*params/c.optimizer + c.buckets*params; held != want {
			t.Errorf("%v: a rank holds %v, want %v", s, held, want)
		}
	}
}

// TestCapturedVocabulary: PyTorch's cross entropy, a log_softmax and an nll_loss, is split by the
// vocabulary with the output layer and the table of embeddings that it shares (torchtitan's
// loss_parallel): ranks have a part of the scores and of their gradients, and agree on two numbers a
// row and on the loss.
func TestCapturedVocabulary(t *testing.T) {
	const batch, rows, ranks = 16, 16 * 8, 4
	x, j := models8(t, small[0])
	x.family = captured(t)
	at, err := strategy.Parse("tp=4 vocab")
	if err != nil {
		t.Fatal(err)
	}
	g, err := x.graph(variant{batch, strategy.RecomputeNothing, 0})
	if err != nil {
		t.Fatal(err)
	}
	step, err := x.derive(j, at, true)
	if err != nil {
		t.Fatal(err)
	}
	var agreed []units.Bytes
	for _, c := range step.Collectives {
		if c.Bytes <= 4*rows {
			agreed = append(agreed, c.Bytes)
		}
	}
	if want := []units.Bytes{4 * rows, 4 * rows, 4}; !slices.Equal(agreed, want) {
		t.Errorf("ranks agree on %v, want %v", agreed, want)
	}
	scores := 0
	for i := range graph.OpID(step.Graph.NumOps()) {
		from := step.From[i]
		if from == graph.None || step.Micro[i] < 0 {
			continue
		}
		whole, a := g.Outputs(from)
		if part, b := step.Graph.Outputs(i); whole < a && part < b && slices.Equal(g.Tensor(whole).Shape, []int64{rows, 48}) {
			if scores++; step.Graph.Tensor(part).Bytes*ranks != g.Tensor(whole).Bytes {
				t.Errorf("%s gives %v of %v", step.Graph.Op(i).Name, step.Graph.Tensor(part).Bytes, g.Tensor(whole).Bytes)
			}
		}
	}
	if scores < 6 { // scores, logarithms, two gradients, views
		t.Errorf("%d tensors have a column for each token, want more", scores)
	}
	var cut []string
	m, err := strategy.NewModel(g, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, after := strategy.FindSplit(m, strategy.Strategy{Mesh: at.Mesh}), strategy.FindSplit(m, at)
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Params > 0 && after.Shared[i] && !before.Shared[i] {
			cut = append(cut, o.Name)
		}
	}
	slices.Sort(cut)
	if want := []string{"wte.weight"}; !slices.Equal(cut, want) { // of which the output layer reads a transpose
		t.Errorf("%v are cut more, want %v", cut, want)
	}
}

// TestCapturedTokens: tokens of captured steps are shared out among replicas: products add up to those of
// one device, and keys and values of all tokens are gathered in each pass, and their gradients scattered.
func TestCapturedTokens(t *testing.T) {
	for _, file := range []string{"encoder", "normed", "packed", "averaged", "outer", "inner"} {
		for _, text := range []string{"ddp=4 cp", "zero-3=4 cp=2 mb=2"} {
			g, step := derived(t, "torch/testdata/"+file+".json", text)
			if got, want := products(step.Graph), products(g); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%s, %s: products do %g FLOPs, want %g", file, text, got, want)
			}
			attends, sum := 0, map[strategy.Kind]units.Bytes{}
			for i := range graph.OpID(g.NumOps()) {
				if g.Op(i).Kind == graph.Attention {
					attends++
				}
			}
			for _, c := range step.Collectives {
				if c.Axis == strategy.TokenAxis {
					sum[c.Kind] += c.Bytes
				}
			}
			pass := units.Bytes(attends * 16 * 8 * 16 * 2 * 4) // samples, tokens, columns of keys and values in f32
			if attends == 0 || sum[strategy.AllGather] != 2*pass || sum[strategy.ReduceScatter] != pass {
				t.Errorf("%s, %s: %d attend, %v are gathered and %v scattered, want %v and %v", file, text, attends, sum[strategy.AllGather], sum[strategy.ReduceScatter], 2*pass, pass)
			}
		}
	}
}
