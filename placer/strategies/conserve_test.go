package strategies

import (
	"math"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
	"placer/workloads"
)

// small are workloads with every structure that strategies know.
var small = []string{
	"llama:layers=4,hidden=256,heads=8,kv_heads=4,ffn=512,seq=64,vocab=1000",
	"moe:layers=2,hidden=256,heads=8,kv_heads=4,ffn=512,seq=64,vocab=1000,experts=4",
	"vit:layers=4,hidden=256,heads=8,ffn=512,size=64,classes=100",
	"llama:layers=2,hidden=256,heads=8,kv_heads=4,ffn=512,seq=64,vocab=1000,attention=products",
	"gnmt:layers=3,source=4,target=4,hidden=64,vocab=500",
	"rnnlm:layers=2,unroll=4,hidden=64,vocab=500",
}

func family(name string) Family {
	return func(batch int64) (*graph.Graph, error) { return workloads.BuildBatch(name, batch) }
}

func models8(t testing.TB, name string) (*models, *Judge) {
	t.Helper()
	m, err := hw.Take("a100", 8, false)
	if err != nil {
		t.Fatal(err)
	}
	j, err := NewJudge(source(), m)
	if err != nil {
		t.Fatal(err)
	}
	return newModels(family(name), 16), j
}

// meshes8 are strategies of 8 samples' parts. Split products are there with sequences, with
// vocabularies and with both split too.
func meshes8() (all []strategy.Strategy) {
	for _, mesh := range []strategy.Mesh{{Data: 1, Pipeline: 1, Tensor: 1}, {Data: 4, Pipeline: 1, Tensor: 1}, {Data: 1, Pipeline: 2, Tensor: 1}, {Data: 1, Pipeline: 1, Tensor: 2}, {Data: 2, Pipeline: 2, Tensor: 2}} {
		for _, micro := range []int{1, 2, 4} {
			for _, sharding := range []strategy.Sharding{strategy.Replicated, strategy.ShardOptimizer, strategy.ShardGradients, strategy.ShardAll} {
				if mesh.Data == 1 && sharding > 0 {
					continue
				}
				s := strategy.Strategy{Mesh: mesh, Sharding: sharding, MicroBatches: micro, Chunks: 1, Bucket: 1 << 20}
				all = append(all, s)
				if mesh.Tensor == 1 || micro > 2 || sharding != strategy.Replicated && sharding != strategy.ShardAll {
					continue
				}
				s.Sequence = true
				all = append(all, s)
				s.Vocabulary = true
				all = append(all, s)
				s.Sequence = false
				all = append(all, s)
			}
		}
	}
	return all
}

// TestConserved: of a step that many ranks share, the FLOPs of the forward and the backward
// pass that depend on samples add up to those of the whole batch, and parameters to those
// of every replica, or of one where they are sharded. What no rank shares is there on all.
func TestConserved(t *testing.T) {
	for _, name := range small {
		t.Run(name, func(t *testing.T) {
			for _, s := range meshes8() {
				x, j := models8(t, name)
				step, err := x.derive(j, s, false)
				if err != nil {
					if strings.Contains(err.Error(), "depend on the batch") { // a batch of 1 has broadcasts less
						continue
					}
					if s.Tensor > 1 && strings.Contains(err.Error(), "tensor parallelism") || s.Vocabulary && strings.Contains(err.Error(), "no output layer leads") || s.Pipeline > 1 && strings.Contains(err.Error(), "can be cut into") {
						continue
					}
					t.Fatalf("%v: %v", s, err)
				}
				conserved(t, x, s, step)
			}
		})
	}
}

