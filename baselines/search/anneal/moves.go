package anneal

import "math"

// Kinds of moves.
const (
	moveRun      = iota // a run of a group's decisions goes to some device
	movePair            // with the counterparts of the other direction
	moveLayer           // with counterparts and the weights that the group reads
	moveBoundary        // a border between devices within a group shifts
	moveSwap            // two groups exchange their devices
	moveWeights         // weights go to a reader's device
	moveBalance         // a run goes from the busiest device to an idle one
	moveJoin            // a run goes to the device of a neighbour
	moveGather          // everything of a group goes where most of it is
	moveSlide           // a border between devices along the forward pass shifts, with counterparts and weights
	moveSpan            // a stretch of the forward pass goes to some device, with counterparts and weights
	moveRecreate        // many decisions are made anew by list scheduling; last, for not all replicas have it
	numKinds
)

// kinds chooses among the kinds of moves by their success: a kind's chance is a
// floor plus its share of recent improvements per try.
type kinds struct {
	n          int // of kinds that there are
	tried, won [numKinds]float64
	chance     [numKinds]float64
	since      int
}

const (
	floorChance = 0.04
	kindsMemory = 0.5 // of past tries at each update
	kindsPeriod = 128
)

// reset makes the first n kinds equally likely.
func (k *kinds) reset(n int) {
	*k = kinds{n: n}
	for i := range k.n {
		k.chance[i] = 1.0 / float64(n)
	}
}

func (k *kinds) tell(kind int, won float64) {
	k.tried[kind]++
	k.won[kind] += won
	if k.since++; k.since < kindsPeriod {
		return
	}
	k.since = 0
	var rate [numKinds]float64
	sum := 0.0
	for i := range k.n {
		rate[i] = (k.won[i] + 0.2) / (k.tried[i] + 4)
		sum += rate[i]
		k.tried[i] *= kindsMemory
		k.won[i] *= kindsMemory
	}
	for i := range k.n {
		k.chance[i] = floorChance + (1-floorChance*float64(k.n))*rate[i]/sum
	}
}

func (k *kinds) pick(x float64) int {
	for i, c := range k.chance[:k.n] {
		if x -= c; x < 0 {
			return i
		}
	}
	return moveRun
}

// propose changes some decisions and returns the kind of move.
func (w *replica) propose(run int) int {
	kind := w.moves.pick(w.rng.Float64())
	switch kind {
	case moveRun, movePair, moveLayer:
		g, a, b := w.pickRun(run)
		d := w.pickDevice(g[a])
		w.move(g[a:b], d, kind != moveRun)
		if kind == moveLayer {
			for _, v := range w.reads[w.groupOf[g[a]]] {
				w.set(v, d)
			}
		}
	case moveBoundary:
		w.boundary(run)
	case moveSwap:
		w.swap()
	case moveWeights:
		if len(w.weights) > 0 {
			v := w.weights[w.rng.IntN(len(w.weights))]
			r := w.readers[v]
			w.set(v, w.now[r[w.rng.IntN(len(r))]])
		}
	case moveBalance:
		w.balance(run)
	case moveJoin:
		g, a, b := w.pickRun(run)
		if n, _ := w.near.Neighbours(g[a+w.rng.IntN(b-a)]); len(n) > 0 {
			w.move(g[a:b], w.now[n[w.rng.IntN(len(n))]], w.rng.IntN(2) == 0)
		}
	case moveGather:
		g, a, _ := w.pickRun(run)
		w.move(g, w.now[g[a]], w.rng.IntN(2) == 0)
	case moveSlide:
		w.slide(run)
	case moveSpan:
		w.span(run)
	case moveRecreate:
		w.recreate()
	}
	return kind
}

// pickRun returns a random group and a random range of it of about run
// decisions; the whole group where run is at least its length.
func (w *replica) pickRun(run int) (g []int32, a, b int) {
	if run >= whole {
		g = w.group[w.rng.IntN(len(w.group))]
	} else {
		g = w.group[w.groupOf[w.rng.IntN(len(w.groupOf))]]
	}
	if run >= len(g) {
		return g, 0, len(g)
	}
	a = w.rng.IntN(len(g))
	return g, a, min(len(g), a+1+w.rng.IntN(2*run))
}

// pickDevice returns a random device other than that of decision u, where there
// is one.
func (w *replica) pickDevice(u int32) uint8 {
	if w.devices == 1 {
		return 0
	}
	d := uint8(w.rng.IntN(w.devices - 1))
	if d >= w.now[u] {
		d++
	}
	return d
}

