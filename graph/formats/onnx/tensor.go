package onnx

import (
	"placer/graph"
)

// tensor is what is known of one value of the model.
type tensor struct {
	elem  elem        // elemNone where unknown
	shape graph.Shape // nil where unknown, empty for a scalar
	value *value      // nil where unknown
	why   string      // why the shape is unknown, if there is something to say
}

// scope resolves names to tensors; subgraphs see the names of the graphs around
// them.
type scope struct {
	outer   *scope
	tensors map[string]*tensor
	info    map[string]*valueInfo // shapes recorded in the file
	opsets  map[string]int64
}

func newScope(outer *scope) *scope {
	s := &scope{outer: outer, tensors: map[string]*tensor{}, info: map[string]*valueInfo{}}
	if outer != nil {
		s.opsets = outer.opsets
	}
	return s
}

func (s *scope) find(name string) *tensor {
	for ; s != nil; s = s.outer {
		if t := s.tensors[name]; t != nil {
			return t
		}
	}
	return nil
}

// elements returns the number of elements, 0 where the shape is unknown.
func (t *tensor) elements() int64 {
	if t == nil || t.shape == nil {
		return 0
	}
	n, err := t.shape.Elements()
	if err != nil {
		return 0
	}
	return n
}