func conserved(t *testing.T, x *models, s strategy.Strategy, step *strategy.Step) {
	t.Helper()
	parts := s.Data * s.MicroBatches
	micro, err := x.graph(variant{x.batch / int64(parts), s.Recompute, 0})
	if err != nil {
		t.Fatal(err)
	}
	var split *strategy.Split
	if s.Tensor > 1 {
		m, err := strategy.NewModel(micro, micro, nil)
		if err != nil {
			t.Fatal(err)
		}
		split = strategy.FindSplit(m, s)
	}
	// Of every op of the micro-batch's graph: its copies, and what they do.
	copies, flops, params := make([]int, micro.NumOps()), make([]float64, micro.NumOps()), int64(0)
	for i := range graph.OpID(step.Graph.NumOps()) {
		o := step.Graph.Op(i)
		if !strings.Contains(o.Name, "stage") { // tied weights, which TestTied counts
			params += o.Params
		}
		from := step.From[i]
		if from == graph.None || o.Kind != micro.Op(from).Kind || strings.Contains(o.Name, "gradient/") || strings.HasPrefix(o.Name[strings.LastIndex(o.Name, "micro")+1:], "add/") {
			continue
		}
		if step.Micro[i] >= 0 {
			copies[from]++
			flops[from] += float64(o.FLOPs)
		}
	}
	for i := range graph.OpID(micro.NumOps()) {
		if copies[i] == 0 {
			continue
		}
		ranks := s.Tensor
		if copies[i] != parts*ranks {
			t.Fatalf("%v: %s is there %d times, want %d", s, micro.Op(i).Name, copies[i], parts*ranks)
		}
		want := float64(micro.Op(i).FLOPs) * float64(parts)
		if split == nil || !split.Shared[i] && !split.ByRows[i] {
			want *= float64(ranks)
		}
		if math.Abs(flops[i]-want) > 1e-6*want {
			t.Fatalf("%v: the copies of %s do %g FLOPs, want %g", s, micro.Op(i).Name, flops[i], want)
		}
	}
	least, most := micro.Params(), micro.Params()*int64(s.Data*s.Tensor)
	if s.Sharding == strategy.ShardAll {
		most = (micro.Params() + int64(micro.NumOps()*s.Data)) * int64(s.Tensor)
	}
	if params < least || params > most || s.Tensor == 1 && s.Sharding != strategy.ShardAll && params != most {
		t.Fatalf("%v: %d parameters, want %d to %d", s, params, least, most)
	}
}

// TestFolded: one replica stands for all where all are alike: the step of the whole mesh
// takes what the folded one does, and sends as much. Where stages send activations over the
// links of rings, which wait for one another in the whole step alone, steps are folded only
// where they are large (models.step).
func TestFolded(t *testing.T) {
	for _, name := range small[:3] {
		for _, s := range meshes8() {
			x, j := models8(t, name)
			folded, err := x.derive(j, s, true)
			if err != nil && strings.Contains(err.Error(), "depend on the batch") {
				continue
			}
			if err != nil {
				t.Fatalf("%v: %v", s, err)
			}
			one, err := j.Run(folded)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := x.derive(j, s, false)
			if err != nil {
				t.Fatal(err)
			}
			all, err := j.Run(whole)
			if err != nil {
				t.Fatal(err)
			}
			if mixed := s.Pipeline > 1 && s.Ranks() > s.Pipeline; !mixed && math.Abs(one.Seconds/all.Seconds-1) > 0.002 {
				t.Errorf("%s, %v: folded %.6g s, whole %.6g s", name, s, one.Seconds, all.Seconds)
			}
			if d := one.Traffic - all.Traffic; d < 0 && -d > all.Traffic/50 || d > all.Traffic/50 {
				t.Errorf("%s, %v: folded sends %v, whole %v", name, s, one.Traffic, all.Traffic)
			}
		}
	}
}

