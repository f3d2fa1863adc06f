package onnx

import "placer/graph"

// rule infers the outputs of one operator. kind is its name in package graph;
// empty keeps ONNX's.
type rule struct {
	kind  graph.Kind
	infer func(*call)
}

// rules is the one table of operators, by domain and name.
var rules = merge(elementwiseRules, productRules, windowRules, reduceRules, normRules, shapeRules, moveRules, gatherRules,
	recurrentRules, quantizedRules, attentionRules, expertRules, randomRules, lossRules, gradientRules, transformRules, blockedRules)

func merge(tables ...map[string]rule) map[string]rule {
	all := map[string]rule{}
	for _, t := range tables {
		for name, r := range t {
			if _, twice := all[name]; twice {
				panic("onnx: two rules for " + name)
			}
			all[name] = r
		}
	}
	return all
}

// each makes a table in which the named operators share a rule.
func each(infer func(*call), names ...string) map[string]rule {
	m := map[string]rule{}
	for _, n := range names {
		m[n] = rule{infer: infer}
	}
	return m
}

// like infers that every output has type and shape of input 0.
func like(c *call) {
	for k := range c.out {
		c.set(k, c.elem(0), c.shape(0))
	}
}
