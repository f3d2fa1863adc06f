package onnx

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph"
	"placer/units"
)

// ofOpset is modelOf with operator set v.
func ofOpset(v int64, graph ...[]byte) []byte {
	return concatBytes(numberField(1, 8), textField(2, "test"), bytesField(8, numberField(2, v)), bytesField(7, concatBytes(graph...)))
}

// floatsTensor is a vector of floats with its data.
func floatsTensor(name string, list ...float32) []byte {
	var data []byte
	for _, x := range list {
		data = protowire.AppendFixed32(data, math.Float32bits(x))
	}
	return append(tensorOf(name, elemFloat, int64(len(list))), bytesField(9, data)...)
}

// Operators of exporters and of what ONNX Runtime makes of models, by hand: the shape of
// the result, FLOPs where they are not one an element, and parameters.
func TestExportedOperators(t *testing.T) {
	in := func(domain, op string, in []string, attrs ...[]byte) []byte {
		return inDomain(domain, nodeOf("n", op, in, list("y"), attrs...))
	}
	ms := func(op string, names []string, attrs ...[]byte) []byte {
		return in("com.microsoft", op, names, attrs...)
	}
	blocked := func(op string, names []string, attrs ...[]byte) []byte {
		return in("com.microsoft.nchwc", op, names, attrs...)
	}
	w := func(name string, e elem, dims ...int64) []byte { return initOf(tensorOf(name, e, dims...)) }
	input := func(name string, e elem, dims ...any) []byte { return bytesField(11, valueOf(name, e, dims...)) }
	scalar := func(name string, x int64) []byte {
		return initOf(append(tensorOf(name, elemInt64), bytesField(7, protowire.AppendVarint(nil, uint64(x)))...))
	}
	scale, zero := w("s", elemFloat), w("z", elemUint8)
	pads := intsAttr("pads", 1, 1, 1, 1)
	for _, c := range []struct {
		name   string
		data   []byte
		kind   graph.Kind
		shape  graph.Shape
		flops  units.FLOPs
		params int64
	}{
		// 3 rows of 16 complex numbers: 5 * 16 * 4 operations each.
		{"DFT", ofOpset(20, nodeOf("n", "DFT", list("x"), list("y")), inputOf("x", 3, 16, 2)), "DFT", graph.Shape{3, 16, 2}, 3 * 5 * 16 * 4, 0},
		{"DFT of real numbers", ofOpset(17, nodeOf("n", "DFT", list("x"), list("y"), intAttr("axis", 1), intAttr("onesided", 1)), inputOf("x", 3, 16, 1)), "DFT", graph.Shape{3, 9, 2}, 3 * 5 * 16 * 4 / 2, 0},
		{"DFT of an axis and length", ofOpset(20, nodeOf("n", "DFT", list("x", "l", "a"), list("y")), inputOf("x", 8, 3, 2), scalar("l", 32), scalar("a", 0)), "DFT", graph.Shape{32, 3, 2}, 3 * 5 * 32 * 5, 0},
		{"DFT back to real numbers", ofOpset(20, nodeOf("n", "DFT", list("x"), list("y"), intAttr("inverse", 1), intAttr("onesided", 1)), inputOf("x", 3, 9, 2)), "DFT", graph.Shape{3, 16, 1}, 3 * 5 * 16 * 4 / 2, 0},
		// 1 + (256-32)/8 frames.
		{"STFT", ofOpset(18, nodeOf("n", "STFT", list("x", "h", "w", "l"), list("y")), inputOf("x", 2, 256), scalar("h", 8), w("w", elemFloat, 32), scalar("l", 32)), "STFT", graph.Shape{2, 29, 17, 2}, 58 * (32 + 5*32*5/2), 0},
		{"STFT of both sides", ofOpset(18, nodeOf("n", "STFT", list("x", "h", "", "l"), list("y"), intAttr("onesided", 0)), inputOf("x", 2, 256, 1), scalar("h", 8), scalar("l", 32)), "STFT", graph.Shape{2, 29, 32, 2}, 58 * 5 * 32 * 5 / 2, 0},
		// A channel more than the 16 of two blocks of 8 fills a third.
		{"blocked convolution", modelOf(blocked("Conv", list("x", "w", "b"), pads), inputOf("x", 1, 17, 8, 8), w("w", elemFloat, 32, 24, 3, 3), w("b", elemFloat, 32)), "Conv2D", graph.Shape{1, 32, 8, 8}, 2*64*32*24*9 + 64*32, 32*24*9 + 32},
		{"blocked pool", modelOf(blocked("MaxPool", list("x"), intsAttr("kernel_shape", 2, 2), intsAttr("strides", 2, 2)), inputOf("x", 1, 16, 8, 8)), "MaxPool", graph.Shape{1, 16, 4, 4}, 16 * 16 * 4, 0},
		{"blocked upsampling", modelOf(blocked("Upsample", list("x"), intsAttr("scales", 1, 1, 2, 3)), inputOf("x", 1, 16, 8, 8)), "Upsample", graph.Shape{1, 16, 16, 24}, 0, 0},
		{"to blocks", modelOf(blocked("ReorderInput", list("x"), intAttr("channels_last", 1)), inputOf("x", 1, 4, 8, 16)), "Transpose", graph.Shape{1, 16, 4, 8}, 0, 0},
		{"from blocks", modelOf(blocked("ReorderOutput", list("x"), intAttr("channels", 10), intAttr("channels_last", 1)), inputOf("x", 1, 16, 4, 8)), "Transpose", graph.Shape{1, 4, 8, 10}, 0, 0},
		{"quantised convolution, channels last", modelOf(ms("QLinearConv", list("x", "s", "z", "w", "s", "z", "s", "z", "b"), intAttr("channels_last", 1), pads), input("x", elemUint8, 1, 8, 6, 4), w("w", elemInt8, 16, 4, 3, 3), w("b", elemInt32, 16), scale, zero),
			"QLinearConv", graph.Shape{1, 8, 6, 16}, 2*48*16*36 + 48*16, 16*36 + 16},
		{"pool, channels last", modelOf(ms("QLinearAveragePool", list("x", "s", "z", "s", "z"), intAttr("channels_last", 1), intsAttr("kernel_shape", 2, 2), intsAttr("strides", 2, 2)), input("x", elemUint8, 1, 8, 6, 4), scale, zero), "AvgPool", graph.Shape{1, 4, 3, 4}, 12 * 4 * 4, 0},
		{"global pool, channels last", modelOf(ms("QLinearGlobalAveragePool", list("x", "s", "z", "s", "z"), intAttr("channels_last", 1)), input("x", elemUint8, 1, 8, 6, 4), scale, zero), "GlobalAveragePool", graph.Shape{1, 1, 1, 4}, 8 * 6 * 4, 0},
		{"convolution, all last", modelOf(ms("NhwcConv", list("x", "w")), inputOf("x", 1, 8, 6, 4), w("w", elemFloat, 16, 1, 1, 4)), "Conv2D", graph.Shape{1, 8, 6, 16}, 2 * 48 * 16 * 4, 64},
		{"quantised parts", modelOf(ms("QLinearConcat", list("s", "z", "a", "s", "z", "b", "s", "z"), intAttr("axis", 1)), input("a", elemUint8, 2, 3), input("b", elemUint8, 2, 4), scale, zero), "Concat", graph.Shape{2, 7}, 0, 0},
		{"quantised choice", modelOf(ms("QLinearWhere", list("c", "a", "s", "z", "b", "s", "z", "s", "z")), boolInput("c", 3), input("a", elemUint8, 2, 3), input("b", elemUint8, 1), scale, zero), "Where", graph.Shape{2, 3}, 6, 0},
		{"quantised mean", modelOf(ms("QLinearReduceMean", list("x", "s", "z", "s", "z"), intsAttr("axes", 1), intAttr("keepdims", 0)), input("x", elemUint8, 2, 3, 4), scale, zero), "Mean", graph.Shape{2, 4}, 24, 0},
		{"quantised sum with a weight", modelOf(ms("QLinearAdd", list("x", "s", "z", "b", "s", "z", "s", "z")), input("x", elemUint8, 2, 3), w("b", elemUint8, 3), scale, zero), "QLinearAdd", graph.Shape{2, 3}, anyFLOPs, 3},
		{"quantised LSTM", modelOf(ms("DynamicQuantizeLSTM", list("x", "w", "r", "", "", "", "", "", "ws", "wz", "ws", "wz"), intAttr("hidden_size", 6)), inputOf("x", 5, 2, 4), w("w", elemInt8, 1, 4, 24), w("r", elemInt8, 1, 6, 24), w("ws", elemFloat, 1), w("wz", elemInt8, 1)),
			"LSTM", graph.Shape{5, 1, 2, 6}, 5*2*2*24*(4+6) + 10*60*4, 24 * 10},
		{"4-bit floats", modelOf(ms("MatMulBnb4", list("x", "w", "a"), intAttr("K", 16), intAttr("N", 8), intAttr("block_size", 16), intAttr("quant_type", 1)), inputOf("x", 2, 16), w("w", elemUint8, 64), w("a", elemFloat, 8)), "MatMulNBits", graph.Shape{2, 8}, 2 * 2 * 16 * 8, 128},
		{"product with an activation", modelOf(ms("FusedMatMulActivation", list("x", "w"), intAttr("transB", 1), stringAttr("activation", "Relu")), inputOf("x", 2, 16), w("w", elemFloat, 8, 16)), "MatMul", graph.Shape{2, 8}, 2 * 2 * 16 * 8, 128},
		{"halves of an activation", modelOf(ms("BiasSplitGelu", list("x", "b")), inputOf("x", 2, 5, 16), w("b", elemFloat, 16)), "BiasGelu", graph.Shape{2, 5, 8}, 4 * 160, 16},
		// Query of one token, and room for 9 in the buffer of the keys.
		{"a step of decoding", modelOf(ms("DecoderMaskedMultiHeadAttention", list("x", "x", "x", "", "", "k", "k"), intAttr("num_heads", 2), intAttr("past_present_share_buffer", 1)), inputOf("x", 3, 1, 16), inputOf("k", 3, 2, 9, 8)), "Attention", graph.Shape{3, 1, 16}, 6 * 2 * 2 * 9 * 8, 0},
		// 4 heads, two of them for each of keys, behind 3 tokens: 5 queries see 6 keys in the mean.
		{"causal attention", modelOf(ms("GroupQueryAttention", list("x", "k", "k", "p", "p"), intAttr("num_heads", 4), intAttr("kv_num_heads", 2)), inputOf("x", 2, 5, 32), inputOf("k", 2, 5, 16), inputOf("p", 2, 2, 3, 8)), "Attention", graph.Shape{2, 5, 32}, 4 * 2 * 4 * 5 * 6 * 8, 0},
		// The same behind 3 tokens with a window of 4: all see 4.
		{"attention in a window", modelOf(ms("GroupQueryAttention", list("x", "k", "k", "p", "p"), intAttr("num_heads", 4), intAttr("kv_num_heads", 2), intAttr("local_window_size", 4)), inputOf("x", 2, 5, 32), inputOf("k", 2, 5, 16), inputOf("p", 2, 2, 3, 8)), "Attention", graph.Shape{2, 5, 32}, 4 * 2 * 4 * 5 * 4 * 8, 0},
		// Weights of the normalised queries and keys and of the sinks, and a cache of 4 bits, two numbers a byte.
		{"attention with weights", modelOf(ms("GroupQueryAttention", list("x", "k", "k", "p", "p", "", "", "", "", "", "", "s", "", "", "n", "n"), intAttr("num_heads", 4), intAttr("kv_num_heads", 2), intAttr("kv_cache_bit_width", 4)), inputOf("x", 2, 5, 32), inputOf("k", 2, 5, 16), input("p", elemUint8, 2, 2, 3, 4), w("s", elemFloat, 4), w("n", elemFloat, 8)), "Attention", graph.Shape{2, 5, 32}, 4 * 2 * 4 * 5 * 6 * 8, 4 + 8},
		{"4-bit weights with a bias", modelOf(ms("MatMulNBits", list("x", "w", "a", "", "", "b"), intAttr("K", 16), intAttr("N", 8), intAttr("bits", 4), intAttr("block_size", 16)), inputOf("x", 2, 16), w("w", elemUint8, 8, 1, 8), w("a", elemFloat, 8), w("b", elemFloat, 8)), "MatMulNBits", graph.Shape{2, 8}, anyFLOPs, 128 + 8},
		// A token: of each number of a state of 6 x 8 for each of two heads, 2 to add, 2 for each of two queries, and no decay; then 1 and 2 more.
		{"a token of linear attention", modelOf(nodeOf("n", "LinearAttention", list("q", "k", "v", "s"), list("y"), intAttr("q_num_heads", 4), intAttr("kv_num_heads", 2), stringAttr("update_rule", "linear")), inputOf("q", 3, 1, 24), inputOf("k", 3, 1, 12), inputOf("v", 3, 1, 16), inputOf("s", 3, 2, 6, 8)), "BatchMatMul", graph.Shape{3, 1, 32}, 3 * 2 * 6 * 8 * 6, 0},
		{"a token of the gated delta rule", modelOf(ms("LinearAttention", list("q", "k", "v", "s", "g", "b"), intAttr("q_num_heads", 2), intAttr("kv_num_heads", 2)), inputOf("q", 3, 1, 12), inputOf("k", 3, 1, 12), inputOf("v", 3, 1, 16), inputOf("s", 3, 2, 6, 8), inputOf("g", 3, 1, 2), inputOf("b", 3, 1, 2)), "BatchMatMul", graph.Shape{3, 1, 16}, 3 * 2 * 7 * 6 * 8, 0},
		// Two chunks of 4 tokens: 4 x (3 keys + 2 values) of 8 and three products with the state, in each token and column.
		{"linear attention in chunks", modelOf(ms("LinearAttention", list("q", "k", "v", "s", "g", "b"), intAttr("q_num_heads", 2), intAttr("kv_num_heads", 2), intAttr("chunk_size", 4)), inputOf("q", 3, 7, 16), inputOf("k", 3, 7, 16), inputOf("v", 3, 7, 16), inputOf("s", 3, 2, 8, 8), inputOf("g", 3, 7, 2), inputOf("b", 3, 7, 2)), "BatchMatMul", graph.Shape{3, 7, 16}, 2 * 3 * 2 * 2 * 4 * (4*(3*8+2*8) + 3*8*8), 0},
		{"a convolution of tokens", modelOf(ms("CausalConvWithState", list("x", "w", "b", "s"), stringAttr("activation", "silu")), inputOf("x", 2, 6, 5), w("w", elemFloat, 6, 1, 4), w("b", elemFloat, 6), inputOf("s", 2, 6, 3)), graph.CausalConv, graph.Shape{2, 6, 5}, 60 * (2*4 + 1 + 4), 30},
		{"bias of positions", modelOf(ms("RelativePositionBias", list("w", "q", "k")), inputOf("x", 1, 4, 6, 7), w("w", elemFloat, 32, 4), scalar("q", 6), scalar("k", 7), nodeOf("m", "Sub", list("x", "y"), list("z"))), "Sub", graph.Shape{1, 4, 6, 7}, 168, 128},
		// GroupNorm as torch's older exporter writes it: the scales of the inner normalisation are no weights.
		{"scales that are all one", modelOf(nodeOf("c", "Constant", nil, list("g"), tensorAttr("value", floatsTensor("", 1, 1))), nodeOf("d", "Constant", nil, list("o"), tensorAttr("value", floatsTensor("", 0, 0))), nodeOf("n", "InstanceNormalization", list("x", "g", "o"), list("y")), inputOf("x", 1, 2, 8)), "InstanceNormalization", graph.Shape{1, 2, 8}, 80, 0},
		// Weight standardisation as torch writes it: a batch normalisation of the weight.
		{"a standardised weight", modelOf(nodeOf("b", "BatchNormalization", list("w", "g", "o", "m", "v"), list("p")), nodeOf("r", "Reshape", list("p", "t"), list("q")), nodeOf("n", "Conv", list("x", "q"), list("y")),
			inputOf("x", 1, 3, 8, 8), w("w", elemFloat, 1, 16, 27), w("g", elemFloat, 16), w("o", elemFloat, 16), w("m", elemFloat, 16), w("v", elemFloat, 16), initOf(intsTensor("t", 16, 3, 3, 3))), "Conv2D", graph.Shape{1, 16, 6, 6}, 2 * 36 * 16 * 27, 16*27 + 32},
		// A bias of 32 bits behind a quantised convolution; scales of one number are none.
		{"a quantised bias", modelOf(nodeOf("d", "DequantizeLinear", list("b", "s"), list("p")), nodeOf("n", "Conv", list("x", "w", "p"), list("y")), inputOf("x", 1, 3, 8, 8), w("w", elemFloat, 16, 3, 1, 1), w("b", elemInt32, 16), scale), "Conv2D", graph.Shape{1, 16, 8, 8}, 2*64*16*3 + 64*16, 48 + 16},
		// 96 times the float 8.3333330 is 799.99997, which as a float is 800.
		{"a scale that is no fraction", ofOpset(18, nodeOf("n", "Resize", list("x", "", "f"), list("y")), inputOf("x", 1, 3, 96, 96), initOf(floatsTensor("f", 1, 1, 800./96, 800./96))), "Resize", graph.Shape{1, 3, 800, 800}, 0, 0},
		// The same as detection models compute it.
		{"sizes in floats", ofOpset(18, nodeOf("d", "Div", list("p", "q"), list("f")), nodeOf("m", "Mul", list("e", "f"), list("g")), nodeOf("f", "Floor", list("g"), list("h")), nodeOf("c", "Cast", list("h"), list("i"), intAttr("to", 7)), nodeOf("k", "Concat", list("j", "i", "i"), list("l"), intAttr("axis", 0)),
			nodeOf("n", "Resize", list("x", "", "", "l"), list("y")), inputOf("x", 1, 3, 96, 96), initOf(floatsTensor("p", 800)), initOf(floatsTensor("q", 96)), initOf(floatsTensor("e", 96)), initOf(intsTensor("j", 1, 3))), "Resize", graph.Shape{1, 3, 800, 800}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, sum := importModel(t, c.data)
			o, shape := last(g)
			want := c.flops
			if want == anyFLOPs {
				want = o.FLOPs
			}
			if o.Kind != c.kind || !shape.Equal(c.shape) || o.FLOPs != want || g.Params() != c.params || len(sum.Notes) != 0 {
				t.Errorf("%s to %v, %v FLOPs, %d parameters, notes %q; want %s to %v, %v, %d", o.Kind, shape, float64(o.FLOPs), g.Params(), sum.Notes, c.kind, c.shape, float64(want), c.params)
			}
		})
	}
}

