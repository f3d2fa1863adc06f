package strategies

import (
	"encoding/json"
	"os"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/graph/strategy"
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

// decoding returns steps of one token behind past others.
func decoding(config []byte, past int64) Family {
	return func(batch int64) (*graph.Graph, error) {
		x, err := decoder.ImportConfig(config, "decoder", map[string]int64{"batch": batch, "seq": 1, "past": past})
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
	x := newModels(decoding([]byte(config), past), batch)
	want := units.Bytes(4 * 2 * batch * past * 4 * 32 * 2) // layers, keys and values, heads of 32 numbers of f16
	for _, s := range meshes8() {
		if s.Sharding != strategy.Replicated {
			continue
		}
		step, err := x.derive(j, s, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := caches(step.Graph); got != want {
			t.Errorf("%v: holds %v of keys and values, want %v", s, got, want)
		}
	}
}
