package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/internal/words"
	"placer/plan"
	"placer/units"
)

// tidyTries bounds the evaluations in which a plan is tidied.
const tidyTries = 64

// rounding is the share by which two values of the same worth may differ: sums over the
// same ops in another order.
const rounding = 1e-9

// span is the values that a plan may take on when it is tidied.
type span struct{ least, most float64 }

// sameAs is the values as good as value and no better.
func sameAs(value float64) span { return span{value * (1 - rounding), value * (1 + tie)} }

// upTo is the values as good as value, or better.
func upTo(value float64) span { return span{math.Inf(-1), value * (1 + tie)} }

// tidier looks for a plan that uses fewer devices and sends less.
type tidier struct {
	g        *graph.Graph
	e        plan.Evaluator
	d        plan.Decision // the best so far
	overflow units.Bytes   // of the plan to be tidied
	within   span
	tries    int
}

// tidy returns a decision of a value within span and of d's overflow, which is given, that
// leaves less to the links: what a step starts with (weights, constants, inputs, and views of
// them) goes to the device that reads it, and devices that are not needed are given up. It
// returns how many evaluations that took.
func tidy(g *graph.Graph, e plan.Evaluator, d plan.Decision, overflow units.Bytes, within span) (plan.Decision, int) {
	t := &tidier{g: g, e: e, d: d.Clone(), overflow: overflow, within: within}
	if plan.DevicesOf(d.Device) > 1 {
		t.sources()
		t.devices()
	}
	return t.d, t.tries
}

// try takes over the placement device if its value is within the span, which then ends at
// a tie with that value.
func (t *tidier) try(device []uint8) bool {
	if t.tries >= tidyTries {
		return false
	}
	t.tries++
	next := t.d
	next.Device = device
	s := t.e.Evaluate(next)
	if s.Overflow != t.overflow || s.Value < t.within.least || s.Value > t.within.most {
		return false
	}
	t.within.most = min(t.within.most, s.Value*(1+tie))
	t.d.Device = slices.Clone(device)
	return true
}

// sources moves what a step starts with to its readers: all of it, or the halves of what
// is left that can be moved.
func (t *tidier) sources() {
	g := t.g
	n := g.NumOps()
	source := make([]bool, n)
	for i := range graph.OpID(n) {
		o := g.Op(i)
		class := o.Kind.Class()
		source[i] = o.Group == 0 && len(g.Control(i)) == 0 &&
			(class == graph.ClassVariable || class == graph.ClassConst || class == graph.ClassInput || class == graph.ClassMeta && len(g.Inputs(i)) > 0)
		for _, x := range g.Inputs(i) {
			source[i] = source[i] && source[g.Tensor(x).Producer]
		}
	}
	device := slices.Clone(t.d.Device)
	var moves []graph.OpID
	for i := graph.OpID(n - 1); i >= 0; i-- { // views before what they are views of
		if !source[i] {
			continue
		}
		if to := t.readersOf(device, i); to != device[i] {
			device[i] = to
			moves = append(moves, i)
		}
	}
	t.move(device, moves)
}

// move tries to give the ops of moves the devices that they have in target; where that
// is worse, those of each half.
func (t *tidier) move(target []uint8, moves []graph.OpID) {
	if len(moves) == 0 || t.tries >= tidyTries {
		return
	}
	device := slices.Clone(t.d.Device)
	for _, i := range moves {
		device[i] = target[i]
	}
	if t.try(device) || len(moves) == 1 {
		return
	}
	t.move(target, moves[:len(moves)/2])
	t.move(target, moves[len(moves)/2:])
}

// readersOf returns the device on which most bytes that op i makes are read, the lowest
// of equals; its own where that sends no less.
func (t *tidier) readersOf(device []uint8, i graph.OpID) uint8 {
	first, end := t.g.Outputs(i)
	sent := func(d uint8) (b units.Bytes) {
		was := device[i]
		device[i] = d
		for x := first; x < end; x++ {
			b += traffic(t.g, device, x)
		}
		for _, x := range t.g.Inputs(i) {
			b += traffic(t.g, device, x)
		}
		device[i] = was
		return b
	}
	best, least := device[i], sent(device[i])
	for x := first; x < end; x++ {
		for _, c := range t.g.Consumers(x) {
			if b := sent(device[c]); b < least || b == least && best != device[i] && device[c] < best {
				best, least = device[c], b
			}
		}
	}
	return best
}

// devices gives up one device after another, as long as that is as good.
func (t *tidier) devices() {
	for plan.DevicesOf(t.d.Device) > 1 && t.giveUpOne() {
	}
}

// giveUpOne gives up a device, if that is as good, the least busy first: all its ops go to
// the device with which it exchanges most, or to the next.
func (t *tidier) giveUpOne() bool {
	order := t.leastBusyFirst()
	for _, from := range order[:len(order)-1] {
		for _, to := range t.partners(from) {
			device := slices.Clone(t.d.Device)
			for i, d := range device {
				if d == from {
					device[i] = to
				}
			}
			if t.try(device) {
				return true
			}
		}
	}
	return false
}

// leastBusyFirst returns the devices in use by the time of their ops, of equals the last
// first.
func (t *tidier) leastBusyFirst() (order []uint8) {
	busy := map[uint8]float64{}
	for i, d := range t.d.Device {
		busy[d] += t.e.OpSeconds(int(d))[i]
	}
	for d := range busy {
		order = append(order, d)
	}
	slices.SortFunc(order, func(a, b uint8) int { return cmp.Or(cmp.Compare(busy[a], busy[b]), cmp.Compare(b, a)) })
	return order
}

// maxPartners is how many devices the ops of one are offered to.
const maxPartners = 3

// partners returns the devices with which from exchanges most bytes, at most maxPartners.
func (t *tidier) partners(from uint8) []uint8 {
	bytes := map[uint8]units.Bytes{}
	for _, d := range t.d.Device {
		if d != from {
			bytes[d] += 0
		}
	}
	for x := range graph.TensorID(t.g.NumTensors()) {
		p := t.d.Device[t.g.Tensor(x).Producer]
		for _, c := range t.g.Consumers(x) {
			switch d := t.d.Device[c]; {
			case p == from && d != from:
				bytes[d] += t.g.Tensor(x).Bytes
			case p != from && d == from:
				bytes[p] += t.g.Tensor(x).Bytes
			}
		}
	}
	var all []uint8
	for d := range bytes {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b uint8) int {
		if bytes[a] != bytes[b] {
			return cmp.Compare(float64(bytes[b]), float64(bytes[a]))
		}
		return int(a) - int(b)
	})
	return all[:min(maxPartners, len(all))]
}

// tidyNote says what tidying changed at which value, empty where it changed nothing.
func tidyNote(g *graph.Graph, before, after []uint8, value string, tries int) string {
	moved := 0
	for i := range before {
		if before[i] != after[i] {
			moved++
		}
	}
	if moved == 0 {
		return ""
	}
	return fmt.Sprintf("tidied at %s: %s moved, %d of %d devices kept, %v sent (before: %v), %s",
		value, words.Count(moved, "op", "ops"), plan.DevicesOf(after), plan.DevicesOf(before), Traffic(g, after), Traffic(g, before), words.Count(tries, "evaluation", "evaluations"))
}
