package anneal

import "placer/plan"

// bins are the parts into which a timeline divides a step.
const bins = 64

// timeline is when decisions run in a placement that was judged a while ago. Times are
// shares of the step. Letters: N ops, U decisions, D devices.
type timeline struct {
	costs plan.KernelCosts
	known bool

	on           []bool    // [N] as plan.KernelCosts says, and so the next two
	ready, start []float64 // [N] seconds

	critical   []float64 // [U] share of the decision's time on the critical path, of late
	waits      []float64 // [U] between inputs and start, the mean of its ops
	begin, end []float64 // [U]
	path       []float64 // [D] that the critical path computes there
	busy       []float64 // [D,bins] share of each part of the step
}

func newTimeline(costs plan.KernelCosts, decisions, devices int) timeline {
	ofDecisions := func() []float64 { return make([]float64, decisions) }
	return timeline{
		costs: costs, critical: ofDecisions(), waits: ofDecisions(), begin: ofDecisions(), end: ofDecisions(),
		path: make([]float64, devices), busy: make([]float64, devices*bins),
	}
}

// update makes the timeline of w's present decisions.
func (t *timeline) update(w *replica) {
	o := w.objective
	if t.on == nil {
		n := len(o.device)
		t.on, t.ready, t.start = make([]bool, n), make([]float64, n), make([]float64, n)
	}
	step := t.costs.Timeline(&plan.Plan{Decision: o.given.Or(plan.Decision{Device: o.device})}, t.on, t.ready, t.start)
	clear(t.busy)
	clear(t.path)
	for u, ops := range o.members {
		d := int(w.now[u])
		seconds := o.evaluator.OpSeconds(d)
		work, on, wait, first, last := 1e-15, 0.0, 0.0, step, 0.0
		for _, i := range ops {
			s := seconds[i]
			work += s
			wait += s * (t.start[i] - t.ready[i])
			first, last = min(first, t.start[i]), max(last, t.start[i]+s)
			if t.on[i] {
				on += s
			}
			occupy(t.busy[d*bins:(d+1)*bins], t.start[i]/step, s/step)
		}
		share := on / work
		if t.known {
			share = (share + t.critical[u]) / 2
		}
		wait /= work
		t.critical[u], t.waits[u] = share, wait/step
		t.begin[u], t.end[u] = first/step, last/step
		t.path[d] += on / step
	}
	t.known = true
}

// occupy adds an op to a device's busy time row, [bins].
func occupy(row []float64, start, length float64) {
	for at, end := start*bins, (start+length)*bins; at < end; {
		k := min(bins-1, int(at))
		until := end
		if k < bins-1 {
			until = min(end, float64(k+1))
		}
		row[k] += until - at
		at = until
	}
}

// busyIn returns the share of the time between two moments in which device d is busy.
func (t *timeline) busyIn(d uint8, from, to float64) float64 {
	return busyIn(t.busy[int(d)*bins:][:bins], from, to)
}

// busyIn returns the share of the time between two moments in which the device of row,
// [bins], is busy.
func busyIn(row []float64, from, to float64) float64 {
	lo, hi := min(bins-1, int(from*bins)), min(bins-1, int(to*bins))
	sum := 0.0
	for _, x := range row[lo : hi+1] {
		sum += x
	}
	return sum / float64(hi-lo+1)
}
