package onnx_test

import (
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats"
	"placer/graph/formats/onnx"
	"placer/graph/train"
)

// Imported forward graphs can be trained: every weight that the output depends
// on gets a gradient and an update, and the backward pass costs about twice the
// forward's products.
func TestDerive(t *testing.T) {
	for _, c := range []struct {
		name    string
		ratio   [2]float64
		dims    map[string]int64
		updates int
	}{
		// Two embeddings, and for each of a layer's two normalisations and four
		// products two weights; gpt2_megatron has a last normalisation and the
		// logits' product too. ResNet-50's 161 are counted in TestWeights; SqueezeNet
		// has 26 convolutions with bias.
		//
		// The gradient of the image is not needed: the first convolution costs its
		// forward's products once.
		{name: "light_resnet50.onnx", updates: 161, ratio: [2]float64{1.9, 2}},
		{name: "light_squeezenet.onnx", updates: 52, ratio: [2]float64{1.8, 2}},
		{name: "gpt2_megatron.onnx", updates: 17, ratio: [2]float64{1.9, 2}, dims: map[string]int64{"batch_size": 8, "seq_len": 32, "past_seq_len": 0}},
		{name: "gpt2_one_layer.onnx", updates: 14, ratio: [2]float64{1.8, 2}, dims: map[string]int64{"batch_size": 8, "seq_len": 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := formats.ReadFile("testdata/"+c.name, onnx.Config{Dims: c.dims, DefaultDim: 1})
			if err != nil {
				t.Fatal(err)
			}
			cfg := train.Default()
			cfg.Optimizer = train.Adam
			g, err := train.Derive(file.Graph, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if g.Params() != file.Graph.Params() {
				t.Errorf("%d parameters became %d", file.Graph.Params(), g.Params())
			}
			updates := 0
			var products [3]float64
			for i := range graph.OpID(g.NumOps()) {
				o := g.Op(i)
				if o.Kind.Class() == graph.ClassUpdate && o.Kind != "Assign" {
					updates++
				}
				products[o.Phase] += float64(o.GEMM.FLOPs())
			}
			weights := 0
			for i := range graph.OpID(file.Graph.NumOps()) {
				if file.Graph.Op(i).Params > 0 {
					weights++
				}
			}
			if r := products[graph.Backward] / products[graph.Forward]; r < c.ratio[0] || r > c.ratio[1] {
				t.Errorf("backward products are %.3f times the forward's, want %v", r, c.ratio)
			}
			if updates != c.updates || weights != c.updates {
				t.Errorf("%d updates for %d weights, want %d", updates, weights, c.updates)
			}
		})
	}
}

// A model whose weights are all integers says why it cannot be trained.
func TestDeriveQuantized(t *testing.T) {
	file, err := formats.ReadFile("testdata/quantized.onnx", onnx.Config{DefaultDim: 1, Training: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.Derive(file.Graph, train.Default()); err == nil || !strings.Contains(err.Error(), "weights are integers, which have no gradients") {
		t.Error(err)
	}
}
