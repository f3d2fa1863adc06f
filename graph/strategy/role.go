package strategy

import "placer/graph"

// Role says how ranks share out an op of the forward pass that reads a weight.
type Role uint8

// Roles.
const (
	NoRole        Role = iota
	ColumnProduct      // of a weight that is cut by the product's columns
	RowProduct         // of a weight that is cut by rows, as the activation is by columns: a partial sum
	OutputProduct      // by columns, which are the vocabulary
	TableLookup        // of a table that is cut by rows, which are the vocabulary: a partial sum
)

// Role returns the role of op i and the weight that it reads.
func (s *Split) Role(i graph.OpID) (Role, graph.TensorID) {
	if s.lookup[i] {
		return TableLookup, s.m.Micro.Inputs(i)[0]
	}
	x, w, ok := s.linear(i)
	switch {
	case !ok || !s.Shared[i]:
		return NoRole, 0
	case s.Cut[x]:
		return RowProduct, w
	case s.output[i]:
		return OutputProduct, w
	}
	return ColumnProduct, w
}

// Factors returns the activation and the weight that product i multiplies.
func (s *Split) Factors(i graph.OpID) (x, w graph.TensorID) {
	x, w, _ = s.linear(i)
	return x, w
}