const anyFLOPs units.FLOPs = -1 // a test does not say how many

// A loop whose body has shapes that depend on data, as detection models end with, does not
// keep the rest from being read.
func TestLoopOverData(t *testing.T) {
	body := graphAttr("body", nodeOf("", "Range", list("zero", "i", "one"), list("r")), nodeOf("", "Cast", list("r"), list("f"), intAttr("to", 1)), nodeOf("", "Concat", list("c", "f"), list("d"), intAttr("axis", 0)), nodeOf("", "Identity", list("k"), list("l")),
		bytesField(11, valueOf("i", elemInt64, []any{}...)), bytesField(11, valueOf("k", elemBool, []any{}...)), bytesField(11, valueOf("c", elemFloat, "n")), bytesField(12, valueOf("l", elemBool, []any{}...)), bytesField(12, valueOf("d", elemFloat, "n")))
	g, sum := importModel(t, modelOf(nodeOf("many", "Loop", list("n", "", "x"), list("p"), body), nodeOf("after", "Relu", list("p"), list("y")), bytesField(11, valueOf("n", elemInt64, 1)), inputOf("x", 4),
		initOf(append(tensorOf("zero", elemInt64), bytesField(7, []byte{0})...)), initOf(append(tensorOf("one", elemInt64), bytesField(7, []byte{1})...))))
	if _, shape := last(g); !shape.Equal(graph.Shape{4}) {
		t.Errorf("after the loop %v", shape)
	}
	if !slices.ContainsFunc(sum.Notes, func(s string) bool {
		return strings.Contains(s, "Loop many is left out, and its results count as what it begins with")
	}) {
		t.Errorf("notes %q", sum.Notes)
	}
}

