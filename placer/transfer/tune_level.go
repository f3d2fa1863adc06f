package transfer

import (
	"cmp"
	"slices"

	"placer/graph/unit"
	"placer/nn/vec"
	"placer/plan"
)

// links are the columns by which a unit can learn to follow others, whichever
// device they are on. Letter: J links.
var links = columnsOf("partner", "chain_last", "segment_last", "layer_last", "contact_share", "earliest", "expert_last", "block_last", "last", "fresh")

func columnsOf(names ...string) (at []int) {
	for _, n := range names {
		at = append(at, slices.Index(dynamicNames, n))
	}
	return at
}

// tuneLevel is what is learned on a graph at one level: logits = network + free +
// link . columns.
type tuneLevel struct {
	s      *Scene
	index  int
	order  []int32   // [T] units by turn
	cell   []int32   // [cells] unit
	of     []int32   // [U] a cell of the unit
	groups [][]int32 // [U] each
	rank   []int32   // [U] along the forward pass
	free   []float32 // [U,D]
	link   []float32 // [U,J]
	// gradients of the last two, and scratch
	dFree, dLink []float32
}

func newTuneLevel(s *Scene, index int, cells *unit.Partition) *tuneLevel {
	n := s.part.NumUnits()
	l := &tuneLevel{s: s, index: index, groups: [][]int32{s.chain.of, s.segment.of, s.layer.of},
		cell: make([]int32, cells.NumUnits()), of: make([]int32, n),
		free: make([]float32, n*s.d), link: make([]float32, n*len(links)), dFree: make([]float32, n*s.d), dLink: make([]float32, n*len(links))}
	for _, x := range s.steps {
		if x.unit != none {
			l.order = append(l.order, x.unit)
		}
	}
	for c, ops := range cells.Ops {
		l.cell[c] = s.part.Of[ops[0]]
		l.of[l.cell[c]] = int32(c)
	}
	l.rank = l.ranks()
	return l
}

// ranks orders the units along the forward pass: a gradient stands beside what it
// is the gradient of, a variable beside its reader.
func (l *tuneLevel) ranks() []int32 {
	s, n := l.s, len(l.of)
	turn := make([]int, n)
	for t, u := range l.order {
		turn[u] = t
	}
	key := slices.Clone(turn)
	if roles := s.problem.Units.Roles[s.level]; roles != nil {
		for u := range key {
			switch {
			case roles[u] == unit.Backward && s.partner[u] != none:
				key[u] = turn[s.partner[u]]
			case roles[u] == unit.Weights:
				for _, c := range s.near[u] {
					if roles[c.unit] == unit.Forward {
						key[u] = turn[c.unit]
						break
					}
				}
			}
		}
	}
	at := make([]int32, n)
	for u := range at {
		at[u] = int32(u)
	}
	slices.SortStableFunc(at, func(a, b int32) int { return cmp.Compare(key[a], key[b]) })
	rank := make([]int32, n)
	for r, u := range at {
		rank[u] = int32(r)
	}
	return rank
}

// trace is a placement as a level's decisions in turn.
type trace struct {
	chosen []int32   // [T]
	scores []float32 // [T,D] the network's
	link   []float32 // [T,D,J]
	ok     []bool    // [T,D]
}

// tuneWorker owns what one goroutine needs to sample and to evaluate.
type tuneWorker struct {
	evaluator plan.Evaluator
	device    []uint8 // [N] scratch
	f         *pass
	e         *episodes
	logits, p []float32 // [D]
	row       []float32 // [D,J]
}

// enter prepares w for a level.
func (w *tuneWorker) enter(n *network, l *tuneLevel) {
	w.f, w.e = &pass{n: n}, &episodes{}
	w.f.units(l.s.static)
	w.logits, w.p, w.row = make([]float32, l.s.d), make([]float32, l.s.d), make([]float32, l.s.d*len(links))
}

