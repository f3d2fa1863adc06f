package onnx

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"placer/graph"
)

func importFile(path string, cfg Config) (*graph.Graph, *Summary, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	return Import(data, path, cfg)
}

func load(t testing.TB, name string, cfg Config) (*graph.Graph, *Summary) {
	t.Helper()
	g, sum, err := importFile("testdata/"+name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g, sum
}

// TestModels checks models whose sizes are published. Nodes and edges are those
// of the file; parameters those of the papers' models; FLOPs two per
// multiply-add.
func TestModels(t *testing.T) {
	for _, c := range []struct {
		name         string
		nodes, edges int
		params       int64
		gmacs        float64 // 0: not checked
	}{
		// ResNet-50: 25.56 M with the 53,120 scales and offsets of its
		// normalisations; 4.09 G multiply-adds in convolutions and the last layer,
		// with the stride in the 3x3 convolutions.
		{"light_resnet50.onnx", 415, 430, 25557032, 4.09},
		// VGG-19: 143.67 M and 19.6 G (Simonyan and Zisserman, table 2: 144 M).
		{"light_vgg19.onnx", 82, 81, 143667240, 19.63},
		// AlexNet: 61 M. On 224x224 its first layer gives 54x54, which makes 0.65 G.
		{"light_bvlc_alexnet.onnx", 40, 39, 60965224, 0.65},
		// SqueezeNet 1.1: 1.24 M and 0.35 G.
		{"light_squeezenet.onnx", 105, 112, 1235496, 0.35},
		{"gpt2_megatron.onnx", 161, 191, 1560, 0},
		{"gpt2_one_layer.onnx", 103, 123, 356, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, sum := load(t, c.name, Default())
			if sum.Nodes != c.nodes || sum.Edges != c.edges || sum.Params != c.params || g.Params() != c.params {
				t.Errorf("%d nodes, %d edges, %d parameters; want %d, %d, %d", sum.Nodes, sum.Edges, sum.Params, c.nodes, c.edges, c.params)
			}
			if got := float64(productFLOPs(g)) / 2e9; c.gmacs > 0 && math.Abs(got-c.gmacs) > 0.01*c.gmacs {
				t.Errorf("%.4f G multiply-adds, want %.2f", got, c.gmacs)
			}
			if sum.Ops != g.NumOps() {
				t.Errorf("summary says %d ops, graph has %d", sum.Ops, g.NumOps())
			}
		})
	}
}

func productFLOPs(g *graph.Graph) (f float64) {
	for i := range graph.OpID(g.NumOps()) {
		f += float64(g.Op(i).GEMM.FLOPs())
	}
	return f
}

// The parameters of gpt2_megatron by hand: hidden 8, vocabulary 10, one layer,
// positions 64.
func TestGPT2Parameters(t *testing.T) {
	g, _ := load(t, "gpt2_megatron.onnx", Default())
	const h, v, positions = 8, 10, 64
	want := int64(v*h + positions*h + // embeddings
		2*(2*h) + 2*h + // two normalisations and the last
		h*3*h + 3*h + h*h + h + // attention
		h*4*h + 4*h + 4*h*h + h + // two layers of the block
		h*v) // logits
	if g.Params() != want {
		t.Errorf("%d parameters, want %d", g.Params(), want)
	}
}

// ResNet-50's weights: what is trainable, what is not, and where it is held.
func TestWeights(t *testing.T) {
	g, _ := load(t, "light_resnet50.onnx", Default())
	var variables, statistics, resident int64
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Kind.Class() != graph.ClassVariable {
			if o.Params != 0 {
				t.Errorf("op %s of kind %s holds parameters", o.Name, o.Kind)
			}
			continue
		}
		first, end := g.Outputs(i)
		if end != first+1 || !g.Tensor(first).Resident || o.Bytes != 0 || o.FLOPs != 0 || len(g.Inputs(i)) != 0 {
			t.Errorf("variable %+v", o)
		}
		resident += int64(o.Resident)
		if o.Params > 0 {
			variables++
		} else {
			statistics++
		}
	}
	// 53 convolutions without bias, 53 normalisations with scale and offset, and
	// mean and variance, one layer of weights and bias.
	if variables != 53+2*53+2 || statistics != 2*53 {
		t.Errorf("%d variables and %d statistics, want 161 and 106", variables, statistics)
	}
	if want := int64(4 * (25557032 + 53120)); resident != want {
		t.Errorf("%d bytes of weights, want %d", resident, want)
	}
}

