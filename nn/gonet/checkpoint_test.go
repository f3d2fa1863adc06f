package gonet

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"placer/nn"
	"placer/nn/safetensors"
)

func TestLoadRefuses(t *testing.T) {
	net := newNetwork(t, small(6, 4), 1, 1)
	var w bytes.Buffer
	if err := net.Save(&w, nil); err != nil {
		t.Fatal(err)
	}
	config := func(change func(c *Config)) func(f *safetensors.File) {
		return func(f *safetensors.File) {
			c := net.Config()
			change(&c)
			b, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			f.Metadata[configKey] = string(b)
		}
	}
	cases := []struct {
		name   string
		change func(f *safetensors.File)
		want   string
	}{
		{"another format", func(f *safetensors.File) { f.Metadata[formatKey] = "x" }, `format "x"`},
		{"no configuration", func(f *safetensors.File) { delete(f.Metadata, configKey) }, "configuration"},
		{"unknown setting", func(f *safetensors.File) { f.Metadata[configKey] = `{"Colour":1}` }, "Colour"},
		{"impossible setting", config(func(c *Config) { c.Iterations = 0 }), "iterations is 0"},
		{"huge network", config(func(c *Config) { c.Embedding.Width, c.Decision.Width = 1<<30, 1<<30 }), "more weights than"},
		{"huge layer", config(func(c *Config) { c.Embedding.Layers = 100000 }), "more weights than"},
		{"wide feed-forward", config(func(c *Config) { c.Decision.Inner = 1 << 40 }), "more weights than"},
		{"more heads than there are", config(func(c *Config) { c.Decision.Heads, c.Decision.HeadWidth = 1<<32, 1<<32 }), "more weights than"},
		{"other sizes", config(func(c *Config) { c.Decision.Inner = 63 }), "inner"},
		{"missing weight", func(f *safetensors.File) { f.Lookup("weight/value.fc1.w").Name = "weight/x" }, "value.fc1.w is missing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, err := safetensors.Read(bytes.Clone(w.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			c.change(f)
			var bad bytes.Buffer
			if err := safetensors.Write(&bad, f); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Load(&bad, backend(t, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Load: %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, _, err := Load(bytes.NewReader(w.Bytes()[:100]), backend(t, 1)); err == nil {
		t.Error("a truncated file was loaded")
	}
}

// TestLoadedNetworkGoesOn: the same weights after two more steps, with free
// logits among them.
func TestLoadedNetworkGoesOn(t *testing.T) {
	const n = 20
	net := newNetwork(t, small(6, 4), 1, 1)
	b := &Batch{X: nn.NewMat(n, 6), Neighbours: ladder(n), InstanceLogits: net.AddInstanceLogits("g", n)}
	for i := range b.X.V {
		b.X.V[i] = float32(i%7) / 7
	}
	steps := func(net *Network) []float32 {
		for range 2 {
			if _, err := net.Backward(b, &nn.CrossEntropy{Labels: make([]int32, n)}); err != nil {
				t.Fatal(err)
			}
			if _, err := net.Update(1e-2); err != nil {
				t.Fatal(err)
			}
		}
		l, _ := forward(t, net, b)
		return l.V
	}
	steps(net)
	var w bytes.Buffer
	if err := net.Save(&w, nil); err != nil {
		t.Fatal(err)
	}
	want := steps(net)
	again, _, err := Load(&w, backend(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	b.InstanceLogits = again.AddInstanceLogits("g", n)
	if got := steps(again); !slices.Equal(got, want) {
		t.Error("a loaded network trains to other weights")
	}
}
