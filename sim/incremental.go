package sim

import (
	"slices"

	"placer/graph"
	"placer/plan"
)

// Incremental judges a placement that changes by some ops at a time; see plan.Moves. Its
// scores equal those of Simulator.Evaluate to the last bit.
//
// Where links serve one transfer at a time, under priorities and without fusion, it
// runs a loop that knows step times alone and stops as soon as the work that a device
// has left cannot be done within the limit (docs/adr/0032-evaluation-of-changes.md).
// Memory needs no counting if all that a device ever holds in the step fits at once;
// otherwise, and in every other case, the simulator runs the whole step.
type Incremental struct {
	s     *Simulator
	given plan.Decision // Device is what Move changes
	step  *stepper      // nil where the simulator has to do
}

var _ plan.Moves = (*Incremental)(nil)

// Moves returns an Incremental with the tables of s, for any goroutine.
func (s *Simulator) Moves() plan.Moves {
	return &Incremental{s: newSimulator(&s.tables), given: plan.Decision{Device: make([]uint8, s.n)}}
}

// Reset is as plan.Moves says.
func (x *Incremental) Reset(d plan.Decision) {
	if x.step == nil || !slices.Equal(x.step.rankOf, d.Priority) {
		x.step = nil
		if d.Fusion == nil {
			x.step = newStepper(&x.s.tables, d.Priority)
		}
		clear(x.given.Device)
	}
	x.given.Priority, x.given.Fusion = slices.Clone(d.Priority), slices.Clone(d.Fusion)
	if d.Fusion != nil {
		x.step = nil
	}
	for i, to := range d.Device {
		x.move(int32(i), to)
	}
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
	if x.step != nil {
		makespan, ok := x.step.run(limit)
		if !ok {
			return plan.Score{}, false
		}
		if !x.s.cfg.Memory || x.step.fits() {
			return plan.Score{Value: makespan}, true
		}
	}
	return x.s.Evaluate(x.given), true
}
