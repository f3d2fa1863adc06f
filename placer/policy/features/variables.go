package features

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"placer/graph"
)

// variables gives every unit the place, 0..1, of the heaviest variable that it holds
// or reads: among the units that hold variables, in the order of their first use.
func (s *summary) variables() {
	place := s.variablePlaces()
	for u, v := range s.heaviestVariables() {
		if v >= 0 {
			s.rows[u].variableOrder = place[v]
		}
	}
}

// variablePlaces returns the place of each unit that holds variables, [U].
func (s *summary) variablePlaces() []float64 {
	firstUse := make([]float64, len(s.rows)) // when the first reader could start, in seconds
	var order []int
	for u := range s.rows {
		firstUse[u] = math.Inf(1)
		if s.rows[u].variable == 1 {
			order = append(order, u)
		}
	}
	for u, reader := range s.variableReads() {
		firstUse[u] = math.Min(firstUse[u], s.top[reader])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(firstUse[a], firstUse[b]) })
	place := make([]float64, len(s.rows))
	for k, u := range order {
		place[u] = (float64(k) + 0.5) / float64(len(order))
	}
	return place
}

// heaviestVariables returns the unit itself for one that holds variables, for others
// the unit of most parameters that they read, the first of equals, or -1, [U].
func (s *summary) heaviestVariables() []int32 {
	heaviest := make([]int32, len(s.rows))
	for u := range heaviest {
		heaviest[u] = -1
		if s.rows[u].variable == 1 {
			heaviest[u] = int32(u)
		}
	}
	for from, reader := range s.variableReads() {
		u := s.Units.Of[reader]
		if v := heaviest[u]; s.rows[u].variable == 0 && (v < 0 || s.rows[from].params > s.rows[v].params) {
			heaviest[u] = from
		}
	}
	return heaviest
}

// variableReads yields each read of a resident tensor: the unit that holds it and the
// op that reads.
func (s *summary) variableReads() iter.Seq2[int32, graph.OpID] {
	return func(yield func(int32, graph.OpID) bool) {
		for t := range graph.TensorID(s.Graph.NumTensors()) {
			x := s.Graph.Tensor(t)
			from := s.Units.Of[x.Producer]
			if s.rows[from].variable == 0 || !x.Resident {
				continue
			}
			for _, c := range s.Graph.Consumers(t) {
				if !yield(from, c) {
					return
				}
			}
		}
	}
}