// links writes the link columns of sample k's present decision, [D,J].
func (w *tuneWorker) links(k, d int, to []float32) {
	for i := range d {
		y := w.e.y[(k*d+i)*numDynamic : (k*d+i+1)*numDynamic]
		for j, column := range links {
			to[i*len(links)+j] = y[column]
		}
	}
}

// logits writes network + free + link . columns for a decision on u, [D].
func (l *tuneLevel) logits(u int32, scores, columns, to []float32) {
	d, n := l.s.d, len(links)
	free, link := l.free[int(u)*d:(int(u)+1)*d], l.link[int(u)*n:(int(u)+1)*n]
	for i := range to {
		to[i] = scores[i] + free[i] + vec.Dot(link, columns[i*n:(i+1)*n])
	}
}

// tuneGuide advises all samples of fine-tuning: what is learned on the graph is
// added to the scores under one guide.
var tuneGuide = Guide{Rule: ByList, Balance: 0.3, Cling: 1, Bound: true, Own: 1}

// roll makes one placement per draw.
func (w *tuneWorker) roll(l *tuneLevel, draws []*tuneDraw) {
	w.e.roll(l.s, w.f, slices.Repeat([]Guide{tuneGuide}, len(draws)), 0, false, func(k int, u int32, scores []float32, ok []bool) int32 {
		w.links(k, l.s.d, w.row)
		l.logits(u, scores, w.row, w.logits)
		return draws[k].choose(u, w.logits, ok, w.p)
	})
}

// replay makes the placement that cells, [cells], describe, devices named in the
// order of their first use, writes it into cells under these names, and returns
// its trace.
func (l *tuneLevel) replay(w *tuneWorker, cells []uint8) *trace {
	d, n, turns := l.s.d, len(links), len(l.order)
	x := &trace{chosen: make([]int32, turns), scores: make([]float32, turns*d), link: make([]float32, turns*d*n), ok: make([]bool, turns*d)}
	name := newNames(l.s)
	t := 0
	w.e.roll(l.s, w.f, []Guide{tuneGuide}, 0, false, func(_ int, u int32, scores []float32, ok []bool) int32 {
		to := name.of(int32(cells[l.of[u]]), w.e.states[0].number)
		ok[to] = true
		w.links(0, d, x.link[t*d*n:(t+1)*d*n])
		copy(x.scores[t*d:], scores)
		copy(x.ok[t*d:], ok)
		x.chosen[t] = to
		t++
		return to
	})
	return x
}

// names gives devices the names of their first use where all are alike.
type names []int32

func newNames(s *Scene) names {
	n := make(names, s.d)
	for d := range n {
		n[d] = none
		if !s.uniform {
			n[d] = int32(d)
		}
	}
	return n
}

// of returns the name of d; number tells which names are taken.
func (n names) of(d int32, number []int32) int32 {
	if n[d] == none {
		n[d] = int32(slices.Index(number, none))
	}
	return n[d]
}

// fit takes a step of the gradient of the elite's mean log likelihood.
func (l *tuneLevel) fit(all []*elite, rate, linkRate float32) {
	if len(all) == 0 {
		return
	}
	d, n := l.s.d, len(links)
	clear(l.dFree)
	clear(l.dLink)
	logits, p := make([]float32, d), make([]float32, d)
	share := 1 / float32(len(all))
	for _, x := range all {
		for t, u := range l.order {
			columns, ok := x.trace.link[t*d*n:(t+1)*d*n], x.trace.ok[t*d:(t+1)*d]
			l.logits(u, x.trace.scores[t*d:(t+1)*d], columns, logits)
			softmax(logits, ok, p)
			p[x.trace.chosen[t]] -= 1
			free, link := l.dFree[int(u)*d:(int(u)+1)*d], l.dLink[int(u)*n:(int(u)+1)*n]
			for i, q := range p {
				if ok[i] {
					free[i] -= q * share
					vec.Axpy(link, columns[i*n:(i+1)*n], -q*share)
				}
			}
		}
	}
	vec.Axpy(l.free, l.dFree, rate)
	vec.Axpy(l.link, l.dLink, rate*linkRate)
}