// Integers among the weights of a training step are named.
func TestIntegersAreNotTrained(t *testing.T) {
	data := modelOf(nodeOf("m", "MatMul", list("x", "w"), list("p")), nodeOf("d", "DequantizeLinear", list("v", "s"), list("u")), nodeOf("o", "MatMul", list("p", "u"), list("y")),
		inputOf("x", 2, 4), initOf(tensorOf("w", elemFloat, 4, 4)), initOf(tensorOf("v", elemInt8, 4, 3)), initOf(tensorOf("s", elemFloat)), outputOf("y"))
	_, sum, err := Import(data, "m", Config{DefaultDim: 1, Training: true})
	want := "12 parameters are integers, which have no gradients: they are not trained, train the model that was quantised"
	if err != nil || !slices.Contains(sum.Notes, want) {
		t.Errorf("%v, notes %q", err, sum.Notes)
	}
	if _, sum := importModel(t, data); slices.Contains(sum.Notes, want) {
		t.Errorf("without training: notes %q", sum.Notes)
	}
}

// Types are known of tensors that the file records nothing of, folded ones too.
func TestType(t *testing.T) {
	_, sum := importModel(t, modelOf(nodeOf("s", "Shape", list("x"), list("d")), nodeOf("z", "ConstantOfShape", list("d"), list("h")), nodeOf("c", "Cast", list("h"), list("b"), intAttr("to", 16)), nodeOf("q", "CastLike", list("x", "b"), list("y")), inputOf("x", 2, 3)))
	for _, c := range []struct {
		tensor string
		elem   int32
		rank   int
	}{{"x", 1, 2}, {"d", 7, 1}, {"h", 1, 2}, {"y", 16, 2}, {"nothing", 0, 0}} {
		if e, dims := sum.Type(c.tensor); e != c.elem || len(dims) != c.rank {
			t.Errorf("%s: type %d of %d dimensions, want %d of %d", c.tensor, e, len(dims), c.elem, c.rank)
		}
	}
}
