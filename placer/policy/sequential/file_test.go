package sequential

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"placer/nn/safetensors"
)

func TestPolicyFile(t *testing.T) {
	p := policy(t, 8)
	p.Card = Card{Trained: []string{"a"}, HeldOut: []string{"b"}, Steps: 3, Results: []Result{{Workload: "w", Devices: 2, Best: 0.5}}}
	p.training = distributionOf([]trainingGraph{{"a", 0, instanceOf(t, small).summary()}, {"b", 0, make([]float32, 2*numUnitFeatures)}})
	q, err := Read(written(t, p), "f")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, q), written(t, p)) {
		t.Error("a policy changes on its way through a file")
	}
	if _, err := Read([]byte("{}"), "f"); err == nil {
		t.Error("a file that is no policy was read")
	}
}

// TestPolicyFileRefuses: a header whose network has more weights than the file has is
// refused before they are claimed, and so is one that would have a placement read figures
// that are not there.
func TestPolicyFileRefuses(t *testing.T) {
	p, err := NewPolicy(Config{Hidden: 8, Encoder: DefaultEncoder(8)}, rand.New(rand.NewPCG(3, 1)))
	must(t, err)
	p.training = distributionOf([]trainingGraph{{"a", 0, make([]float32, 2*numUnitFeatures)}})
	tried := &trials{Families: []string{"a"}, Graphs: [][]float32{make([]float32, 2*numUnitFeatures)}, Times: [][]float32{make([]float32, len(allProposals))}, Width: 1}
	for c := range tried.Times[0] {
		tried.Times[0][c] = 1
	}
	for _, c := range []struct {
		name   string
		change func(h *header)
		want   string
	}{
		{"huge width", func(h *header) { h.Policy.Encoder.GraphSAGE.Width, h.Policy.Encoder.TransformerXL.Width = 1<<20, 1<<20 }, "more weights than"},
		{"huge layers", func(h *header) { h.Policy.Encoder.GraphSAGE.Layers = 1 << 40 }, "more weights than"},
		{"huge heads", func(h *header) { h.Policy.Encoder.TransformerXL.Heads = 1 << 62 }, "more weights than"},
		{"huge inner layer", func(h *header) { h.Policy.Encoder.TransformerXL.Inner = 1 << 40 }, "more weights than"},
		{"width of none", func(h *header) { h.Policy.Hidden = 0 }, "width 0"},
		{"trials without what tells graphs apart", func(h *header) { h.Trials, h.Reach = tried, distribution{} }, "nothing to tell"},
		{"trials beside half of it", func(h *header) { h.Trials, h.Reach.Known, h.Reach.Mean = tried, nil, h.Reach.Mean[:3] }, "3 means"},
	} {
		f, err := safetensors.Read(written(t, p))
		must(t, err)
		var h header
		must(t, json.Unmarshal([]byte(f.Metadata["policy"]), &h))
		c.change(&h)
		text, err := json.Marshal(h)
		must(t, err)
		f.Metadata["policy"] = string(text)
		var w bytes.Buffer
		must(t, safetensors.Write(&w, f))
		if _, err := Read(w.Bytes(), "f"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}
