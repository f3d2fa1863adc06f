package check

import (
	"fmt"
	"strings"

	"placer/graph"
)

// shown is how many ops of a cycle a message names.
const shown = 6

// deadlock finds a static order in which devices wait for each other, or one for itself:
// a cycle of "reads what it makes" and "stands before it on its device".
func (x *checker) deadlock() {
	if x.Placement.Order == nil {
		return
	}
	w := newWaiting(x.g, x.Placement.Order)
	if w.run() == x.g.NumOps() {
		return
	}
	cycle := w.cycle()
	f := Finding{Rule: Deadlock, Severity: Error, Op: x.g.Op(cycle[0]).Name, Ops: len(cycle), Message: "the order waits for itself: " + w.describe(cycle),
		Fix: "order each device's ops as one topological order has them, as 'placer export --as schedule' does"}
	if d := x.Placement.Device[cycle[0]]; d != none {
		f.Device = x.Machine.Devices[d].Name
	}
	x.report.Findings = append(x.report.Findings, f)
}

// waiting is what the N ops of a graph wait for under a static order.
type waiting struct {
	g      *graph.Graph
	before []graph.OpID   // [N] what stands before an op on its device, or graph.None
	next   [][]graph.OpID // [N] what waits for an op
	left   []int          // [N] how many an op waits for that have not run
}

// newWaiting returns what the ops of g wait for where each device runs its list of order.
func newWaiting(g *graph.Graph, order [][]graph.OpID) *waiting {
	n := g.NumOps()
	w := &waiting{g: g, before: make([]graph.OpID, n), next: make([][]graph.OpID, n), left: make([]int, n)}
	edge := func(a, b graph.OpID) { w.next[a] = append(w.next[a], b); w.left[b]++ }
	for i := range w.before {
		w.before[i] = graph.None
	}
	for _, ops := range order {
		for k, i := range ops[min(1, len(ops)):] {
			w.before[i] = ops[k]
			edge(ops[k], i)
		}
	}
	for i := range graph.OpID(n) {
		for p := range g.Predecessors(i) {
			edge(p, i)
		}
	}
	return w
}

// run runs what waits for nothing that has not run, and returns how many ops that are.
func (w *waiting) run() (done int) {
	var ready []graph.OpID
	for i, n := range w.left {
		if n == 0 {
			ready = append(ready, graph.OpID(i))
		}
	}
	for ; len(ready) > 0; done++ {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, j := range w.next[i] {
			if w.left[j]--; w.left[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	return done
}

// cycle returns ops that each wait for the next, and the last for the first. Everything that
// has not run waits for something that has not: walking back leads into a cycle.
func (w *waiting) cycle() (walk []graph.OpID) {
	at := graph.OpID(0)
	for w.left[at] == 0 {
		at++
	}
	seen := map[graph.OpID]int{}
	for {
		if k, ok := seen[at]; ok {
			return walk[k:]
		}
		seen[at] = len(walk)
		walk = append(walk, at)
		at = w.blocker(at)
	}
}

// blocker returns an op that i waits for and that never runs.
func (w *waiting) blocker(i graph.OpID) graph.OpID {
	for p := range w.g.Predecessors(i) {
		if w.left[p] > 0 {
			return p
		}
	}
	return w.before[i]
}

// describe says what each op of a cycle waits for.
func (w *waiting) describe(cycle []graph.OpID) string {
	var text []string
	for k, i := range cycle[:min(shown, len(cycle))] {
		p := cycle[(k+1)%len(cycle)]
		why := "reads"
		if w.before[i] == p {
			why = "stands behind"
		}
		text = append(text, fmt.Sprintf("%s %s %s", w.g.Op(i).Name, why, w.g.Op(p).Name))
	}
	if len(cycle) > shown {
		text = append(text, fmt.Sprintf("and %d more", len(cycle)-shown))
	}
	return strings.Join(text, ", ")
}
