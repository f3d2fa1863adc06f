package placer

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"placer/graph"
	"placer/plan"
	"placer/units"
)

// environment turns decisions per unit into placements and scores. It is the
// policy's only access to the problem.
type environment struct {
	*decoder
	devices int
	// allowed[u*devices+d] is false where unit u alone cannot fit device d.
	allowed []bool // [U,D]
	workers []*worker
	// baseline is the step time that rewards are relative to, in seconds.
	baseline float64
	spent    int // evaluations so far
	// local is what evaluate tells of each of its decisions and each class of ops:
	// with near, the seconds that go by near the class; with weight, the seconds that
	// the kernels of its ops cost more than these take alone, each device's by its
	// weight.
	local  [][]float64 // [K][C]
	near   [][]int32   // [C] ops, or nil
	shares bool        // there is to be near
	weight []float64   // [D], or nil
	// settles says that evaluate also tells, in differences, what sets decisions apart
	// from the reference, once there is one.
	settles     bool
	reference   *reference     // or nil
	differences [][]difference // [K]
	// exact says which scores of the last round are final; nil: all. The others are
	// estimates.
	exact []bool
}

// worker owns what one goroutine needs to evaluate.
type worker struct {
	evaluator plan.Evaluator
	*draft
	share []float64 // [N] scratch
	seen  []int32   // [N] scratch: the last class that counted a kernel, + 1
	on    []bool    // [N] scratch
	idle  []float64 // [N] scratch
	differ
}

// concurrent is an evaluator whose clones do better when several evaluate at
// once, because they do not do the work themselves.
type concurrent interface{ Parallel() int }

// refining is an evaluator of forecasts that looks closer at some samples of a
// round: it replaces their scores, corrects the others, and returns which are
// final.
type refining interface {
	Refine(scores []plan.Score, decision func(k int) plan.Decision) (final []bool)
}

// sharer is an evaluator that tells what each op contributed to the kernels of
// the last fused evaluation, in seconds.
type sharer interface{ OpShares(share []float64) }

// locator is an evaluator that tells where the time of a step goes: what kernels
// take and save in the last fused evaluation, and what part of a step the critical
// path computes on each device, and which ops.
type locator interface {
	Kernels() (kernel []int32, takes []float64)
	Savings() (kernel []int32, saved []float64)
	Fuse(device, fusion []uint8) (kernel []int32, takes []float64)
	Critical(p *plan.Plan, share []float64, on []bool, idle []float64)
}

// newEnvironment prepares p for c.Workers goroutines, or more where the
// evaluator asks for them.
func newEnvironment(p *plan.Problem, c PolicyConfig) *environment {
	e := &environment{decoder: newDecoder(p, c), devices: p.Machine.NumDevices()}
	n := c.Workers
	if many, ok := p.Evaluator.(concurrent); ok {
		n = max(n, many.Parallel())
	}
	for k := range n {
		w := &worker{evaluator: p.Evaluator, draft: e.newDraft(p.Graph.NumOps())}
		if k > 0 {
			w.evaluator = p.Evaluator.Clone()
		}
		e.workers = append(e.workers, w)
	}
	_, e.shares = p.Evaluator.(sharer)
	e.shares = e.shares && c.Classes.LocalCredit > 0 && !c.fusesAlone(e.tasks)
	if _, ok := p.Evaluator.(locator); ok && c.fusesAlone(e.tasks) && c.Fusion.Local > 0 {
		e.weight = slices.Repeat([]float64{1}, e.devices)
	}
	for i := range p.Graph.NumOps() { // the serial sum on the first device
		e.baseline += p.Evaluator.OpSeconds(0)[i]
	}
	return e
}

// decideOn makes the units of s the decisions, with its classes. It reports a unit
// that fits no device.
func (e *environment) decideOn(p *plan.Problem, s stage) error {
	e.part, e.lead = s.part, nil
	if s.oneFusion && e.class == nil {
		e.lead = make([]int32, s.part.NumUnits())
	}
	if e.class != nil {
		e.class = e.classesOf(s)
		e.slot = e.class.slots(s.part, e.kinds)
		e.local, e.reference = nil, nil
		e.settles = s.settles
		if e.shares {
			e.near = e.class.near()
		}
	}
	if !e.tasks.Has(plan.Place) {
		return nil
	}
	return e.mask(p)
}

// mask finds the devices that cannot hold a unit's resident bytes and one
// op's tensors.
func (e *environment) mask(p *plan.Problem) error {
	e.allowed = make([]bool, e.part.NumUnits()*e.devices)
	for u, ops := range e.part.Ops {
		var resident, largest units.Bytes
		for _, i := range ops {
			o := p.Graph.Op(i)
			resident += o.Resident
			largest = max(largest, o.Workspace+outputBytes(p.Graph, i))
		}
		fits := false
		for d := range e.devices {
			ok := resident+largest <= p.Machine.Devices[d].Memory
			e.allowed[u*e.devices+d] = ok
			fits = fits || ok
		}
		if !fits {
			return fmt.Errorf("unit of op %s needs %s, more than any device has", p.Graph.Op(ops[0]).Name, resident+largest)
		}
	}
	return nil
}

