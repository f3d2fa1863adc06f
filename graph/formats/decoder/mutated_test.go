package decoder

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Files of published decoders with all that their classes have, and one value changed to another
// that files may have, are read or refused in one line.
func TestMutatedFiles(t *testing.T) {
	var classes map[string]map[string]any
	if err := json.Unmarshal(defaults, &classes); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	values := []any{0, -1, 1, 3, 7, 1 << 20, 1 << 40, -1 << 62, 1e300, 0.5, true, false, nil, "", "x", []int{}, []int{1, -1}, []string{"linear_attention"}, map[string]any{}}
	all := published(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var c map[string]any
		if err := json.Unmarshal(all[name].Config, &c); err != nil {
			t.Fatal(err)
		}
		at := c
		if text, ok := c["text_config"].(map[string]any); ok {
			at = text
		}
		for key, value := range classes[at["model_type"].(string)] {
			if at[key] == nil {
				at[key] = value
			}
		}
		at["num_hidden_layers"] = 4
		for _, key := range []string{"layer_types", "mlp_layer_types", "hybrid_override_pattern", "attn_layer_indices"} {
			delete(at, key)
		}
		keys := slices.Sorted(maps.Keys(at))
		for range 25 {
			key := keys[r.IntN(len(keys))]
			was := at[key]
			at[key] = values[r.IntN(len(values))]
			data, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Dims: map[string]int64{"seq": int64(1 + 2*r.IntN(2)), "past": int64(8 * r.IntN(2))}, Training: r.IntN(8) == 0}
			if o.Training {
				delete(o.Dims, "past")
			}
			if _, err := ImportConfig(data, "m", o); err != nil && (!strings.HasPrefix(err.Error(), "m: ") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s: %q", data, err)
			}
			at[key] = was
		}
	}
}
