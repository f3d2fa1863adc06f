package check

import (
	"cmp"
	"fmt"
	"slices"

	"placer/graph"
	"placer/internal/words"
	"placer/units"
)

// loop is the readers of one parameter that follow one another: the time steps of a
// recurrent layer.
type loop struct {
	variable graph.OpID
	readers  []int32 // in the order in which they follow
	cuts     int     // between readers on different devices
}

// loops finds recurrent layers whose time steps change devices.
func (x *checker) loops() {
	var all []loop
	for i := range graph.OpID(x.g.NumOps()) {
		if x.g.Op(i).Resident == 0 || x.g.Op(i).Kind.Class() != graph.ClassVariable {
			continue
		}
		if l := x.loopOf(i); l.cuts > 0 {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b loop) int { return cmp.Compare(b.cuts, a.cuts) })
	told := map[int32]bool{} // parts
	found := 0
	for _, l := range all[:min(len(all), trials)] {
		part := x.part[l.readers[0]]
		if told[part] {
			continue
		}
		f := Finding{Rule: LoopCut, Op: x.g.Op(graph.OpID(l.readers[0])).Name, Ops: len(l.readers), Seconds: x.crossing(l.readers),
			Message: fmt.Sprintf("the %d time steps that read %s change devices %s", len(l.readers), x.g.Op(l.variable).Name, words.Count(l.cuts, "time", "times"))}
		best, device := x.score, x.now.Device
		for to := range x.Machine.Devices {
			if !slices.ContainsFunc(l.readers, func(r int32) bool { return int(x.now.Device[r]) == to }) {
				continue
			}
			for k, what := range []string{"them", x.name[part]} {
				moved := x.moved(l.readers, to)
				if k == 1 {
					moved = x.moved(x.all(part), to)
				}
				if s := x.try(moved); s.Better(best) {
					best, device = s, moved
					f.Device = x.Machine.Devices[to].Name
					f.Fix = fmt.Sprintf("keep %s on %s", what, f.Device)
				}
			}
		}
		if x.helps(f, device) {
			told[part] = true
			if found++; found == listed {
				return
			}
		}
	}
}

// loopLeast is how many readers of a parameter make a loop.
const loopLeast = 3

// loopOf returns the loop of a variable: the forward readers of one kind, if each but the
// first depends on the one before it.
func (x *checker) loopOf(v graph.OpID) (l loop) {
	l.variable = v
	by := map[graph.Kind][]int32{}
	var kinds []graph.Kind
	x.readers(v, func(r graph.OpID) {
		o := x.g.Op(r)
		if o.Phase != graph.Forward {
			return
		}
		if by[o.Kind] == nil {
			kinds = append(kinds, o.Kind)
		}
		by[o.Kind] = append(by[o.Kind], int32(r))
	})
	for _, k := range kinds {
		if len(by[k]) > len(l.readers) {
			l.readers = by[k]
		}
	}
	if len(l.readers) < loopLeast {
		return l
	}
	slices.Sort(l.readers)
	l.readers = slices.Compact(l.readers)
	for k, r := range l.readers[1:] {
		if x.now.Device[r] != x.now.Device[l.readers[k]] {
			l.cuts++
		}
	}
	if l.cuts == 0 {
		return l
	}
	for k, r := range l.readers[1:] {
		if !x.follows(graph.OpID(l.readers[k]), graph.OpID(r)) {
			return loop{variable: v}
		}
	}
	return l
}

// follows reports whether op b depends on op a, which has a lower id.
func (x *checker) follows(a, b graph.OpID) bool {
	seen := map[graph.OpID]bool{b: true}
	stack := []graph.OpID{b}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for p := range x.g.Predecessors(i) {
			if p == a {
				return true
			}
			if p > a && !seen[p] {
				seen[p] = true
				stack = append(stack, p)
			}
		}
	}
	return false
}

// all returns the ops of a part.
func (x *checker) all(part int32) (ops []int32) {
	for i, p := range x.part {
		if p == part {
			ops = append(ops, int32(i))
		}
	}
	return ops
}

// crossing returns the seconds of what ops make for readers on other devices.
func (x *checker) crossing(ops []int32) (s units.Seconds) {
	for _, i := range ops {
		first, end := x.g.Outputs(graph.OpID(i))
		for t := first; t < end; t++ {
			for _, r := range x.g.Consumers(t) {
				if from, to := int(x.now.Device[i]), int(x.now.Device[r]); from != to {
					s += x.Machine.TransferSeconds(from, to, x.g.Tensor(t).Bytes)
					break
				}
			}
		}
	}
	return s
}

// unequal is how many times the mean of the devices in use the busiest one computes.
const unequal = 1.3

// unbalanced looks for a part of the busiest device that another device had better run.
func (x *checker) unbalanced() {
	var sum units.Seconds
	used := 0
	for _, b := range x.result.Busy {
		sum += b
		if b > 0 {
			used++
		}
	}
	from := x.busiest()
	if used < 2 || float64(x.result.Busy[from]) < unequal*float64(sum)/float64(used) {
		return
	}
	best := x.score
	var f Finding
	var device []uint8
	tried := 0
	for _, p := range x.partsOn(from) {
		ops, seconds := x.on(p, from)
		for to := range x.Machine.Devices {
			if to == from || x.result.Busy[to] == 0 || tried == trials {
				continue
			}
			tried++
			moved := x.moved(ops, to)
			if s := x.try(moved); s.Better(best) {
				best, device = s, moved
				f = Finding{Rule: Unbalanced, Op: x.name[p], Device: x.Machine.Devices[from].Name, Ops: len(ops), Seconds: x.result.Busy[from] - sum/units.Seconds(used),
					Message: fmt.Sprintf("%s is busy for %v, the devices in use for %v in the mean", x.Machine.Devices[from].Name, x.result.Busy[from], sum/units.Seconds(used)),
					Fix:     fmt.Sprintf("move %s (%v of work) to %s", x.name[p], units.Seconds(seconds), x.Machine.Devices[to].Name)}
			}
		}
	}
	if device != nil {
		x.helps(f, device)
	}
}