// TestFewerBytes: each stage of ZeRO holds less than the one before it (Rajbhandari et al.,
// SC 2020, figure 1).
func TestFewerBytes(t *testing.T) {
	x, j := models8(t, "llama:layers=8,hidden=1024,heads=8,kv_heads=8,ffn=4096,seq=16,vocab=100")
	before := units.Bytes(math.MaxInt64)
	for sharding := strategy.Replicated; sharding <= strategy.ShardAll; sharding++ {
		step, err := x.step(j, strategy.Strategy{Mesh: strategy.Mesh{Data: 8, Pipeline: 1, Tensor: 1}, Sharding: sharding, MicroBatches: 2, Chunks: 1, Bucket: 1 << 22})
		if err != nil {
			t.Fatal(err)
		}
		r, err := j.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		if r.Fullest() >= before {
			t.Errorf("%v holds %v, the one before %v", sharding, r.Fullest(), before)
		}
		before = r.Fullest()
	}
}

// TestGatherFollowsTheUpdate: parameters that are gathered behind a step whose replicas update a
// share of each are gathered behind the update of each, also where it takes rows alone, as that
// of an embedding's table under plain SGD does.
func TestGatherFollowsTheUpdate(t *testing.T) {
	sparse := 0
	for _, optimizer := range []string{"sgd", "momentum", "adam"} {
		x, j := models8(t, "rnnlm:layers=2,unroll=4,hidden=64,vocab=500,optimizer="+optimizer)
		for _, bucket := range []units.Bytes{1, 1 << 30} {
			step, err := x.derive(j, strategy.Strategy{Mesh: strategy.Mesh{Data: 4, Pipeline: 1, Tensor: 1}, Sharding: strategy.ShardGradients, MicroBatches: 1, Chunks: 1, Bucket: bucket}, false)
			if err != nil {
				t.Fatal(err)
			}
			g := step.Graph
			gathers := 0
			awaited := map[graph.OpID]bool{}
			for i := range graph.OpID(g.NumOps()) {
				if !strings.Contains(g.Op(i).Name, "updated") {
					continue
				}
				gathers++
				for u := range g.Predecessors(i) {
					awaited[u] = true
				}
			}
			if gathers == 0 {
				t.Fatalf("%s: nothing is gathered behind the update", optimizer)
			}
			for i := range graph.OpID(g.NumOps()) {
				if g.Op(i).Params == 0 {
					continue
				}
				updated := false
				tensor, _ := g.Outputs(i)
				for _, u := range g.Consumers(tensor) {
					updated = updated || awaited[u]
					if g.Op(u).Kind == "ScatterSub" {
						sparse++
					}
				}
				if !updated {
					t.Errorf("%s, buckets of %v: nothing is behind the update of %s", optimizer, bucket, g.Op(i).Name)
				}
			}
		}
	}
	if sparse == 0 {
		t.Error("no table's rows are updated")
	}
}

// TestNothingToGather: what nothing updates, as in inference, is whole on every replica: a step
// takes as long under ZeRO 1 and 2 as under data parallelism, and as much is sent.
func TestNothingToGather(t *testing.T) {
	_, j := models8(t, small[0])
	x := newModels(func(batch int64) (*graph.Graph, error) {
		const config = `{"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 512, "num_local_experts": 4}`
		step, err := decoder.ImportConfig([]byte(config), "mixture", decoder.Options{Dims: map[string]int64{"batch": batch, "seq": 64}})
		if err != nil {
			return nil, err
		}
		return step.Graph, nil
	}, 16)
	for _, mesh := range []strategy.Mesh{{Data: 8, Pipeline: 1, Tensor: 1}, {Data: 2, Pipeline: 2, Tensor: 2}} {
		var want *Result
		for _, sharding := range []strategy.Sharding{strategy.Replicated, strategy.ShardOptimizer, strategy.ShardGradients} {
			step, err := x.step(j, strategy.Strategy{Mesh: mesh, Sharding: sharding, MicroBatches: 1, Chunks: 1, Bucket: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			r, err := j.Run(step)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = r
			}
			if r.Seconds != want.Seconds || r.Traffic != want.Traffic {
				t.Errorf("%v: %.6g s and %v sent, want %.6g s and %v", step.Strategy, r.Seconds, r.Traffic, want.Seconds, want.Traffic)
			}
		}
	}
}
