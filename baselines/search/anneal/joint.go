package anneal

import (
	"context"
	"errors"
	"slices"

	"placer/baselines/search/fusion"
	"placer/plan"
	"placer/schedule"
)

// placeShare is the share of a joint budget that goes to placement alone, under
// the better of the fixed fusions. Placement has the largest effects, and its own
// annealing, which moves whole stretches of the network, is better at it than
// small moves of all three tasks.
const placeShare = 0.5

// errNoDevice says that a problem gives no placement and asks for none.
var errNoDevice = errors.New("anneal: the tasks do not include place and no placement is given")

// placeJointly decides on the tasks of p: first on placement, if it is among them,
// then on all tasks together, from the best that is known.
func (a Placer) placeJointly(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if p.Tasks == 0 {
		q := *p
		q.Tasks = plan.Place
		p = &q
	}
	j := newJoint(ctx, a.Name(), p)
	j.guide, j.learn = a.JointGuide, a.JointLearn
	var notes []string
	for _, d := range a.decisions(p) {
		if j.any && j.done() {
			break
		}
		j.consider(d)
	}
	if p.Decides(plan.Place) && !j.done() && !(a.Together && j.any) {
		o, err := a.placeUnder(ctx, j)
		if err != nil {
			return nil, err
		}
		notes = o.Notes
	} else if !j.any {
		return nil, errNoDevice
	}
	if p.Tasks != plan.Place && !j.done() {
		j.open()
		j.walk()
	}
	o := j.outcome()
	o.Notes = notes
	return o, nil
}

// decisions returns what to start from, placements complete with the problem's
// priorities and fusion; none where a placement is neither given nor asked for.
func (a Placer) decisions(p *plan.Problem) (ds []plan.Decision) {
	if !p.Decides(plan.Place) && p.Device == nil {
		return nil
	}
	ds = slices.Clone(a.From)
	for _, s := range a.Starts {
		ds = append(ds, plan.Decision{Device: s})
	}
	if !p.Decides(plan.Place) {
		for k := range ds { // the placement is given
			ds[k].Device = p.Device
		}
		ds = append(ds, plan.Decision{Device: p.Device})
	}
	for k, d := range ds {
		ds[k] = p.Complete(d)
	}
	return ds
}

// placeUnder anneals placements under one priority and one fusion. If there is
// nothing to start from, the fusion is that of the rules which suits even blocks
// best.
func (a Placer) placeUnder(ctx context.Context, j *joint) (*plan.Outcome, error) {
	p := j.p
	under := plan.Decision{Priority: p.Priority, Fusion: p.Fusion}
	if !j.any {
		blocks := p.Units.Blocks(p.Evaluator.OpSeconds(0), p.Machine.NumDevices())
		for _, d := range j.fusions(plan.Decision{Device: blocks, Priority: p.Priority, Fusion: p.Fusion}) {
			if j.any && j.done() {
				break
			}
			j.consider(d)
		}
	}
	if p.Decides(plan.Fuse) {
		// Rules that look at the devices would have to be asked again for each
		// placement; to fuse what can be fused needs no asking.
		under.Fusion = j.best.Fusion
		if under.Fusion != nil && slices.Max(under.Fusion) > 0 && len(a.From) == 0 {
			under.Fusion = fusion.All(len(under.Fusion))
		}
	}
	if p.Decides(plan.Schedule) && len(a.From) > 0 {
		under.Priority = j.best.Priority
	}
	q := *p
	q.Tasks, q.Decision = plan.Place, under
	share := 1.0
	if p.Tasks != plan.Place {
		share = placeShare
	}
	q.Budget = j.left(share)
	q.Report = func(x plan.Progress) {
		if p.Report != nil && (!j.any || x.Best.Better(j.bestScore) || x.Device == nil) {
			x.Evaluations += j.spent
			x.Priority, x.Fusion = under.Priority, under.Fusion
			p.Report(x)
		}
	}
	inner := a
	inner.Starts, inner.From = nil, nil
	if under.Fusion != nil {
		inner.Guide = nil // it has learned from placements without fusion, and chance does better
	}
	if j.any {
		inner.Starts = [][]uint8{slices.Clone(j.best.Device)}
	}
	o, err := inner.placeAlone(ctx, &q)
	if err != nil {
		return nil, err
	}
	j.spent += o.Evaluations
	// What the coarsened graph cost counts against the budget alone.
	j.beside += max(0, q.Budget.Evaluations-o.Evaluations)
	j.offer(o.Decision.Or(under), o.Score)
	return o, nil
}

// fusions returns d under the fusions of the rules, the problem's own first.
func (j *joint) fusions(d plan.Decision) (ds []plan.Decision) {
	ds = append(ds, d)
	if j.p.Decides(plan.Fuse) {
		n := len(d.Device)
		for _, f := range [][]uint8{fusion.None(n), fusion.Default(j.rules, d.Device), fusion.All(n)} {
			e := d
			e.Fusion = f
			ds = append(ds, e)
		}
	}
	return ds
}

// open tries the rules of the tasks beside placement on the best placement.
func (j *joint) open() {
	for _, d := range j.fusions(j.best)[1:] {
		if j.done() {
			return
		}
		j.consider(d)
	}
	if j.p.Decides(plan.Schedule) && !j.done() {
		d := j.best
		d.Priority = schedule.PlacedCriticalPath(j.p, d.Device)
		j.consider(d)
	}
}
