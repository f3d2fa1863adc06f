package anneal

import (
	"context"
	"math"
	"math/rand/v2"

	"placer/baselines/budget"
	"placer/graph/fuse"
	"placer/plan"
	"placer/sim"
)

// joint anneals decisions on several tasks of one problem.
type joint struct {
	ctx     context.Context
	name    string // of the method
	p       *plan.Problem
	rng     *rand.Rand
	ahead   *lookahead // of rng's source
	rules   *fuse.Rules
	started float64
	spent   int
	guide   Guide // of moves of all tasks, or nil
	learn   func(Judged)
	beside  int // evaluations' worth of the budget spent on other things

	penalty
	any       bool
	best      plan.Decision
	bestScore plan.Score

	// Where the walk is.
	device []uint8
	keys   *keys // nil unless Schedule is decided on
	fusion []uint8
	cost   float64

	changes  plan.Moves // scores where the walk is; nil: the evaluator does
	moves    []*move
	devices  []byteChange // of the move under way
	fusings  []byteChange
	patterns *patterns // of fusible ops

	adviser *jointAdviser // chooses moves; nil: chance alone does
}

// byteChange is a change of a device or of a fusion priority.
type byteChange struct {
	op  int32
	old uint8
}

func newJoint(ctx context.Context, name string, p *plan.Problem) *joint {
	source := rand.NewPCG(p.Seed, 1<<40)
	j := &joint{
		ctx: ctx, name: name, p: p, rng: rand.New(source), ahead: newLookahead(source), rules: fuse.NewRules(p.Graph),
		started: budget.Now(p), penalty: newPenalty(p.Machine, p.Evaluator),
	}
	return j
}

// progress returns the fraction of the budget that is spent.
func (j *joint) progress() float64 { return budget.Spent(j.p, j.started, float64(j.spent+j.beside)) }

func (j *joint) done() bool { return j.ctx.Err() != nil || j.progress() >= 1 }

// left returns a share of what is left of the budget.
func (j *joint) left(share float64) (b plan.Budget) {
	if n := j.p.Budget.Evaluations; n > 0 {
		b.Evaluations = max(1, int(float64(n-j.spent)*share))
	}
	if s := j.p.Budget.Seconds; s > 0 && j.p.Clock != nil {
		b.Seconds = max(1e-9, (s-(j.p.Clock()-j.started))*share)
	}
	return b
}

// consider evaluates d and keeps it if it is the best so far.
func (j *joint) consider(d plan.Decision) {
	s := j.p.Evaluator.Evaluate(d)
	j.spent++
	j.offer(d, s)
}

func (j *joint) offer(d plan.Decision, s plan.Score) {
	if j.any && !s.Better(j.bestScore) {
		return
	}
	j.any, j.bestScore = true, s
	j.best = d.Clone()
	j.report(true)
}

func (j *joint) report(better bool) {
	if j.p.Report == nil {
		return
	}
	x := plan.Progress{Method: j.name, Evaluations: j.spent, Best: j.bestScore}
	if better {
		x.Device, x.Priority, x.Fusion = j.best.Device, j.best.Priority, j.best.Fusion
	}
	j.p.Report(x)
}

// outcome returns the best decision; tasks that were not asked for are left to
// the problem.
func (j *joint) outcome() *plan.Outcome {
	return &plan.Outcome{Decision: j.best, Score: j.bestScore, Evaluations: j.spent}
}

// Temperatures of the walk, as fractions of the present cost, and how many
// evaluations pass without a new best before it goes back there.
const (
	jointHot     = 0.001
	jointEnd     = 0.00002
	jointPatient = 400
)

// prepare puts the walk at the best decision. It reports whether anything can be decided.
func (j *joint) prepare() bool {
	n := j.p.Graph.NumOps()
	j.device = make([]uint8, n)
	if j.p.Decides(plan.Fuse) {
		j.fusion = make([]uint8, n)
		j.patterns = newPatterns(j.rules)
	} else {
		j.fusion = j.p.Fusion
	}
	if j.p.Decides(plan.Schedule) {
		j.keys = newKeys(n)
	}
	if j.moves = j.kinds(); len(j.moves) == 0 {
		return false
	}
	if j.p.Moves != nil && j.fusion != nil {
		j.changes = j.p.Moves()
	}
	if (j.guide != nil || j.learn != nil) && j.p.Kernels != nil {
		j.adviser = newJointAdviser(j, j.guide, j.learn)
	}
	j.visitBest()
	return true
}

