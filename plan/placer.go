package plan

import (
	"context"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/units"
)

// Kind sorts methods in reports.
type Kind string

// Kinds of methods.
const (
	Baseline Kind = "baseline" // decides without evaluating, or evaluates a handful of candidates
	Search   Kind = "search"   // spends its budget on evaluations
	Policy   Kind = "policy"   // a learned policy, with no search beside it
)

// Score is the judgement of a placement.
type Score struct {
	// Seconds is the step time, or the problem's objective if that is another: see
	// Objective.
	Seconds float64
	// Overflow sums, over devices, the peak bytes above the device's memory; a
	// placement is feasible when it is 0.
	Overflow units.Bytes
}

// Feasible reports whether the placement fits.
func (s Score) Feasible() bool { return s.Overflow == 0 }

// Better reports whether s is preferable to t: feasible before infeasible, then
// less overflow, then less time.
func (s Score) Better(t Score) bool {
	if s.Overflow != t.Overflow {
		return s.Overflow < t.Overflow
	}
	return s.Seconds < t.Seconds
}

// Evaluator judges placements of one graph on one machine. It serves one
// goroutine; Clone gives another one its own.
type Evaluator interface {
	// Evaluate runs the step with op i on device[i] under priority (nil: FIFO). It
	// keeps neither slice and allocates nothing. The placement must be valid as
	// Plan.Check says.
	Evaluate(device []uint8, priority []int32) Score
	// EvaluateFused is Evaluate with ops fused into kernels as Plan.Fusion says, [N];
	// nil fuses nothing. It allocates on its first call alone. An evaluator whose
	// objective knows no fusion ignores it.
	EvaluateFused(device []uint8, priority []int32, fusion []uint8) Score
	Clone() Evaluator
	// OpSeconds returns the time of every op on device d, [N], read-only.
	OpSeconds(d int) []float64
}

// Problem is what a method is asked to solve. Methods do not change it.
//
// Every method may decide on Place alone, whatever the tasks, as long as Place is
// among them; the outcome of one that decides more has Priority or Fusion too.
type Problem struct {
	Graph   *graph.Graph
	Machine *hw.Machine
	// Units are the nested units of decision, shared by all methods.
	Units *unit.Hierarchy
	// Evaluator is the method's own. It judges by Objective.
	Evaluator Evaluator
	Objective Objective
	// Tasks are the decisions asked for; none stands for Place (see Decides).
	Tasks Tasks
	// Device is the placement where Place is not among the tasks, [N]. Where it is,
	// Device may be nil, or is one that a policy may start from.
	Device []uint8
	// Priority is the scheduler that every method is judged under, [N]; nil is FIFO.
	// Where Schedule is among the tasks it is where to start from.
	Priority []int32
	// Fusion is the fusion that every method is judged under, [N]; nil is none.
	// Where Fuse is among the tasks it is where to start from.
	Fusion []uint8
	Budget Budget
	Seed   uint64
	// Clock returns seconds since some start; used for budgets in time only.
	Clock func() float64
	// Report, if not nil, is told of every improvement and now and then in
	// between.
	Report func(Progress)
}

// Decides reports whether t is among the tasks.
func (p *Problem) Decides(t Tasks) bool {
	if p.Tasks == 0 {
		return t == Place
	}
	return p.Tasks.Has(t)
}

// Evaluate scores a placement under the problem's scheduler and fusion.
func (p *Problem) Evaluate(device []uint8) Score {
	return p.Evaluator.EvaluateFused(device, p.Priority, p.Fusion)
}

// Budget bounds a method; zero fields do not bound. When Evaluations is set and
// Seconds is not, the outcome depends on the seed alone.
type Budget struct {
	Evaluations int
	Seconds     float64
}

// Progress is a state of a running method. Its slices are valid during the call
// only; Device is nil where there is no new best placement, Priority and Fusion
// where they are the problem's.
type Progress struct {
	Method      string
	Evaluations int
	Best        Score
	Device      []uint8
	Priority    []int32
	Fusion      []uint8
}

// Outcome is what a method found.
type Outcome struct {
	Device      []uint8 // [N]
	Priority    []int32 // [N]; nil: the problem's
	Fusion      []uint8 // [N]; nil: the problem's
	Score       Score
	Evaluations int
	// Notes are remarks for the reader of the result: what was not available, what
	// was done instead.
	Notes []string
}

// Placer is a method. Place stops soon after ctx ends and returns the best so
// far; it returns an error only when it has no placement at all.
type Placer interface {
	Name() string
	Kind() Kind
	Place(ctx context.Context, p *Problem) (*Outcome, error)
}
