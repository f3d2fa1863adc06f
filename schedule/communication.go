package schedule

import (
	"cmp"
	"iter"
	"slices"

	"placer/graph"
	"placer/units"
)

// Exchange is something that unit From hands to another unit, To.
type Exchange struct {
	From, To int32
	Bytes    units.Bytes
}

// Reads yields an exchange for every operand of every op that an op of another unit
// makes; of, [N], is each op's unit.
func Reads(g *graph.Graph, of []int32) iter.Seq[Exchange] {
	return func(yield func(Exchange) bool) {
		for v := range graph.OpID(g.NumOps()) {
			for _, t := range g.Inputs(v) {
				x := g.Tensor(t)
				if e := (Exchange{of[x.Producer], of[v], x.Bytes}); e.From != e.To && !yield(e) {
					return
				}
			}
		}
	}
}

// Transfers yields an exchange for every tensor and every other unit that reads it:
// a tensor that several ops of a unit read crosses once. of, [N], is each op's unit.
func Transfers(g *graph.Graph, of []int32) iter.Seq[Exchange] {
	return func(yield func(Exchange) bool) {
		var to []int32
		for t := range graph.TensorID(g.NumTensors()) {
			x := g.Tensor(t)
			to = to[:0]
			for _, c := range g.Consumers(t) {
				to = append(to, of[c])
			}
			slices.Sort(to)
			for _, u := range slices.Compact(to) {
				if e := (Exchange{of[x.Producer], u, x.Bytes}); e.From != e.To && !yield(e) {
					return
				}
			}
		}
	}
}

// Controls yields an exchange of no bytes for every control dependency between
// units; of, [N], is each op's unit.
func Controls(g *graph.Graph, of []int32) iter.Seq[Exchange] {
	return func(yield func(Exchange) bool) {
		for v := range graph.OpID(g.NumOps()) {
			for _, q := range g.Control(v) {
				if e := (Exchange{From: of[q], To: of[v]}); e.From != e.To && !yield(e) {
					return
				}
			}
		}
	}
}

// Communication is the undirected graph of what U units exchange, in compressed
// rows: the neighbours of unit u are Unit[Start[u]:Start[u+1]], without repetition,
// and Weight says beside each how much they exchange, in both directions together.
type Communication struct {
	Start  []int32 // [U+1]
	Unit   []int32
	Weight []float64
}

// BytesPlusOne weighs an exchange by its bytes and one, so that control counts too.
func BytesPlusOne(b units.Bytes) float64 { return float64(b) + 1 }

// NewCommunication returns the graph of n units that make the exchanges, each
// weighed by its bytes. Neighbours are in ascending order.
func NewCommunication(n int, weight func(units.Bytes) float64, exchanges ...iter.Seq[Exchange]) *Communication {
	type edge struct {
		a, b   int32
		weight float64
	}
	var edges []edge
	for _, seq := range exchanges {
		for e := range seq {
			edges = append(edges, edge{e.From, e.To, weight(e.Bytes)})
		}
	}
	at := make([]int32, n+1) // of each unit's edges, both directions
	for _, e := range edges {
		at[e.a+1]++
		at[e.b+1]++
	}
	for u := range n {
		at[u+1] += at[u]
	}
	// By the unit at the other end first and then by unit, each time keeping the order of
	// equals: rows in ascending order, and in each the edges of one neighbour as they came.
	type half struct {
		unit, of int32
		weight   float64
	}
	byOther, next := make([]half, 2*len(edges)), slices.Clone(at)
	put := func(to []half, bucket int32, h half) {
		to[next[bucket]] = h
		next[bucket]++
	}
	for _, e := range edges {
		put(byOther, e.b, half{e.b, e.a, e.weight})
		put(byOther, e.a, half{e.a, e.b, e.weight})
	}
	rows := make([]half, len(byOther))
	copy(next, at)
	for _, h := range byOther {
		put(rows, h.of, h)
	}
	c := &Communication{Start: make([]int32, n+1), Unit: make([]int32, 0, len(rows)), Weight: make([]float64, 0, len(rows))}
	for u := range n {
		first := len(c.Unit)
		for _, h := range rows[at[u]:at[u+1]] {
			if k := len(c.Unit) - 1; k >= first && c.Unit[k] == h.unit {
				c.Weight[k] += h.weight
				continue
			}
			c.Unit, c.Weight = append(c.Unit, h.unit), append(c.Weight, h.weight)
		}
		c.Start[u+1] = int32(len(c.Unit))
	}
	return c
}

// NumUnits returns U.
func (c *Communication) NumUnits() int { return len(c.Start) - 1 }

// Neighbours returns the neighbours of unit u and what it exchanges with each; the
// slices are the graph's own.
func (c *Communication) Neighbours(u int32) (unit []int32, weight []float64) {
	return c.Unit[c.Start[u]:c.Start[u+1]], c.Weight[c.Start[u]:c.Start[u+1]]
}

// Heaviest returns the rows cut down to at most most neighbours each, those with
// the largest weights, in falling order; ties go to the lower unit.
func (c *Communication) Heaviest(most int) *Communication {
	h := &Communication{Start: make([]int32, 1, len(c.Start))}
	var order []int32
	for u := range int32(c.NumUnits()) {
		order = order[:0]
		for k := c.Start[u]; k < c.Start[u+1]; k++ {
			order = append(order, k)
		}
		slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(c.Weight[y], c.Weight[x]) })
		for _, k := range order[:min(most, len(order))] {
			h.Unit, h.Weight = append(h.Unit, c.Unit[k]), append(h.Weight, c.Weight[k])
		}
		h.Start = append(h.Start, int32(len(h.Unit)))
	}
	return h
}
