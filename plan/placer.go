package plan

import (
	"context"
	"math"

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
	// Value is what the problem's Objective measures, in its unit: seconds of a step,
	// seconds a sample, bytes. Less is better.
	Value float64
	// Overflow sums, over devices, the peak bytes above the device's memory.
	Overflow units.Bytes
}

// Feasible reports whether the placement fits and runs: an op on a device where it cannot run
// takes the throughput objective's Value to infinity.
func (s Score) Feasible() bool { return s.Overflow == 0 && s.Runs() }

// Runs reports whether every op is on a device where it can run.
func (s Score) Runs() bool { return !math.IsInf(s.Value, 1) }

// Better reports whether s is preferable to t: feasible before infeasible, then
// less overflow, then less of the objective.
func (s Score) Better(t Score) bool {
	if s.Overflow != t.Overflow {
		return s.Overflow < t.Overflow
	}
	return s.Value < t.Value
}

// Compare orders scores, the better one first: -1 where s is better than t, 1 where t is,
// and 0 where neither is.
func (s Score) Compare(t Score) int {
	switch {
	case s.Better(t):
		return -1
	case t.Better(s):
		return 1
	}
	return 0
}

// Evaluator judges placements of one graph on one machine. It serves one
// goroutine; Clone gives another one its own.
type Evaluator interface {
	// Evaluate judges d, which must be valid as Plan.Check says; an evaluator whose
	// objective knows no fusion ignores that part. It keeps none of d's slices, and
	// allocates nothing but on its first call with a fusion.
	Evaluate(d Decision) Score
	Clone() Evaluator
	// OpSeconds returns the time of every op on device d, [N], read-only.
	OpSeconds(d int) []float64
}

// Rollouts evaluates what a policy samples where that is not the problem's own
// Evaluator: the same scores from other hosts, or measured ones. Its clones share
// what it works with, and several may evaluate at once.
type Rollouts interface {
	Evaluator
	// Parallel returns how many evaluations under way at once keep it busy, at least 1.
	Parallel() int
	// Refine looks closer at the scores of a round: it replaces some by better ones,
	// may correct the others, and returns which are final; nil: all are as they are.
	// decide returns the k-th sample, for Refine to keep. It is called between rounds,
	// from one goroutine.
	Refine(scores []Score, decide func(k int) Decision) (final []bool)
}

// KernelCosts tells what fused plans cost kernel by kernel, without running them. It
// serves one goroutine, and what it returns holds until the next call.
type KernelCosts interface {
	// Fuse returns the kernel of every op under a placement and a fusion, [N] each, and
	// the seconds that each kernel takes, [K].
	Fuse(device, fusion []uint8) (kernel []int32, takes []float64)
	// Critical writes into share, [D], the part of the step of p that its critical path
	// spends computing on each device, into on, [N], whether an op is on it, and into
	// idle, [N], how many seconds the device of an op is idle between when it alone,
	// with what is fused into it, could have started and when its kernel does.
	Critical(p *Plan, share []float64, on []bool, idle []float64)
	// Timeline writes into on, [N], whether an op of p is on its critical path, into
	// ready, [N], when the last input of each op's kernel is on its device, and into
	// start, [N], when that kernel starts, in seconds. It returns the length of the step.
	Timeline(p *Plan, on []bool, ready, start []float64) float64
}

// Moves judges one placement that changes by some ops at a time, for less than whole
// evaluations cost. It serves one goroutine.
type Moves interface {
	// Reset puts every op where d, which must be valid as Plan.Check says, has it, under
	// its priority and fusion. It keeps none of d's slices. Where d has a fusion, it costs
	// little if d is much like what was there.
	Reset(d Decision)
	// Move puts ops on device.
	Move(ops []graph.OpID, device uint8)
	// Score returns what the problem's Evaluator would. Where ok is false it has stopped
	// before the end, for the value is proven to be above limit, or, of a quantile over
	// machines, by all that is known above it.
	Score(limit float64) (s Score, ok bool)
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
	// Rollouts, if not nil, evaluates what policies sample, in place of Evaluator.
	Rollouts Rollouts
	// Kernels returns the kernel costs of the problem's simulator, for one goroutine
	// each. It is nil where the objective knows no fusion.
	Kernels func() KernelCosts
	// Moves returns an evaluator of changes that scores as Evaluator does, for one
	// goroutine each. It is nil where there is none.
	Moves     func() Moves
	Objective Objective
	// Tasks are the decisions asked for; none stands for Place (see Decides).
	Tasks Tasks
	// Decision is what is given: what every method is judged under where the part is
	// not among the tasks, and where it may start from where it is. Device may be nil
	// where Place is among the tasks; nil Priority is FIFO, nil Fusion none.
	Decision
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

// Complete returns d under the problem's priority and fusion where it has none of its own.
func (p *Problem) Complete(d Decision) Decision {
	return d.Or(Decision{Priority: p.Priority, Fusion: p.Fusion})
}

// Decided returns d without the priority and the fusion where the problem gives them.
func (p *Problem) Decided(d Decision) Decision {
	if !p.Decides(Schedule) {
		d.Priority = nil
	}
	if !p.Decides(Fuse) {
		d.Fusion = nil
	}
	return d
}

// DecidedBy reports whether d decides, for every op, all that the problem asks for.
func (p *Problem) DecidedBy(d Decision) bool {
	n := p.Graph.NumOps()
	return len(d.Device) == n && (!p.Decides(Schedule) || len(d.Priority) == n) && (!p.Decides(Fuse) || len(d.Fusion) == n)
}

// JudgeBy puts e in place of the evaluator. Moves go with the evaluator that they score
// like, so there are none then.
func (p *Problem) JudgeBy(e Evaluator) { p.Evaluator, p.Moves = e, nil }

// Evaluate scores a placement under the problem's scheduler and fusion.
func (p *Problem) Evaluate(device []uint8) Score {
	return p.Evaluator.Evaluate(Decision{Device: device, Priority: p.Priority, Fusion: p.Fusion})
}

// Budget bounds a method; zero fields do not bound. When Evaluations is set and
// Seconds is not, the outcome depends on the seed alone.
type Budget struct {
	Evaluations int
	Seconds     float64
}

// Progress is a state of a running method. The slices of its Decision are valid
// during the call only; Device is nil where there is no new best placement, Priority
// and Fusion where they are the problem's.
type Progress struct {
	Method      string
	Evaluations int
	Best        Score
	Decision
}

// Outcome is what a method found. Priority and Fusion are nil where they are the
// problem's.
type Outcome struct {
	Decision
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