// move sets the decisions us, and their counterparts if both is set, to device d.
func (w *replica) move(us []int32, d uint8, both bool) {
	for _, u := range us {
		w.set(u, d)
		if p := w.counterpart[u]; both && p >= 0 {
			w.set(p, d)
		}
		if both {
			w.movePartials(u, d)
		}
	}
}

// movePartials sets the partial gradients made from decision u to device d.
func (w *replica) movePartials(u int32, d uint8) {
	for _, v := range w.partial[u] {
		w.set(v, d)
	}
}

// boundary finds, from a random decision on, the next one of its group on
// another device, and moves the border by up to 2*run decisions.
func (w *replica) boundary(run int) {
	u := int32(w.rng.IntN(len(w.groupOf)))
	g := w.group[w.groupOf[u]]
	at := int(w.place[u])
	for at+1 < len(g) && w.now[g[at+1]] == w.now[u] {
		at++
	}
	if at+1 == len(g) {
		return
	}
	both := w.rng.IntN(2) == 0
	left, right := w.now[g[at]], w.now[g[at+1]]
	n := 1 + w.rng.IntN(2*min(run, len(g)))
	if w.rng.IntN(2) == 0 {
		w.move(g[at+1:min(len(g), at+1+n)], left, both)
	} else {
		w.move(g[max(0, at+1-n):at+1], right, both)
	}
}

// swap exchanges the devices of two random groups, each taken to be where its
// first decision is, or two devices among all groups of a stretch.
func (w *replica) swap() {
	a, b := w.group[w.rng.IntN(len(w.group))], w.group[w.rng.IntN(len(w.group))]
	da, db := w.now[a[w.rng.IntN(len(a))]], w.now[b[w.rng.IntN(len(b))]]
	if da == db {
		return
	}
	both := w.rng.IntN(2) == 0
	w.move(a, db, both)
	w.move(b, da, both)
}

// balance moves a run from the busiest device to the one of two random others
// that is less busy.
func (w *replica) balance(run int) {
	most := 0
	for d := range w.busy {
		if w.busy[d] > w.busy[most] {
			most = d
		}
	}
	for range 32 {
		g, a, b := w.pickRun(run)
		if w.now[g[a]] != uint8(most) {
			continue
		}
		d, e := w.pickDevice(g[a]), w.pickDevice(g[a])
		if w.busy[e] < w.busy[d] {
			d = e
		}
		w.move(g[a:b], d, w.rng.IntN(2) == 0)
		return
	}
}

// slide finds, from a random place in the forward pass on, the next change of
// device, and moves that border.
func (w *replica) slide(run int) {
	if len(w.line) == 0 {
		return
	}
	at := w.rng.IntN(len(w.line))
	for at+1 < len(w.line) && w.now[w.line[at+1]] == w.now[w.line[at]] {
		at++
	}
	if at+1 == len(w.line) {
		return
	}
	left, right := w.now[w.line[at]], w.now[w.line[at+1]]
	n := w.length(run)
	weights := w.rng.IntN(4) > 0
	if w.rng.IntN(2) == 0 {
		w.moveForward(w.line[at+1:min(len(w.line), at+1+n)], left, weights)
	} else {
		w.moveForward(w.line[max(0, at+1-n):at+1], right, weights)
	}
}

// span moves a stretch of the forward pass.
func (w *replica) span(run int) {
	if len(w.line) == 0 {
		return
	}
	a := w.rng.IntN(len(w.line))
	b := min(len(w.line), a+w.length(run))
	w.moveForward(w.line[a:b], w.pickDevice(w.line[a]), w.rng.IntN(4) > 0)
}

// length draws a number of decisions, small ones as often as large ones, up to
// twice run and a quarter of the forward pass.
func (w *replica) length(run int) int {
	most := max(1, min(2*run, len(w.line)/4))
	return 1 + int(math.Pow(float64(most), w.rng.Float64()))
}

// moveForward moves decisions with their counterparts and, if weights is set, what they
// read.
func (w *replica) moveForward(us []int32, d uint8, weights bool) {
	for _, u := range us {
		w.set(u, d)
		if p := w.counterpart[u]; p >= 0 {
			w.set(p, d)
		}
		w.movePartials(u, d)
		if weights {
			for _, v := range w.own[u] {
				w.set(v, d)
			}
		}
	}
}
