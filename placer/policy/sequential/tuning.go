package sequential

import (
	"context"
	"fmt"
	"math"
	"slices"

	"placer/graph/unit"
	"placer/plan"
)

// tuning is a Place of a Tuner under way.
type tuning struct {
	Tuner
	learner  learner
	features *Features
	problem  *plan.Problem // features', of placement alone: under what is held beside it
	pace     pace
	workers  []*tuneWorker
	cells    *unit.Partition
	state    *TuneState
	elite    []*elite
	logits   *logits  // of the last step; nil before the first
	first    Sample   // the best zero-shot one
	zeroShot []Sample // those whose placements are of cells
	begun    int      // evaluations before the first step
	note     string   // what the zero-shot samples took beside their evaluations
	tried    []level  // of the first step
}

// begin makes the zero-shot samples, or takes up a state.
func (t Tuner) begin(ctx context.Context, f *Features, l learner) (*tuning, error) {
	p, c := f.problem, t.Config.settings()
	r := &tuning{Tuner: t, learner: l, features: f, problem: f.problem, cells: p.Units.Levels[unit.Cell]}
	for k := range t.Config.Workers {
		w := &tuneWorker{evaluator: p.Evaluator, device: make([]uint8, p.Graph.NumOps()), prior: c.prior}
		if k > 0 {
			w.evaluator = p.Evaluator.Clone()
		}
		r.workers = append(r.workers, w)
	}
	r.pace = pace{clock: p.Clock, budget: p.Budget, rounds: c.rounds(p.Graph.NumOps(), r.cells.NumUnits(), p.Machine.NumDevices())}
	if p.Clock != nil {
		r.pace.begin = p.Clock()
	}
	if err := r.sampleZeroShot(ctx); err != nil {
		return nil, err
	}
	r.begun, r.first = len(r.zeroShot), Best(r.zeroShot)
	r.toCells(ctx)
	if p.Decides(plan.Schedule) || p.Decides(plan.Fuse) {
		r.hold(ctx)
	}
	for l := range level(len(f.at)) {
		if l != atTimeSteps || slices.ContainsFunc(r.zeroShot, func(x Sample) bool { return x.level == l }) {
			r.tried = append(r.tried, l)
		}
	}
	key, err := t.key(p)
	if err != nil {
		return nil, err
	}
	if t.From == nil {
		r.state = &TuneState{tuneState{Key: key, Start: atChains, Evaluations: r.begun, Best: r.placed(Best(r.zeroShot))}}
	} else if err := r.restore(ctx, key); err != nil {
		return nil, err
	}
	r.pace.from, r.pace.spent = r.state.Evaluations, r.state.Seconds
	return r, nil
}

// sampleZeroShot makes the samples to begin with; those are missing that there was no time for
// before the budget was spent or ctx ended.
func (r *tuning) sampleZeroShot(ctx context.Context) error {
	f, b := r.features, r.features.problem.Budget
	for _, c := range r.Tuner.zeroShots() {
		n := DefaultSamples
		if b.Evaluations > 0 {
			n = min(n, b.Evaluations-len(r.zeroShot))
		}
		if n < 1 || len(r.zeroShot) > 0 && r.pace.over() {
			break
		}
		until := untilSpent{ctx, &r.pace}
		samples, err := r.Policy.zeroShot(until, f, n, c)
		switch {
		case err == nil:
		case until.Err() != nil && len(r.zeroShot) > 0:
			return nil
		case ctx.Err() == nil && r.pace.over():
			return fmt.Errorf("the budget of %g s was over before the first zero-shot sample", b.Seconds)
		default:
			return err
		}
		r.zeroShot = append(r.zeroShot, samples...)
		if note := f.Note(); note != "" {
			r.note = note
		}
	}
	return nil
}

// advance takes a step of k evaluations: it samples, improves some of the best samples, and
// learns from all. When ctx ends in it, what it has found counts, and there is nothing to go
// on with.
func (r *tuning) advance(ctx context.Context, k int) (TuneStep, error) {
	at := r.state.Step
	if at == 0 && k >= r.pace.fewest*len(r.tried) {
		return r.tryLevels(ctx, k)
	}
	if l := r.pace.level(at, r.state.Start); r.logits == nil || r.logits.level != l {
		if err := r.startLevel(ctx, l); err != nil {
			return TuneStep{}, err
		}
	}
	step := TuneStep{Step: at, Level: r.logits.s.name, Best: math.Inf(1)}
	moves := 0 // evaluations of each placement that is improved
	if !r.pace.isEarly(at) {
		moves = r.improvement.moves(k)
	}
	samples := k - r.improvement.Placements*moves
	sampled, entropy, err := r.sample(ctx, samples)
	if err != nil {
		return step, err
	}
	step.Entropy = entropy
	r.record(&step, sampled)
	r.state.Evaluations += samples
	improved, err := r.improve(ctx, sampled, moves)
	for _, x := range improved {
		r.keep(&step, x)
	}
	if err != nil {
		return step, err
	}
	return step, r.learn(ctx, append(improved, sampled...), sampled)
}

// learn selects the elite of a step from all and learns from it, and from what was sampled
// at its level, which ends the step.
func (r *tuning) learn(ctx context.Context, all, sampled []*elite) error {
	r.selectElite(slices.Clone(all), r.pace.learned(r.state.Step))
	r.state.Step++
	return r.learner.fit(ctx, r, sampled, r.pace.fits)
}