// outputBytes sums what the outputs of op i occupy.
func outputBytes(g *graph.Graph, i graph.OpID) (n units.Bytes) {
	first, end := g.Outputs(i)
	for t := first; t < end; t++ {
		if x := g.Tensor(t); !x.Resident {
			n += x.Bytes
		}
	}
	return n
}

// isExact reports whether score s of sample k is more than an estimate. That a
// sample does not fit is never one.
func (e *environment) isExact(k int, s plan.Score) bool {
	return e.exact == nil || e.exact[k] || !s.Feasible()
}

// evaluate scores the decisions actions[k] into scores[k]. The result
// does not depend on the number of workers.
func (e *environment) evaluate(actions [][]int32, scores []plan.Score) {
	if len(actions) != len(scores) {
		panic(fmt.Sprintf("placer: %d decisions, %d scores", len(actions), len(scores)))
	}
	tells := e.near != nil || e.weight != nil
	for tells && len(e.local) < len(actions) {
		e.local = append(e.local, make([]float64, len(e.class.ops)))
	}
	for e.settles && len(e.differences) < len(actions) {
		e.differences = append(e.differences, nil)
	}
	e.each(len(actions), func(w *worker, j int) {
		e.decode(actions[j], w.draft)
		scores[j] = w.evaluator.EvaluateFused(w.device, w.priority, w.fusion)
		switch {
		case e.near != nil:
			e.locate(w, e.local[j])
		case e.settles:
			e.differences[j] = e.differences[j][:0]
			if e.reference != nil {
				kernel, takes := w.evaluator.(locator).Kernels()
				e.differences[j] = w.differences(e.differences[j], e.class, e.reference, w.fusion, kernel, takes)
			}
		case e.weight != nil:
			e.attribute(w, e.local[j])
		}
	})
	if r, ok := e.workers[0].evaluator.(refining); ok {
		w := e.workers[0]
		e.exact = r.Refine(scores, func(k int) plan.Decision {
			e.decode(actions[k], w.draft)
			return plan.Decision{Device: slices.Clone(w.device), Priority: slices.Clone(w.priority), Fusion: slices.Clone(w.fusion)}
		})
	}
	e.spent += len(actions)
}

// each divides 0..n-1 among the workers.
func (e *environment) each(n int, do func(w *worker, j int)) {
	var wait sync.WaitGroup
	for k, w := range e.workers {
		wait.Go(func() {
			for j := k; j < n; j += len(e.workers) {
				do(w, j)
			}
		})
	}
	wait.Wait()
}

// locate writes the seconds near each class of what w has evaluated last.
func (e *environment) locate(w *worker, local []float64) {
	if w.share == nil {
		w.share = make([]float64, len(w.device))
	}
	w.evaluator.(sharer).OpShares(w.share)
	for c, ops := range e.near {
		sum := 0.0
		for _, i := range ops {
			sum += w.share[i]
		}
		local[c] = sum
	}
}

// attribute writes what the kernels that w has evaluated last cost each class.
func (e *environment) attribute(w *worker, local []float64) {
	kernel, saved := w.evaluator.(locator).Savings()
	if w.seen == nil {
		w.seen = make([]int32, len(w.device))
	}
	clear(w.seen)
	for c, ops := range e.class.ops {
		sum := 0.0
		for _, i := range ops {
			if k := kernel[i]; w.seen[k] != int32(c)+1 {
				w.seen[k] = int32(c) + 1
				sum -= saved[k] * e.weight[w.device[i]]
			}
		}
		local[c] = sum
	}
}

// cost returns what attribute has written for the last k decisions, [K][C], or nil.
func (e *environment) cost(k int) [][]float64 {
	if e.weight == nil || e.settles {
		return nil
	}
	return e.local[:k]
}

// weigh gives the devices the weights that they have in the step of best, the best
// plan so far, and makes it the reference where there is to be one.
func (e *environment) weigh(best *draft) {
	if e.weight == nil {
		return
	}
	w := e.workers[0]
	if w.on == nil {
		w.on, w.idle = make([]bool, len(best.device)), make([]float64, len(best.device))
	}
	w.evaluator.(locator).Critical(&plan.Plan{Device: best.device, Priority: best.priority, Fusion: best.fusion}, e.weight, w.on, w.idle)
	if e.settles {
		e.refer(best)
	}
}

// infeasibleReward is the reward of a placement that does not fit (GO, section
// 4.1).
const infeasibleReward = -10

// reward is -sqrt(time/baseline), or infeasibleReward (GO, section 4.1).
func (e *environment) reward(s plan.Score) float32 {
	if !s.Feasible() {
		return infeasibleReward
	}
	return -float32(math.Sqrt(s.Seconds / e.baseline))
}
