package merge_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/graph/merge"
	"placer/graph/train"
	"placer/units"
)

func step(t *testing.T, config []byte, dims map[string]int64) *graph.Graph {
	t.Helper()
	x, err := decoder.ImportConfig(config, "decoder", decoder.Options{Dims: dims})
	if err != nil {
		t.Fatal(err)
	}
	return x.Graph
}

// totals are what merging leaves as it is.
type totals struct {
	params   int64
	resident units.Bytes
	flops    units.FLOPs
}

func of(g *graph.Graph) (x totals) {
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		x.params, x.resident, x.flops = x.params+o.Params, x.resident+o.Resident, x.flops+o.FLOPs
	}
	return x
}

func bytes(g *graph.Graph) (b units.Bytes) {
	for i := range graph.OpID(g.NumOps()) {
		b += g.Op(i).Bytes
	}
	return b
}

// TestEveryFamily: in every published decoder, merging keeps parameters, bytes of weights and
// operations; what else reads a tensor finds it in its shape; each product of attention, and of a
// gated perceptron, that is merged away is a read of its activation less; and nothing is left to
// merge.
func TestEveryFamily(t *testing.T) {
	data, err := os.ReadFile("../formats/decoder/testdata/published.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct{ Config json.RawMessage }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	some := 0
	for name, m := range all {
		for _, dims := range []map[string]int64{{"batch": 2, "seq": 1, "past": 30}, {"batch": 2, "seq": 8}, {"batch": 2, "seq": 1, "past": 30, "attention_kernels": 3}} {
			g := step(t, m.Config, dims)
			merged, err := merge.Products(g, merge.All)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if of(merged) != of(g) {
				t.Errorf("%s: %+v, want %+v", name, of(merged), of(g))
			}
			// Ops that were kept read what they read before.
			before := map[string]graph.OpID{}
			for i := range graph.OpID(g.NumOps()) {
				before[g.Op(i).Name] = i
			}
			kept, products, saved := 0, 0, units.Bytes(0)
			for i := range graph.OpID(merged.NumOps()) {
				o := merged.Op(i)
				j, ok := before[o.Name]
				if !ok {
					if strings.Contains(o.Name, "/merged/") && !o.GEMM.IsZero() {
						products++
						views := 0
						for _, v := range behind(merged, i) {
							if merged.Op(v).Kind == graph.Columns {
								views++
							}
						}
						saved += units.Bytes(views-1) * merged.Tensor(merged.Inputs(i)[0]).Bytes
						some++
					}
					continue
				}
				kept++
				for k, u := range merged.Inputs(i) {
					x, y := merged.Tensor(u), g.Tensor(g.Inputs(j)[k])
					if !x.Shape.Equal(y.Shape) || x.Bytes != y.Bytes || x.DType != y.DType {
						t.Fatalf("%s: %s reads %v of %v, want %v of %v", name, o.Name, x.Shape, x.Bytes, y.Shape, y.Bytes)
					}
				}
			}
			if got := bytes(merged); got != bytes(g)-saved {
				t.Errorf("%s: %v are moved, want %v less %v", name, got, bytes(g), saved)
			}
			if again, err := merge.Products(merged, merge.All); err != nil || again != merged {
				t.Errorf("%s: merged again: %v", name, err)
			}
		}
	}
	if some == 0 {
		t.Error("nothing is merged in any family")
	}
}

// behind are the ops that read what op i makes, also behind a bias.
func behind(g *graph.Graph, i graph.OpID) (all []graph.OpID) {
	t, _ := g.Outputs(i)
	for _, v := range g.Consumers(t) {
		if all = append(all, v); g.Op(v).Kind == "BiasAdd" {
			all = append(all, behind(g, v)...)
		}
	}
	return all
}

// TestLlama: a layer of Llama has four products in place of seven, two where gate and up are left
// apart more.
func TestLlama(t *testing.T) {
	const layers = 3
	config := fmt.Appendf(nil, `{"model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": %d, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 512, "attention_bias": true}`, layers)
	g := step(t, config, map[string]int64{"batch": 2, "seq": 1, "past": 30})
	for which, want := range map[merge.Which]int{merge.Nothing: 7, merge.Attention: 5, merge.All: 4} {
		merged, err := merge.Products(g, which)
		if err != nil {
			t.Fatal(err)
		}
		products := map[string]int64{}
		for i := range graph.OpID(merged.NumOps()) {
			if o := merged.Op(i); o.Kind == "MatMul" {
				products[o.Name] = o.GEMM.N
			}
		}
		if len(products) != layers*want+1 {
			t.Errorf("%d: %d products, want %d: %v", which, len(products), layers*want+1, products)
		}
		if n := products["model/layers/0/self_attn/merged/MatMul"]; which != merge.Nothing && n != (8+2*2)*32 {
			t.Errorf("%d: queries, keys and values have %d columns, want 384: %v", which, n, products)
		}
	}
}

// TestTrainingIsLeft: a step that trains has the products that it ran.
func TestTrainingIsLeft(t *testing.T) {
	g := step(t, []byte(`{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 64}`), map[string]int64{"batch": 2, "seq": 8})
	trained, err := train.Derive(g, train.Config{Optimizer: train.Adam, StaticShapes: true})
	if err != nil {
		t.Fatal(err)
	}
	if merged, err := merge.Products(trained, merge.All); err != nil || merged != trained {
		t.Errorf("a training step is changed: %v", err)
	}
}
