package placer

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"placer/graph"
	"placer/graph/unit"
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
	// near, if not nil, has evaluate fill in local: for each of its decisions and
	// each class of ops the seconds that go by near them.
	near   [][]int32   // [C] ops
	shares bool        // there is to be near
	local  [][]float64 // [K][C]
	// exact says which scores of the last round are final; nil: all. The others are
	// estimates.
	exact []bool
}

// worker owns what one goroutine needs to evaluate.
type worker struct {
	evaluator plan.Evaluator
	*draft
	share []float64 // [N] scratch
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
	e.shares = e.shares && c.Classes.LocalCredit > 0 && !c.fusesByImitation(e.tasks)
	for i := range p.Graph.NumOps() { // the serial sum on the first device
		e.baseline += p.Evaluator.OpSeconds(0)[i]
	}
	return e
}

// decideOn makes the units of part the decisions; with oneFusion the choices of
// fusion of the first hold for all. It reports a unit that fits no device.
func (e *environment) decideOn(p *plan.Problem, part *unit.Partition, oneFusion bool) error {
	e.part, e.lead = part, nil
	if oneFusion && e.class == nil {
		e.lead = make([]int32, part.NumUnits())
	}
	if e.class != nil {
		e.class = e.classesOf(stage{oneFusion: oneFusion})
		e.slot = e.class.slots(part, e.kinds)
		if e.shares {
			e.near, e.local = e.class.near(), nil
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
	for e.near != nil && len(e.local) < len(actions) {
		e.local = append(e.local, make([]float64, len(e.near)))
	}
	var wait sync.WaitGroup
	for k, w := range e.workers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for j := k; j < len(actions); j += len(e.workers) {
				e.decode(actions[j], w.draft)
				scores[j] = w.evaluator.EvaluateFused(w.device, w.priority, w.fusion)
				if e.near != nil {
					e.locate(w, e.local[j])
				}
			}
		}()
	}
	wait.Wait()
	if r, ok := e.workers[0].evaluator.(refining); ok {
		w := e.workers[0]
		e.exact = r.Refine(scores, func(k int) plan.Decision {
			e.decode(actions[k], w.draft)
			return plan.Decision{Device: slices.Clone(w.device), Priority: slices.Clone(w.priority), Fusion: slices.Clone(w.fusion)}
		})
	}
	e.spent += len(actions)
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
