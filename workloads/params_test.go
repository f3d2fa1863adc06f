package workloads

import (
	"testing"

	"placer/graph"
)

// products sums the FLOPs of matrix products and convolutions by phase.
func products(g *graph.Graph) (forward, backward int64) {
	for i := range g.NumOps() {
		switch o := g.Op(graph.OpID(i)); o.Phase {
		case graph.Forward:
			forward += int64(o.GEMM.FLOPs())
		case graph.Backward:
			backward += int64(o.GEMM.FLOPs())
		}
	}
	return forward, backward
}

// figures are what a model must have. Backward counts twice the forward products
// less what needs no gradient.
type figures struct{ params, forward, backward int64 }

func TestFiguresByHand(t *testing.T) {
	cases := []struct {
		name string
		want figures
	}{
		{"rnnlm4", rnnlmByHand(4)},
		{"gnmt2", gnmtByHand(2)},
		{"gnmt8", gnmtByHand(8)},
		{"trfxl2", trfxlByHand(2)},
		{"trfxl8", trfxlByHand(8)},
		{"wavenet2", wavenetByHand(2)},
		{"wavenet10", wavenetByHand(10)},
		{"llama", llamaByHand(OneKernel)},
		{"llama:attention=products", llamaByHand(Products)},
		{"llama70b", llama70BByHand()},
		{"moe", moeByHand(OneKernel)},
		{"moe:attention=products", moeByHand(Products)},
		{"vit", vitByHand(12, 768, 86567656, OneKernel)},
		{"vit:attention=products", vitByHand(12, 768, 86567656, Products)},
		{"gpt:layers=12", gptByHand(12, 768, 124439808, OneKernel)},
		{"gpt:layers=12,attention=products", gptByHand(12, 768, 124439808, Products)},
		{"gpt:layers=24,hidden=1024,heads=16,ffn=4096", gptByHand(24, 1024, 354823168, OneKernel)},
		{"vitl", vitByHand(24, 1024, 304326632, OneKernel)},
	}
	for _, c := range cases {
		g := built(t, c.name)
		forward, backward := products(g)
		if got := (figures{g.Params(), forward, backward}); got != c.want {
			t.Errorf("%s: parameters and product FLOPs, forward and backward, %+v, by hand %+v", c.name, got, c.want)
		}
	}
}

func rnnlmByHand(layers int64) figures {
	const b, h, v, t = 64, 2048, 10000, 35
	cell := int64(2*h*4*h) + 4*h // [x;h] to four gates, and their biases
	params := v*h + layers*cell + h*v + v
	forward := t * (layers*2*b*(2*h)*(4*h) + 2*b*h*v)
	return figures{params, forward, 2 * forward}
}

func gnmtByHand(layers int64) figures {
	const b, h, v, s, t = 64, 1024, 32000, 40, 40
	kernel := func(in int64) int64 { return (in + h) * 4 * h }
	// Encoder: two directions in the first layer, whose outputs are joined for the
	// second; H from the third on. Decoder: every layer reads [x;context].
	encoder := 2*kernel(h) + kernel(2*h) + (layers-2)*kernel(h)
	decoder := layers * kernel(2*h)
	cells := layers + 1 + layers              // one more for the second direction
	attention := int64(h*h + h*h + h + 1 + h) // memory, query, v, g, b
	params := 2*v*h + encoder + decoder + cells*4*h /* biases */ + attention + h*v + v
	forward := s*2*b*encoder + t*2*b*decoder +
		2*b*s*h*h + // the memory's projection, once
		t*(2*b*h*h+2*b*s*h) + // query, and weights [1,S] times values [S,H]
		t*2*b*h*v
	return figures{params, forward, 2 * forward}
}

func trfxlByHand(layers int64) figures {
	const b, s, segments, d, f, a, v = 64, 64, 4, 500, 1000, 10 * 50, 10000
	perLayer := int64(d*a + d*2*a + a*d + // query, key and value, output
		d*a + 2*a + // relative positions and the two biases
		d*f + f + f*d + d + 4*d) // feed-forward, two norms
	params := v*d + layers*perLayer + d*v + v
	relative := int64(2 * 2 * s * d * a) // keys of 2S positions, once a step
	segment := int64(2*b*s*d*a + 2*b*2*s*d*2*a + 2*b*s*a*d +
		3*2*b*s*2*s*a + // scores by content and by position, weighted values
		2*2*b*s*d*f)
	forward := layers*(relative+segments*segment) + segments*2*b*s*d*v
	return figures{params, forward, 2*forward - layers*relative} // positions are not trained
}

func wavenetByHand(stacks int64) figures {
	const b, t, r, s, v = 64, 2048, 128, 256, 256
	layers := 9 * stacks
	params := 2*v*r + layers*(2*r*2*r+r*s) + (layers-1)*r*r + s*s + s*v
	// Folding time into the batch rounds T + dilation up to a multiple of the
	// dilation, of which the convolution computes all but the first column: T
	// positions for every power of two.
	forward := 2 * b * t * params
	return figures{params, forward, 2*forward - 2*b*t*2*v*r} // samples are not trained
}

// attentionByHand is two products of queries of width d by keys, all of them or those that the
// kernel's queries see in the mean; its gradient computes the scores again, five products.
func attentionByHand(layers, queries, keys, d int64, causal bool, s Scores) (forward, backward int64) {
	forward = layers * 2 * 2 * queries * keys * d
	switch {
	case s == Products:
		return forward, 2 * forward
	case causal:
		forward = layers * 2 * 2 * queries * (keys/2 + 1) * d
	}
	return forward, forward / 2 * 5
}