// walk anneals from the best decision until the budget is spent.
func (j *joint) walk() {
	if !j.prepare() {
		return
	}
	begin, stale := j.progress(), 0
	for idle := 0; idle < idleMoves && !j.done(); {
		x := (j.progress() - begin) / max(1e-9, 1-begin)
		temperature := jointHot * math.Pow(jointEnd/jointHot, min(1, x))
		m := j.next(temperature)
		if len(j.devices) == 0 && len(j.fusings) == 0 && (j.keys == nil || !j.keys.changed()) {
			m.tell(0)
			idle++
			continue
		}
		idle = 0
		s, cost := j.judge(temperature)
		if cost > j.cost && j.rng.Float64() >= math.Exp((j.cost-cost)/(temperature*j.cost)) {
			j.tellAdviser(false, cost)
			j.undo()
			m.tell(0)
		} else {
			j.tellAdviser(true, cost)
			won := 0.0
			if cost < j.cost {
				won = 1
			}
			m.tell(won)
			j.keep()
			j.cost = cost
		}
		stale++
		if j.spent%64 == 0 {
			j.report(false)
		}
		if s.Better(j.bestScore) {
			j.offer(j.decision(), s)
			stale = 0
		} else if stale >= jointPatient {
			j.visitBest()
			stale = 0
		}
	}
}

// next makes a move and returns its kind, the first one's where it is several together.
func (j *joint) next(temperature float64) *move {
	if j.adviser != nil {
		return j.adviser.choose(temperature)
	}
	return j.draw()
}

// draw makes a random move, and returns its kind as next does.
func (j *joint) draw() *move {
	m := j.pick()
	m.do(j)
	for j.rng.IntN(6) == 0 { // sometimes only two moves together help
		j.pick().do(j)
	}
	return m
}

// tellAdviser tells the adviser what the move under way has come to.
func (j *joint) tellAdviser(taken bool, cost float64) {
	if j.adviser != nil {
		j.adviser.judged(taken, j.cost, cost)
	}
}

// judge evaluates where the walk is. The cost is infinite where the walk does not go there
// at temperature and it is no new best either.
func (j *joint) judge(temperature float64) (plan.Score, float64) {
	d := j.decision()
	j.spent++
	if j.changes == nil {
		s := j.p.Evaluator.Evaluate(d)
		return s, j.of(s)
	}
	limit := math.Inf(1)
	if j.bestScore.Feasible() {
		limit = max(j.bestScore.Value, j.ahead.accepted(j.cost, temperature))
	}
	j.changes.Reset(d)
	s, ok := j.changes.Score(limit)
	if !ok {
		return plan.Score{Value: math.Inf(1)}, math.Inf(1)
	}
	return s, j.of(s)
}

// decision returns where the walk is, in the walk's own slices.
func (j *joint) decision() plan.Decision {
	return plan.Decision{Device: j.device, Priority: j.rank(), Fusion: j.fusion}
}

func (j *joint) rank() []int32 {
	if j.keys == nil {
		return j.p.Priority
	}
	return j.keys.rank
}

// visitBest moves the walk to the best decision.
func (j *joint) visitBest() {
	copy(j.device, j.best.Device)
	if j.p.Decides(plan.Fuse) {
		clear(j.fusion)
		copy(j.fusion, j.best.Fusion)
	}
	if j.keys != nil {
		rank := j.best.Priority
		if rank == nil {
			rank = sim.CriticalPathPriority(j.p.Graph, j.p.Evaluator.OpSeconds(0))
		}
		j.keys.set(rank)
	}
	j.cost = j.of(j.bestScore)
	if j.keys != nil && j.best.Priority == nil { // no priorities are first in, first out
		j.cost = j.of(j.p.Evaluator.Evaluate(plan.Decision{Device: j.device, Priority: j.keys.rank, Fusion: j.fusion}))
		j.spent++
	}
	j.devices, j.fusings = j.devices[:0], j.fusings[:0]
	if j.adviser != nil {
		j.adviser.moved()
	}
}

func (j *joint) undo() {
	for k := len(j.devices) - 1; k >= 0; k-- {
		j.device[j.devices[k].op] = j.devices[k].old
	}
	for k := len(j.fusings) - 1; k >= 0; k-- {
		j.fusion[j.fusings[k].op] = j.fusings[k].old
	}
	j.devices, j.fusings = j.devices[:0], j.fusings[:0]
	if j.keys != nil {
		j.keys.undo()
	}
}

func (j *joint) keep() {
	j.devices, j.fusings = j.devices[:0], j.fusings[:0]
	if j.keys != nil {
		j.keys.keep()
	}
}
