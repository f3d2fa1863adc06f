package check

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/internal/words"
)

// colocated finds co-location groups that are split.
func (x *checker) colocated() {
	device := x.Placement.Device
	count := map[int32]map[uint8]int{}
	var groups []int32
	for i, d := range device {
		if k := x.g.Op(graph.OpID(i)).Group; k > 0 && d != none {
			if count[k] == nil {
				count[k] = map[uint8]int{}
				groups = append(groups, k)
			}
			count[k][d]++
		}
	}
	for _, k := range groups {
		if len(count[k]) < 2 {
			continue
		}
		most := -1
		for d := range x.Machine.Devices {
			if n := count[k][uint8(d)]; n > 0 && (most < 0 || n > count[k][uint8(most)]) {
				most = d
			}
		}
		f := Finding{Rule: Colocation, Severity: Error}
		for i, d := range device {
			if x.g.Op(graph.OpID(i)).Group == k && d != none && int(d) != most {
				if f.Op == "" {
					f.Op, f.Device = x.g.Op(graph.OpID(i)).Name, x.Machine.Devices[d].Name
				}
				f.Ops++
			}
		}
		home := x.Machine.Devices[most].Name
		f.Message = fmt.Sprintf("%s must share a device with %s on %s", f.Op, words.Count(count[k][uint8(most)], "op that is", "ops that are"), home)
		f.Fix = fmt.Sprintf("move it to %s", home)
		x.report.Findings = append(x.report.Findings, f)
	}
}

// shown is how many ops of a cycle a message names.
const shown = 6

// deadlock finds a static order in which devices wait for each other, or one for itself:
// a cycle of "reads what it makes" and "stands before it on its device".
func (x *checker) deadlock() {
	if x.Placement.Order == nil {
		return
	}
	n := x.g.NumOps()
	before := make([]graph.OpID, n) // on its device
	for i := range before {
		before[i] = graph.None
	}
	waits := make([]int, n)
	next := make([][]graph.OpID, n)
	edge := func(a, b graph.OpID) { next[a] = append(next[a], b); waits[b]++ }
	for _, ops := range x.Placement.Order {
		for k, i := range ops[min(1, len(ops)):] {
			before[i] = ops[k]
			edge(ops[k], i)
		}
	}
	for i := range graph.OpID(n) {
		for p := range x.g.Predecessors(i) {
			edge(p, i)
		}
	}
	var ready []graph.OpID
	for i := range graph.OpID(n) {
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	done := 0
	for ; len(ready) > 0; done++ {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, j := range next[i] {
			if waits[j]--; waits[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	if done == n {
		return
	}
	// Everything left waits for something left: walking back leads into a cycle.
	at := graph.OpID(0)
	for waits[at] == 0 {
		at++
	}
	seen := map[graph.OpID]int{}
	var walk []graph.OpID
	for {
		if k, ok := seen[at]; ok {
			walk = walk[k:]
			break
		}
		seen[at] = len(walk)
		walk = append(walk, at)
		at = x.blocker(at, before, waits)
	}
	var words []string
	for k := range walk {
		i, p := walk[k], walk[(k+1)%len(walk)]
		why := "reads"
		if before[i] == p {
			why = "stands behind"
		}
		if k < shown {
			words = append(words, fmt.Sprintf("%s %s %s", x.g.Op(i).Name, why, x.g.Op(p).Name))
		}
	}
	if len(walk) > shown {
		words = append(words, fmt.Sprintf("and %d more", len(walk)-shown))
	}
	f := Finding{Rule: Deadlock, Severity: Error, Op: x.g.Op(walk[0]).Name, Ops: len(walk), Message: "the order waits for itself: " + strings.Join(words, ", "),
		Fix: "order each device's ops as one topological order has them, as 'placer export --as schedule' does"}
	if d := x.Placement.Device[walk[0]]; d != none {
		f.Device = x.Machine.Devices[d].Name
	}
	x.report.Findings = append(x.report.Findings, f)
}

// blocker returns an op that i waits for and that never runs.
func (x *checker) blocker(i graph.OpID, before []graph.OpID, waits []int) graph.OpID {
	for p := range x.g.Predecessors(i) {
		if waits[p] > 0 {
			return p
		}
	}
	return before[i]
}