// llamaByHand: 6,738,415,616 is the count of the published LLaMA 7B.
func llamaByHand(a Scores) figures {
	const layers, d, f, v, s, heads = 32, 4096, 11008, 32000, 2048, 32
	matrices := int64(layers * (4*d*d + 3*d*f))
	forward := 2 * s * (matrices + d*v)
	f1, b1 := attentionByHand(layers, s, s, d, true, a)
	return figures{6738415616, forward + f1, 2*forward + b1}
}

// llama70BByHand: 68,976,648,192 is the count of the published Llama 2 70B.
func llama70BByHand() figures {
	const layers, d, f, v, s = 80, 8192, 28672, 32000, 2048
	const kv = d / 8 // 8 of 64 heads
	matrices := int64(layers * (2*d*d + 2*d*kv + 3*d*f))
	forward := 2 * s * (matrices + d*v)
	f1, b1 := attentionByHand(layers, s, s, d, true, OneKernel)
	return figures{68976648192, forward + f1, 2*forward + b1}
}

// moeByHand: 46,702,792,704 is the count of the published Mixtral 8x7B.
func moeByHand(a Scores) figures {
	const layers, d, f, v, s, experts = 32, 4096, 14336, 32000, 2048, 8
	const kv = d / 4 // 8 of 32 heads
	const room = 640 // 2048 * 2 / 8 tokens and a quarter more
	attention := int64(2*d*d + 2*d*kv)
	forward := layers*(2*s*attention+2*s*d*experts+experts*2*room*3*d*f) + 2*s*d*v
	f1, b1 := attentionByHand(layers, s, s, d, true, a)
	return figures{46702792704, forward + f1, 2*forward + b1}
}

// vitByHand: 86,567,656 is the count of the published ViT-B/16, 304,326,632 that of
// ViT-L/16.
// gptByHand is GPT-2 (Radford et al., 2019) with the parameters of its released sizes.
func gptByHand(layers, d, params int64, a Scores) figures {
	const s, vocab = 1024, 50257
	f := 4 * d
	forward := layers*2*s*(4*d*d+2*d*f) + 2*s*d*vocab
	f1, b1 := attentionByHand(layers, s, s, d, true, a)
	return figures{params, forward + f1, 2*forward + b1}
}

func vitByHand(layers, d, params int64, a Scores) figures {
	const b, patches, classes = 64, 196, 1000
	const s = patches + 1
	f := 4 * d
	embed := 2 * b * patches * 3 * 16 * 16 * d
	forward := embed + layers*2*b*s*(4*d*d+2*d*f) + 2*b*d*classes
	f1, b1 := attentionByHand(layers, b*s, s, d, false, a)
	return figures{params, forward + f1, 2*forward - embed + b1} // images are not trained
}

// TestInceptionFigures: the network without its auxiliary head has 23.8 M
// parameters and takes 5.7 G multiply-adds per image of 299x299. The model with
// 1,000 classes and a factor in every normalisation is known for 23,834,568
// parameters; ours has one class more (2,049) and no factors (one for each of
// 17,216 channels).
func TestInceptionFigures(t *testing.T) {
	c := newInception(1)
	c.auxiliary = false
	g, err := build(c, "inception")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.Params(), int64(23834568+2049-17216); got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
	forward, _ := products(g)
	if madds := float64(forward) / 2; madds < 5.65e9 || madds > 5.75e9 {
		t.Errorf("%.3g multiply-adds, want 5.7e9", madds)
	}
	// The auxiliary head of three convolutions has 3.3 M more.
	c.auxiliary = true
	with, err := build(c, "inception")
	if err != nil {
		t.Fatal(err)
	}
	// 768*128 + 128 betas, 128*768*5*5 + 768 betas, 768*1001 + 1001 biases.
	if got, want := with.Params()-g.Params(), int64(768*128+128+128*768*25+768+768*1001+1001); got != want {
		t.Errorf("the auxiliary head has %d parameters, want %d", got, want)
	}
}

// TestAmoebaNetFigures: GPipe (Huang et al., table 1) gives 82 M parameters for
// AmoebaNet-D with 18 cells of 208 filters.
func TestAmoebaNetFigures(t *testing.T) {
	c := newAmoebaNet()
	c.cells, c.filters, c.batch, c.classes = 18, 208, 1, 1000
	g, err := build(c, "amoebanet")
	if err != nil {
		t.Fatal(err)
	}
	if m := float64(g.Params()) / 1e6; m < 81 || m > 82.5 {
		t.Errorf("%.1f M parameters, want 82 M", m)
	}
	// A reduction cell's operations by hand, c channels: conv_3x3 (1x1 to c/4, 3x3,
	// 1x1 back), conv_1x7_7x1 (1x1, 1x7, 7x1, 1x1), conv_1x1, each with two
	// parameters a channel for the normalisation.
	n := &cnn{net: newNet("cell", graph.F32), norm: normConfig{fused: true, scale: true}}
	x := n.placeholder("x", n.of(1, 8, 8, 64))
	n.cell(x, x, 64, reductionCell, reductionOutput, 2)
	f, err := n.b.Build()
	if err != nil {
		t.Fatal(err)
	}
	const q = 64 / 4
	want := int64(64*q + 9*q*q + q*64 + 2*(q+q+64) + // conv_3x3
		64*q + 7*q*q + 7*q*q + q*64 + 2*(3*q+64) + // conv_1x7_7x1
		64*64 + 2*64 + // conv_1x1
		64*64 + 2*64) // the input brought to 64 channels; the one before has them
	if got := f.Params(); got != want {
		t.Errorf("a reduction cell of 64 channels has %d parameters, want %d", got, want)
	}
}