// startLevel goes to level at. What was learned at the one before arrives there as the
// placements that it was learned from, and so do those of the zero-shot samples
// made at this level.
func (r *tuning) startLevel(ctx context.Context, at level) error {
	r.use(ctx, newLogits(r.features.instance(at), at, r.cells))
	for _, x := range r.elite {
		x.of = nil
	}
	r.elite = append(r.elite, r.zeroShotElite(func(l level) bool { return l == at })...)
	return r.learner.fit(ctx, r, nil, r.pace.opening)
}

// use makes l what is learned.
func (r *tuning) use(ctx context.Context, l *logits) {
	r.logits = l
	for _, w := range r.workers {
		w.startLevel(ctx, r.Policy.net, l.s)
	}
}

// zeroShotElite returns the zero-shot samples of some levels as elite of this step.
func (r *tuning) zeroShotElite(of func(level) bool) (all []*elite) {
	for _, x := range r.zeroShot {
		if of(x.level) {
			all = append(all, &elite{kept: kept{r.placed(x), r.state.Step}})
		}
	}
	return all
}

// levelTrial is what the first step came to at one level.
type levelTrial struct {
	logits  *logits
	sampled []*elite
}

// tryLevels takes the first step, whose k samples are divided among the levels; among
// them is that of time steps if a zero-shot sample is by these. The run begins at the level
// that fits the best sample, with what was found there and at coarser ones.
func (r *tuning) tryLevels(ctx context.Context, k int) (TuneStep, error) {
	step := TuneStep{Step: r.state.Step, Level: "every level", Best: math.Inf(1)}
	trials := make([]levelTrial, len(r.features.at))
	for _, l := range r.tried {
		r.elite = nil
		if err := r.startLevel(ctx, l); err != nil {
			return step, err
		}
		sampled, entropy, err := r.sample(ctx, k/len(r.tried))
		if err != nil {
			r.elite, r.logits = nil, nil
			return step, err
		}
		r.record(&step, sampled)
		step.Entropy += entropy / float64(len(r.tried))
		trials[l] = levelTrial{r.logits, sampled}
	}
	r.state.Start = firstLevel(trials)
	r.state.Evaluations += step.Samples
	r.elite = nil
	r.use(ctx, trials[r.state.Start].logits)
	fits := func(l level) bool { return within(l, r.state.Start) }
	var pool []*elite
	for l, t := range trials {
		if fits(level(l)) {
			pool = append(pool, t.sampled...)
		}
	}
	pool = append(pool, r.zeroShotElite(fits)...)
	return step, r.learn(ctx, pool, trials[r.state.Start].sampled)
}

// firstLevel returns the level that a run begins with: that of the best sample, the last of
// equals. Where that is one of segments it is chains: what segments are better at in one
// round, chains find the way to in several.
func firstLevel(trials []levelTrial) level {
	best, least := atCells, plan.Score{Value: math.Inf(1)}
	for l, t := range trials {
		for _, x := range t.sampled {
			if !least.Better(x.score()) {
				best, least = level(l), x.score()
			}
		}
	}
	if best == atSegments {
		return atChains
	}
	return best
}

// record enters samples into what is told of a step, and the best of them into the
// state.
func (r *tuning) record(step *TuneStep, all []*elite) {
	for _, x := range all {
		step.Samples++
		step.Mean += (x.Seconds - step.Mean) / float64(step.Samples)
		r.keep(step, x)
	}
}

// keep enters a placement into the best of a step and of all.
func (r *tuning) keep(step *TuneStep, x *elite) {
	if x.score().Feasible() {
		step.Best = min(step.Best, x.Seconds)
	}
	if x.score().Better(r.state.score()) {
		r.state.Best = x.placement
	}
}

// placed describes a sample by cells.
func (r *tuning) placed(s Sample) placement {
	return placement{Cells: r.cellsOf(s.Device), Seconds: s.Score.Value, Overflow: s.Score.Overflow}
}

// cellsOf returns the devices of cells, [cells], in a placement, [N].
func (r *tuning) cellsOf(device []uint8) []uint8 {
	cells := make([]uint8, r.cells.NumUnits())
	for c, ops := range r.cells.Ops {
		cells[c] = device[ops[0]]
	}
	return cells
}

// toCells puts all ops of each cell on one device in the zero-shot samples that do not, as the
// expert's may not.
func (r *tuning) toCells(ctx context.Context) {
	r.judgeAgain(ctx, func(_ int, x *Sample) bool {
		device := make([]uint8, len(x.Device))
		r.expand(r.cellsOf(x.Device), device)
		same := slices.Equal(device, x.Device)
		x.Device = device
		return !same
	})
}

// judgeAgain judges those zero-shot samples again that change has changed. They are left out
// where the budget has no evaluation for that, or ctx has ended.
func (r *tuning) judgeAgain(ctx context.Context, change func(i int, x *Sample) bool) {
	p, kept := r.features.problem, r.zeroShot[:0]
	for i, x := range r.zeroShot {
		if change(i, &x) {
			if n := p.Budget.Evaluations; ctx.Err() != nil || n > 0 && r.begun >= n {
				continue
			}
			x.Score = p.Evaluator.Evaluate(x.Decision)
			r.begun++
		}
		kept = append(kept, x)
	}
	r.zeroShot = kept
}

// found returns the best decision so far and its score.
func (r *tuning) found() (plan.Decision, plan.Score) {
	asked := r.features.problem
	if r.first.Score.Better(r.state.score()) {
		return asked.Decided(r.first.Decision), r.first.Score
	}
	device := make([]uint8, len(r.cells.Of))
	r.expand(r.state.Best.Cells, device)
	return asked.Decided(r.problem.Complete(plan.Decision{Device: device})), r.state.score()
}

// expand writes the placement of cells into device, [N].
func (r *tuning) expand(cells, device []uint8) {
	for i, c := range r.cells.Of {
		device[i] = cells[c]
	}
}
