package unit

import (
	"slices"

	"placer/graph"
)

const (
	// partialShare is the share of the step's time below which what one use adds to
	// a gradient stays with the variable: a regulariser's part, a bias's.
	partialShare = 1.0 / 20000
	// mostUses bounds the uses of variables that are split. Recurrent networks use
	// theirs at every step: taking all apart made half more decisions and gained a
	// hundredth at most (adr/0021).
	mostUses = 16
)

// WithPartialGradients returns h with finer cells: what each use of a variable adds
// to its gradient, where several uses do, is a cell of its own, the counterpart of the
// cell whose activations it reads. The variable's cell keeps the rest, from the sum
// on. Deciding these apart spreads the products of weight gradients, a quarter of
// Transformer-XL's step, over devices that would wait; it sends gradients of the
// variable's size between them, so it is for methods that weigh both. seconds, [N],
// are those of Find. Where nothing is to be split it returns h.
func (h *Hierarchy) WithPartialGradients(g *graph.Graph, seconds []float64) *Hierarchy {
	total := 0.0
	for _, s := range seconds {
		total += s
	}
	s := &splitter{h: h, g: g, seconds: seconds, light: total * partialShare, cell: slices.Clone(h.Levels[Cell].Of), next: int32(h.Levels[Cell].NumUnits()), source: make([]int32, g.NumOps())}
	for u, role := range h.Roles[Cell] {
		if role == Weights {
			s.split(int32(u))
		}
	}
	if len(s.use) == 0 {
		return h
	}
	return s.finish()
}

// WithoutPartialGradients returns what WithPartialGradients made h from; h itself
// where it made nothing.
func (h *Hierarchy) WithoutPartialGradients() *Hierarchy {
	if h.whole != nil {
		return h.whole
	}
	return h
}

// splitter holds the state of one WithPartialGradients.
type splitter struct {
	h       *Hierarchy
	g       *graph.Graph
	seconds []float64
	light   float64
	cell    []int32 // [N] label: a cell of h, or a new one
	next    int32   // label
	use     []int32 // [new labels] the backward cell that the partial gradient is made from
	source  []int32 // [N] what the operands of the ops of the cell at hand come from
}

// What the operands of an op of a variable's cell come from: a backward cell, or
const (
	nowhere = -1 // the variable itself
	summed  = -2 // several backward cells, or sums of such
)

// split takes the partial gradients of variable u's cell apart.
func (s *splitter) split(u int32) {
	ops := s.h.Levels[Cell].Ops[u]
	takes := map[int32]float64{} // by backward cell
	added := map[int32]bool{}    // by backward cell: what it gives goes into a sum
	for _, i := range ops {
		from := int32(nowhere)
		if s.stays(i) {
			from = summed
		}
		for _, t := range s.g.Inputs(i) {
			p := s.g.Tensor(t).Producer
			x := int32(nowhere)
			if v := s.h.Levels[Cell].Of[p]; v == u {
				x = s.source[p]
			} else if s.h.Roles[Cell][v] == Backward {
				x = v
			}
			if x != nowhere && from == nowhere {
				from = x
			} else if x != nowhere && from != x {
				from = summed
			}
		}
		s.source[i] = from
		if from >= 0 {
			takes[from] += s.seconds[i]
		} else if from == summed && !s.stays(i) {
			for _, t := range s.g.Inputs(i) {
				if p := s.g.Tensor(t).Producer; s.h.Levels[Cell].Of[p] == u && s.source[p] >= 0 {
					added[s.source[p]] = true
				}
			}
		}
	}
	uses := 0
	for x, t := range takes {
		if added[x] && t >= s.light {
			uses++
		}
	}
	if uses < 2 || uses > mostUses {
		return
	}
	label := map[int32]int32{}
	for _, i := range ops {
		x := s.source[i]
		if x < 0 || !added[x] || takes[x] < s.light {
			continue
		}
		l, ok := label[x]
		if !ok {
			l = s.next
			s.next++
			s.use = append(s.use, x)
			label[x] = l
		}
		s.cell[i] = l
	}
}

// stays reports whether op i belongs to its variable whatever it reads.
func (s *splitter) stays(i graph.OpID) bool {
	o := s.g.Op(i)
	c := o.Kind.Class()
	return o.Group > 0 || c == graph.ClassVariable || c == graph.ClassUpdate
}

// finish makes the hierarchy of the labels.
func (s *splitter) finish() *Hierarchy {
	out := &Hierarchy{whole: s.h.WithoutPartialGradients()}
	out.Levels[Op] = s.h.Levels[Op]
	cells := int32(s.h.Levels[Cell].NumUnits())
	for l := Cell; l < NumLevels; l++ {
		old := s.h.Levels[l]
		label := s.cell
		if l > Cell {
			label = slices.Clone(old.Of)
			for i, c := range s.cell {
				if c >= cells {
					label[i] = old.Of[s.h.Levels[Cell].Ops[s.use[c-cells]][0]]
				}
			}
		}
		p := partition(label)
		unit := make([]int32, old.NumUnits()+len(s.use)) // label -> unit of p
		for u, ops := range p.Ops {
			unit[label[ops[0]]] = int32(u)
		}
		role, counterpart, reads := make([]Role, p.NumUnits()), make([]int32, p.NumUnits()), make([][]int32, p.NumUnits())
		for u, ops := range p.Ops {
			from := label[ops[0]]
			if l == Cell && from >= cells {
				from = s.use[from-cells]
			}
			role[u], counterpart[u] = s.h.Roles[l][from], -1
			if q := s.h.Counterparts[l][from]; q >= 0 {
				counterpart[u] = unit[q]
			}
			if from != label[ops[0]] {
				continue
			}
			for _, r := range s.h.Reads[l][from] {
				reads[u] = append(reads[u], unit[r])
			}
		}
		out.Levels[l], out.Roles[l], out.Counterparts[l], out.Reads[l] = p, role, counterpart, reads
	}
	return out
}