func TestShapesAndKinds(t *testing.T) {
	g, _ := load(t, "light_squeezenet.onnx", Default())
	found := map[graph.Kind]int{}
	for i := range graph.OpID(g.NumOps()) {
		found[g.Op(i).Kind]++
	}
	for kind, n := range map[graph.Kind]int{"Conv2D": 26, "Relu": 26, "MaxPool": 3, "Concat": 8, "Identity": 1, "GlobalAveragePool": 1, "Softmax": 1, "Placeholder": 1, "Initializer": 52} {
		if found[kind] != n {
			t.Errorf("%d ops of kind %s, want %d", found[kind], kind, n)
		}
	}
	last := graph.OpID(g.NumOps() - 1)
	first, _ := g.Outputs(last)
	if g.Op(last).Kind != "Softmax" || !g.Tensor(first).Shape.Equal(graph.Shape{1, 1000, 1, 1}) {
		t.Errorf("last op %+v gives %v", g.Op(last), g.Tensor(first).Shape)
	}
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "Conv2D" {
			// conv1: 64 filters of 3x3x3 and a bias, stride 2, 224 -> 111.
			if want := (graph.GEMM{Batch: 1, M: 111 * 111, N: 64, K: 27}); o.GEMM != want || o.FLOPs != want.FLOPs()+111*111*64 {
				t.Errorf("first convolution %+v of %v, want %+v", o.GEMM, o.FLOPs, want)
			}
			break
		}
	}
}

func TestSymbolicDimensions(t *testing.T) {
	cfg := Config{Dims: map[string]int64{"batch_size": 4, "seq_len": 8, "seqlen": 5, "batch": 6}, DefaultDim: 2}
	g, sum := load(t, "gpt2_megatron.onnx", cfg)
	if want := []string{"batch", "seqlen"}; !slices.Equal(sum.UnknownDims, want) {
		t.Errorf("unknown dimensions %v, want %v", sum.UnknownDims, want)
	}
	want := []Symbol{{"batch_size", 4, true}, {"seq_len", 8, true}, {"past_seq_len", 2, false}}
	if !slices.Equal(sum.Symbols, want) {
		t.Errorf("symbols %v, want %v", sum.Symbols, want)
	}
	found := false
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == "Softmax" {
			first, _ := g.Outputs(i)
			found = true
			if s := g.Tensor(first).Shape; !s.Equal(graph.Shape{4, 2, 8, 10}) { // batch, heads, queries, 2 past and 8 keys
				t.Errorf("attention weights are %v", s)
			}
		}
	}
	if !found {
		t.Error("no Softmax")
	}
	for _, bad := range []Config{{}, {DefaultDim: -1}, {DefaultDim: 1, Dims: map[string]int64{"n": -2}}, {DefaultDim: 1 << 60}} {
		if _, _, err := importFile("testdata/gpt2_megatron.onnx", bad); err == nil {
			t.Errorf("config %+v was accepted", bad)
		}
	}
}

// Arithmetic on shapes is known before the step: no op of the graph does it.
func TestShapeArithmetic(t *testing.T) {
	g, sum := load(t, "gpt2_one_layer.onnx", Default())
	data := 0
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Kind == "Shape" {
			t.Errorf("op %s is in the step", o.Name)
		}
		if o.Kind != "Gather" && o.Kind != "Concat" {
			continue
		}
		first, _ := g.Outputs(i)
		if x := g.Tensor(first); x.DType == graph.I64 && len(x.Shape) < 2 {
			t.Errorf("op %s on shapes is in the step", o.Name)
		} else if data++; o.Bytes == 0 {
			t.Errorf("op %s on data moves nothing", o.Name)
		}
	}
	if data == 0 || sum.Folded < 20 || sum.FoldedBytes == 0 {
		t.Errorf("%d ops on data; %d nodes and %v folded, want some", data, sum.Folded, sum.FoldedBytes)
	}
}

// Two imports of one file give the same graph.
func TestDeterministic(t *testing.T) {
	a, _ := load(t, "light_resnet50.onnx", Default())
	for range 5 {
		if b, _ := load(t, "light_resnet50.onnx", Default()); a.Hash() != b.Hash() {
			t.Fatalf("hash %s, then %s", a.Hash(), b.Hash())
		}
	}
	if a.Name() != "light_resnet50" {
		t.Errorf("graph is called %q", a.Name())
	}
}

// Every truncation of a real file is refused with one line, without panic.
func TestTruncated(t *testing.T) {
	data, err := os.ReadFile("testdata/light_squeezenet.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data); n += 97 {
		_, _, err := Import(data[:n], "m.onnx", Default())
		if err == nil || !strings.HasPrefix(err.Error(), "m.onnx: is no ONNX model") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("cut to %d bytes: error %v", n, err)
		}
	}
}
