package unit

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
)

// Level is a granularity, from fine to coarse.
type Level uint8

// Levels.
const (
	Op      Level = iota // one unit per co-location group, one per other op
	Cell                 // a variable with its gradient and update; an LSTM step, a convolution with what follows it
	Segment              // a few consecutive cells of one chain; a branch
	Chain                // a layer's cells of one direction; a block
	NumLevels
)

var levelNames = [NumLevels]string{"op", "cell", "segment", "chain"}

func (l Level) String() string {
	if l < NumLevels {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel reads a name that String prints.
func ParseLevel(s string) (Level, error) {
	for l, n := range levelNames {
		if n == s {
			return Level(l), nil
		}
	}
	return 0, fmt.Errorf("unknown granularity %q, want one of %s", s, strings.Join(levelNames[:], ", "))
}

// Role says what the ops of a cell, and so of a unit of any coarser level, do.
type Role uint8

// Roles.
const (
	Forward  Role = iota // everything that is neither of the others
	Backward             // gradients of activations
	Weights              // variables, their gradients and updates
)

var roleNames = [...]string{"forward", "backward", "weights"}

func (r Role) String() string { return roleNames[r] }

// Partition assigns every op to a unit.
type Partition struct {
	Of  []int32        // [N] op -> unit, 0..U-1; units are ordered by their first op
	Ops [][]graph.OpID // [U] ops of each unit, ascending
}

// NumUnits returns U.
func (p *Partition) NumUnits() int { return len(p.Ops) }

// Hierarchy holds one partition per level; every unit of a level lies within
// one unit of each coarser level.
type Hierarchy struct {
	Levels [NumLevels]*Partition
	// Roles gives the role of each unit of a level; nil at the op level.
	Roles [NumLevels][]Role
	// Counterparts gives, for each unit of a level, the unit of the other direction
	// that computes its gradients or whose gradients it computes; -1 where there
	// is none; nil at the op level.
	Counterparts [NumLevels][]int32
	// Reads lists, for each unit of a level, the Weights units of that level that
	// it reads, ascending; nil at the op level.
	Reads [NumLevels][][]int32

	timeStep []bool // [chains] of ByTimeStep: a time step of the forward pass

	whole *Hierarchy // what partial gradients were taken from, if any were
}

// Parents returns, for each unit of level fine, the unit of level coarse that
// contains it.
func (h *Hierarchy) Parents(fine, coarse Level) []int32 {
	if fine > coarse {
		panic(fmt.Sprintf("unit: parents of %v at the finer level %v", fine, coarse))
	}
	f, c := h.Levels[fine], h.Levels[coarse]
	up := make([]int32, f.NumUnits())
	for u, ops := range f.Ops {
		up[u] = c.Of[ops[0]]
	}
	return up
}

// describe gives level l, coarser than cells, their roles, counterparts and reads.
func (h *Hierarchy) describe(l Level) {
	n, up := h.Levels[l].NumUnits(), h.Parents(Cell, l)
	h.Roles[l], h.Counterparts[l], h.Reads[l] = make([]Role, n), make([]int32, n), make([][]int32, n)
	for u := range n {
		h.Counterparts[l][u] = -1
	}
	for c, u := range up {
		h.Roles[l][u] = h.Roles[Cell][c]
		if q := h.Counterparts[Cell][c]; q != -1 && h.Counterparts[l][u] == -1 {
			h.Counterparts[l][u] = up[q]
		}
		for _, w := range h.Reads[Cell][c] {
			if v := up[w]; !slices.Contains(h.Reads[l][u], v) {
				h.Reads[l][u] = append(h.Reads[l][u], v)
			}
		}
	}
	for _, r := range h.Reads[l] {
		slices.Sort(r)
	}
}

// Check reports the first broken invariant of h as units of g: partitions of all
// ops ordered by first op, nested, that split no co-location group.
func (h *Hierarchy) Check(g *graph.Graph) error {
	for l, p := range h.Levels {
		if p == nil || len(p.Of) != g.NumOps() {
			return fmt.Errorf("level %v: not a partition of %d ops", Level(l), g.NumOps())
		}
		total, last := 0, graph.None
		for u, ops := range p.Ops {
			if len(ops) == 0 || ops[0] <= last {
				return fmt.Errorf("level %v: unit %d is empty or not in the order of first ops", Level(l), u)
			}
			last = ops[0]
			total += len(ops)
			for k, i := range ops {
				if k > 0 && ops[k-1] >= i || p.Of[i] != int32(u) {
					return fmt.Errorf("level %v: unit %d lists op %d out of place", Level(l), u, i)
				}
			}
		}
		if total != g.NumOps() {
			return fmt.Errorf("level %v: units hold %d ops of %d", Level(l), total, g.NumOps())
		}
		if l == 0 {
			continue
		}
		for u, ops := range h.Levels[l-1].Ops {
			for _, i := range ops {
				if p.Of[i] != p.Of[ops[0]] {
					return fmt.Errorf("level %v: unit %d of level %v is split", Level(l), u, Level(l-1))
				}
			}
		}
	}
	home := map[int32]int32{}
	for i := range g.NumOps() {
		k := g.Op(graph.OpID(i)).Group
		if k == 0 {
			continue
		}
		u := h.Levels[Op].Of[i]
		if first, ok := home[k]; ok && first != u {
			return fmt.Errorf("level op: co-location group %d is split", k)
		}
		home[k] = u
	}
	return nil
}

// partition numbers the classes of label, [N], by their first op.
func partition(label []int32) *Partition {
	top := int32(-1)
	for _, l := range label {
		top = max(top, l)
	}
	number := make([]int32, top+1)
	for l := range number {
		number[l] = -1
	}
	p := &Partition{Of: make([]int32, len(label))}
	var size []int32
	for i, l := range label {
		if number[l] < 0 {
			number[l] = int32(len(size))
			size = append(size, 0)
		}
		p.Of[i] = number[l]
		size[number[l]]++
	}
	all := make([]graph.OpID, len(label))
	p.Ops = make([][]graph.OpID, len(size))
	at := int32(0)
	for u, n := range size {
		p.Ops[u] = all[at : at : at+n]
		at += n
	}
	for i, u := range p.Of {
		p.Ops[u] = append(p.Ops[u], graph.OpID(i))
	}
	return p
}
