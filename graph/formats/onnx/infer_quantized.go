package onnx

import "placer/graph"

var quantizedRules = map[string]rule{
	"QuantizeLinear": {"QuantizeLinear", quantize}, "DequantizeLinear": {"DequantizeLinear", dequantize}, "DynamicQuantizeLinear": {"DynamicQuantizeLinear", dynamicQuantize},
	"com.microsoft.QuantizeLinear": {"QuantizeLinear", quantize}, "com.microsoft.DequantizeLinear": {"DequantizeLinear", dequantize},
	"qonnx.custom_op.general.Quant": {"QuantizeLinear", like}, "qonnx.custom_op.general.BipolarQuant": {"QuantizeLinear", like}, "qonnx.custom_op.general.IntQuant": {"QuantizeLinear", like},
	"qonnx.custom_op.general.Trunc": {"QuantizeLinear", like},
	"FakeQuantize":                  {"QuantizeLinear", like}, "org.openvinotoolkit.FakeQuantize": {"QuantizeLinear", like},
	"com.microsoft.FakeQuant": {"QuantizeLinear", fakeQuant},
	"onnx.brevitas.Quant":     {"QuantizeLinear", like}, "onnx.brevitas.BipolarQuant": {"QuantizeLinear", like}, "onnx.brevitas.Trunc": {"QuantizeLinear", like},
	"finn.custom_op.general.Quant": {"QuantizeLinear", like}, "finn.custom_op.general.BipolarQuant": {"QuantizeLinear", like},
}

// fakeQuant gives the rounded values and which of them were inside the range.
func fakeQuant(c *call) {
	c.set(0, c.elem(0), c.shape(0))
	c.set(1, elemBool, c.shape(0))
}

// quantize: the type is that of the zero point, or an attribute's.
func quantize(c *call) {
	e := elem(c.node.int("output_dtype", int64(elemUint8)))
	if c.has(2) {
		e = c.elem(2)
	}
	c.set(0, e, c.shape(0))
}

// dequantize: the type is that of the scale.
func dequantize(c *call) {
	e := elem(c.node.int("output_dtype", 0))
	if e == elemNone {
		e = c.elem(1)
	}
	c.set(0, e, c.shape(0))
}

func dynamicQuantize(c *call) {
	c.set(0, elemUint8, c.shape(0))
	c.set(1, elemFloat, graph.Shape{})
	c.set(2, elemUint8, graph.Shape{})
}
