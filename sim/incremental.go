package sim

import (
	"slices"

	"placer/graph"
	"placer/plan"
)

// Incremental judges a placement that changes by some ops at a time; see plan.Moves. Its
// scores equal those of Simulator.Evaluate to the last bit.
//
// Where links serve one transfer at a time, under priorities, it runs a loop that knows
// step times alone and stops as soon as the work that a device has left cannot be done
// within the limit (docs/adr/0032-evaluation-of-changes.md).
// Memory needs no counting if all that a device ever holds in the step fits at once;
// otherwise, and in every other case, the simulator runs the whole step.
type Incremental struct {
	t     *tables
	s     *Simulator    // of t; nil before it has to do
	given plan.Decision // Device is what Move changes
	step  quickLoop     // nil where the simulator has to do
	unfit int           // runs of step in a row that ended without a proof that memory is enough
	rest  int           // scores that the simulator alone makes before step is tried again
}

// quickLoop knows the length of a step alone.
type quickLoop interface {
	move(op int32, device uint8)
	// run returns the length of the step; ok is false where it is proven to be longer
	// than limit.
	run(limit float64) (makespan float64, ok bool)
	// fits reports whether the step just run is known to fit into memory.
	fits() bool
}

// A placement that nearly every move improves, in memory that is nearly full, is run by
// both loops. After unfitRuns such runs in a row the simulator does the next restScores
// alone.
const unfitRuns, restScores = 8, 64

var _ plan.Moves = (*Incremental)(nil)

// Moves returns an Incremental with the tables of s, for any goroutine.
func (s *Simulator) Moves() plan.Moves {
	return &Incremental{t: &s.tables, given: plan.Decision{Device: make([]uint8, s.n)}}
}

// whole runs the whole step.
func (x *Incremental) whole() plan.Score {
	if x.s == nil {
		x.s = newSimulator(x.t)
	}
	return x.s.Evaluate(x.given)
}

// Reset is as plan.Moves says. Of a fused plan it costs what it changes.
func (x *Incremental) Reset(d plan.Decision) {
	fused, same := x.step.(*kernelStepper)
	same = same && d.Fusion != nil && d.Priority != nil
	if !same && (x.step == nil || (d.Fusion == nil) != (x.given.Fusion == nil) || !slices.Equal(x.given.Priority, d.Priority)) {
		x.step = newQuickLoop(x.t, d)
		clear(x.given.Device)
	}
	if same {
		fused.change(d.Priority, d.Fusion)
	}
	x.given.Priority = refilled(x.given.Priority, d.Priority)
	x.given.Fusion = refilled(x.given.Fusion, d.Fusion)
	for i, to := range d.Device {
		if x.given.Device[i] != to {
			x.move(int32(i), to)
		}
	}
	if k, ok := x.step.(*kernelStepper); ok && !same {
		k.fuse(d.Fusion)
	}
}

// refilled returns a copy of from, in the memory of to where that is large enough.
func refilled[T any](to, from []T) []T {
	if from == nil {
		return nil
	}
	return append(to[:0], from...)
}

// newQuickLoop returns the loop for moves under d's priority and fusion, with every op on
// device 0; nil where there is none.
func newQuickLoop(t *tables, d plan.Decision) quickLoop {
	if d.Fusion != nil {
		if k := newKernelStepper(t, d.Priority); k != nil {
			return k
		}
		return nil
	}
	if s := newStepper(t, d.Priority); s != nil {
		return s
	}
	return nil
}

// Move is as plan.Moves says.
func (x *Incremental) Move(ops []graph.OpID, device uint8) {
	for _, i := range ops {
		x.move(int32(i), device)
	}
}

func (x *Incremental) move(i int32, device uint8) {
	if x.given.Device[i] = device; x.step != nil {
		x.step.move(i, device)
	}
}

// Score is as plan.Moves says.
func (x *Incremental) Score(limit float64) (score plan.Score, ok bool) {
	if x.rest > 0 {
		x.rest--
		return x.whole(), true
	}
	if x.step != nil {
		makespan, ok := x.step.run(limit)
		if !ok {
			x.unfit = 0
			return plan.Score{}, false
		}
		if !x.t.cfg.Memory || x.step.fits() {
			x.unfit = 0
			return plan.Score{Value: makespan}, true
		}
		if x.unfit++; x.unfit == unfitRuns {
			x.unfit, x.rest = 0, restScores
		}
	}
	return x.whole(), true
}
