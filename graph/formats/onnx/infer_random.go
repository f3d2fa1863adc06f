package onnx

import "placer/graph"

var randomRules = map[string]rule{
	"RandomNormal": {"RandomStandardNormal", random}, "RandomUniform": {"RandomUniform", random},
	"RandomNormalLike": {"RandomStandardNormal", randomLike}, "RandomUniformLike": {"RandomUniform", randomLike}, "Bernoulli": {"Bernoulli", randomLike},
	"Multinomial": {"Multinomial", multinomial},
	"HannWindow":  {"WindowFunction", windowFunction}, "HammingWindow": {"WindowFunction", windowFunction}, "BlackmanWindow": {"WindowFunction", windowFunction},
}

func random(c *call) {
	c.set(0, elem(c.node.int("dtype", int64(elemFloat))), append(graph.Shape{}, c.node.ints("shape")...))
}

func randomLike(c *call) { c.set(0, elem(c.node.int("dtype", int64(c.elem(0)))), c.shape(0)) }

func multinomial(c *call) {
	c.set(0, elem(c.node.int("dtype", int64(elemInt32))), graph.Shape{c.ranked(0, 2, 2)[0], c.node.int("sample_size", 1)})
}

func windowFunction(c *call) {
	c.set(0, elem(c.node.int("output_datatype", int64(elemFloat))), graph.Shape{c.scalar(0)})
}
