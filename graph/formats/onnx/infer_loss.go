package onnx

import "placer/graph"

var lossRules = map[string]rule{
	"SoftmaxCrossEntropyLoss": {"SoftmaxCrossEntropyLoss", loss}, "NegativeLogLikelihoodLoss": {"NegativeLogLikelihoodLoss", loss},
	"com.microsoft.SoftmaxCrossEntropyLossInternal": {"SoftmaxCrossEntropyLoss", loss},
}

// loss: scores [N,C,...] and labels [N,...] to a number, or to one for each
// label, and the logarithms of the probabilities.
func loss(c *call) {
	s := graph.Shape{}
	if c.node.string("reduction", "mean") == "none" {
		s = c.shape(1)
	}
	c.set(0, c.elem(0), s)
	c.set(1, c.elem(0), c.shape(0))
}
