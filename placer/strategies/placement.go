package strategies

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"placer/baselines/budget"
	"placer/baselines/search/local"
	"placer/graph"
	"placer/graph/strategy"
	"placer/graph/unit"
	"placer/plan"
	"placer/sim"
)

// NamePlacement is the row of a placement of the micro-batched graph itself.
const NamePlacement = "placement"

// place searches placements of the units of the model, each unit on one device for all
// micro-batches. It begins with starts, rows that are placements themselves (isPlacement). 1F1B
// and interleaved pipelines among them have their stages cut anew within layers, and devices
// follow their order as far as what is ready allows (strategy.Free). Where no pipeline is among
// them, as a model of fewer layers than devices has none, 1F1B pipelines of stages cut within
// layers stand for them. From the better of these, ops change stages at the cuts, and units move
// (package local). It returns nothing worse than any of starts; one device is an answer too where
// moves from pipelines end behind it.
func (x *Comparison) place(ctx context.Context, starts []*Row, budget plan.Budget, seed uint64) (*Row, error) {
	begin := x.c.Clock()
	best := starts[0]
	for _, r := range starts {
		if r.Score().Better(best.Score()) {
			best = r
		}
	}
	row := *best
	row.Name, row.Tried, row.Stream = NamePlacement, 0, nil
	keep := func(s strategy.Strategy, r *Result, device []uint8) {
		if row.Tried++; r.Score().Better(row.Score()) {
			r.Step = nil
			row.Strategy, row.Result, row.Device = s, r, device
		}
	}
	from, err := x.looseAll(ctx, starts, keep)
	if err != nil {
		return nil, err
	}
	if from != nil {
		p, e := from.problem, from.judge
		p.Budget, p.Seed, p.Clock = budget, seed, x.c.Clock
		o, err := from.cuts.Place(ctx, p)
		if err != nil {
			return nil, err
		}
		row.Tried += o.Evaluations
		if o.Score.Better(row.Score()) {
			r, err := from.on.run(e.step, e.sim, e.expand(o.Device))
			if err != nil {
				return nil, err
			}
			keep(e.step.Strategy, r, o.Device)
		}
	}
	row.Took = x.c.Clock() - begin
	return &row, nil
}

// looseAll returns the best of the pipelines among starts cut within layers, nil where none can
// be cut so. Where there are no pipelines it is the best of those that there could be, or why
// there is none.
func (x *Comparison) looseAll(ctx context.Context, starts []*Row, keep func(strategy.Strategy, *Result, []uint8)) (from *loose, err error) {
	pipelines := false
	for _, r := range starts {
		s := r.Strategy
		pipelines = pipelines || s.Pipeline > 1
		if s.Pipeline == 1 || s.Schedule != strategy.OneFOneB && s.Schedule != strategy.Interleaved || ctx.Err() != nil {
			continue
		}
		on := x.clone()
		j, err := x.on(r.Result)
		if err != nil {
			return nil, err
		}
		on.judge = j.clone()
		l, err := on.loosen(ctx, s, keep)
		if err != nil { // its layers cannot be cut so; others may
			continue
		}
		if from == nil || l.score.Better(from.score) {
			from = l
		}
	}
	if pipelines {
		return from, nil
	}
	return x.looseAnew(ctx, keep)
}

// looseAnew returns the best 1F1B pipeline of stages cut within layers, with more micro-batches as
// long as that makes it better, or why there is none.
func (x *Comparison) looseAnew(ctx context.Context, keep func(strategy.Strategy, *Result, []uint8)) (from *loose, err error) {
	err = errNoPipeline
	pipe := strategy.Mesh{Data: 1, Pipeline: x.judge.Machine.NumDevices(), Tensor: 1}
	for _, s := range x.pure(pipe, strategy.Replicated, strategy.OneFOneB) {
		if !x.c.Room.left() || ctx.Err() != nil || x.models.opsOf(x.judge, s) > x.most {
			break
		}
		l, why := x.clone().loosen(ctx, s, keep)
		if why != nil {
			err = why
			continue
		}
		if from != nil && !l.score.Better(from.score) {
			break
		}
		from = l
	}
	if from != nil {
		return from, nil
	}
	return nil, err
}

// errNoPipeline says that a search has nothing to begin with.
var errNoPipeline = errors.New("no pipeline was simulated from which a placement could begin")

// isPlacement reports whether a step is the model's own ops, each on one device for all
// micro-batches: one device, or the stages of a pipeline. Replicas and split products are not.
func isPlacement(s strategy.Strategy) bool { return s.Data == 1 && s.Tensor == 1 }

// loose is a pipeline cut within layers whose order is a priority alone: where a search
// begins.
type loose struct {
	problem *plan.Problem
	judge   *expanded
	cuts    atCuts
	score   plan.Score
	on      *Judge
}

// loosen cuts the pipeline s within layers and then lets its devices follow its order
// where they can; keep is told of what the stricter of the two comes to.
func (x *Comparison) loosen(ctx context.Context, s strategy.Strategy, keep func(strategy.Strategy, *Result, []uint8)) (*loose, error) {
	micro, _, times, err := x.models.of(x.judge, x.models.variant(s))
	if err != nil {
		return nil, err
	}
	fine := strategy.NewFineBlocks(micro, times[0])
	tight, err := cut(x.judge.Machine, fine, times, s)
	if err != nil {
		return nil, err
	}
	loosest, err := cutByTime(fine, times, s)
	if err != nil {
		return nil, err
	}
	bounds, best := tight, plan.Score{}
	for k, at := range [][]int{tight, loosest} {
		if k == 1 && slices.Equal(at, tight) {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		strict, err := strategy.Derive(micro, fine, s, strategy.Options{Bounds: at})
		if err != nil {
			return nil, err
		}
		r, err := x.judge.Run(strict)
		if err != nil {
			return nil, err
		}
		if k == 0 || r.Score().Better(best) {
			bounds, best = at, r.Score()
		}
		keep(s, r, stagesOf(strict))
	}
	s.Schedule = strategy.Free
	p, e, err := x.problem(micro, fine, bounds, times, s)
	if err != nil {
		return nil, err
	}
	l := &loose{p, e, atCuts{fine, bounds, s.Pipeline}, plan.Score{}, x.judge}
	l.score = e.Evaluate(plan.Decision{Device: fine.Stages(bounds, s.Pipeline)})
	return l, nil
}

// stagesOf returns the stage of each op of the micro-batch's graph.
func stagesOf(x *strategy.Step) []uint8 {
	device := make([]uint8, len(x.Chunk))
	for i, c := range x.Chunk {
		device[i] = uint8(int(c) % x.Strategy.Pipeline)
	}
	return device
}

// problem returns the problem to place the units of a micro-batch's graph, judged by the
// step of s, whose stages are cut at bounds.
func (x *Comparison) problem(micro *strategy.Model, blocks *strategy.Blocks, bounds []int, times [][]float64, s strategy.Strategy) (*plan.Problem, *expanded, error) {
	step, err := strategy.Derive(micro, blocks, s, strategy.Options{Bounds: bounds})
	if err != nil {
		return nil, nil, err
	}
	simulator, d, err := x.judge.Simulator(step)
	if err != nil {
		return nil, nil, err
	}
	h, err := unit.Find(micro.Micro, times[0])
	if err != nil {
		return nil, nil, err
	}
	e := newExpanded(step, micro.Micro, simulator, times, d)
	return &plan.Problem{Graph: micro.Micro, Machine: x.judge.Machine, Units: h, Evaluator: e}, e, nil
}

// atCuts moves the cuts of a pipeline, one at a time, by a block or several, as long as
// that makes the step shorter; then local search moves units.
type atCuts struct {
	blocks *strategy.Blocks
	bounds []int // [P*V]
	stages int   // P
}

// Name implements plan.Placer.
func (atCuts) Name() string { return NamePlacement }

// Kind implements plan.Placer.
func (atCuts) Kind() plan.Kind { return plan.Search }

// Place implements plan.Placer.
func (a atCuts) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	track := budget.New(ctx, p, a.Name())
	bounds := slices.Clone(a.bounds)
	at := a.blocks.Stages(bounds, a.stages)
	best := track.Try(at)
	for stride := 4; stride > 0 && !track.Done(); {
		better := false
		for k := 1; k < len(bounds); k++ {
			for _, d := range []int{-stride, stride} {
				trial := slices.Clone(bounds)
				trial[k] += d
				end := a.blocks.Len()
				if k+1 < len(bounds) {
					end = bounds[k+1]
				}
				if trial[k] <= bounds[k-1] || trial[k] >= end || track.Done() {
					continue
				}
				device := a.blocks.Stages(trial, a.stages)
				if s := track.Try(device); s.Better(best) {
					bounds, best, at, better = trial, s, device, true
				}
			}
		}
		if !better {
			stride /= 2
		}
	}
	o, err := track.Outcome()
	if err != nil || track.Done() {
		return o, err
	}
	rest := *p
	if p.Budget.Evaluations > 0 {
		rest.Budget.Evaluations = p.Budget.Evaluations - o.Evaluations
	}
	if p.Budget.Seconds > 0 {
		rest.Budget.Seconds = p.Budget.Seconds * (1 - track.Spent())
	}
	moved, err := local.Placer{Start: at}.Place(ctx, &rest)
	if err != nil {
		return nil, err
	}
	moved.Evaluations += o.Evaluations
	return moved, nil
}

// expanded judges placements of a micro-batch's ops by the step that repeats them. It
// implements plan.Evaluator.
type expanded struct {
	step     *strategy.Step
	sim      *sim.Simulator
	seconds  [][]float64
	decision plan.Decision
	turns    [][]int32    // of each pass on each device, [P][2*M*V]
	last     int32        // 2*M*V
	pass     []int32      // [N'] index into turns, as Strategy.Turns has it; -1 before, last behind all
	order    []int32      // [N'] ops as the model has them
	on       []graph.OpID // [N'] op of the model whose device each op is on, None: as its strategy has it
	count    []int32      // [2*M*V+3] scratch
	rank     []int32      // [N'] scratch
}

func newExpanded(step *strategy.Step, micro *graph.Graph, s *sim.Simulator, seconds [][]float64, d plan.Decision) *expanded {
	n, chunks := step.Graph.NumOps(), int32(step.Strategy.Chunks)
	last := 2 * int32(step.Strategy.MicroBatches) * chunks
	e := &expanded{step: step, sim: s, seconds: seconds, decision: d, turns: step.Strategy.Turns(), last: last, pass: make([]int32, n), order: make([]int32, n), count: make([]int32, last+3), rank: make([]int32, n)}
	e.on = colocated(step, micro)
	for i := range e.pass {
		o, of := step.Graph.Op(graph.OpID(i)), int32(0) // chunk of its stage
		if from := step.From[i]; from != graph.None {
			of = step.Chunk[from] / int32(step.Strategy.Pipeline)
		}
		switch k := step.Micro[i]; {
		case k >= 0 && o.Phase == graph.Backward:
			e.pass[i] = (2*k+1)*chunks + of
		case k >= 0:
			e.pass[i] = 2*k*chunks + of
		case o.Phase == graph.Update:
			e.pass[i] = last
		default:
			e.pass[i] = -1
		}
		e.order[i] = int32(i)
	}
	model := func(i int32) graph.OpID { // updates keep the order that they have
		if e.pass[i] == last {
			return graph.OpID(n)
		}
		return step.From[i]
	}
	slices.SortStableFunc(e.order, func(a, b int32) int { return cmp.Compare(model(a), model(b)) })
	return e
}

// colocated returns, for each op of a step of one replica, the op of the model whose device it is
// on: the one that it is made from, or for what shares a device with a variable, as the sum of
// its gradients, an op of the variable's group.
func colocated(step *strategy.Step, micro *graph.Graph) []graph.OpID {
	member := map[int32]graph.OpID{}
	for i := range graph.OpID(micro.NumOps()) {
		if k := micro.Op(i).Group; k > 0 {
			if _, ok := member[k]; !ok {
				member[k] = i
			}
		}
	}
	on := slices.Clone(step.From)
	for i, from := range on {
		k := step.Graph.Op(graph.OpID(i)).Group
		if of, ok := member[k]; from != graph.None && ok && micro.Op(from).Group != k {
			on[i] = of
		}
	}
	return on
}

// expand places every op of the step as the op that it is made from. Each device has the
// passes in the order of its stage, and in a pass the ops in the model's order.
func (e *expanded) expand(device []uint8) plan.Decision {
	for i, of := range e.on {
		if of != graph.None {
			e.decision.Device[i] = device[of]
		}
	}
	clear(e.count)
	for i, p := range e.pass {
		switch {
		case p < 0:
			e.rank[i] = 0
		case p == e.last:
			e.rank[i] = p + 1
		default:
			e.rank[i] = 1 + e.turns[int(e.decision.Device[i])%len(e.turns)][p]
		}
		e.count[e.rank[i]+1]++
	}
	for k := 1; k < len(e.count); k++ {
		e.count[k] += e.count[k-1]
	}
	for _, i := range e.order {
		r := e.rank[i]
		e.decision.Priority[i] = e.count[r]
		e.count[r]++
	}
	return e.decision
}

// Evaluate implements plan.Evaluator; priorities are the strategy's.
func (e *expanded) Evaluate(d plan.Decision) plan.Score { return e.sim.Evaluate(e.expand(d.Device)) }

// Clone implements plan.Evaluator.
func (e *expanded) Clone() plan.Evaluator {
	c := *e
	c.sim, c.decision = e.sim.Clone().(*sim.Simulator), e.decision.Clone()
	c.count, c.rank = slices.Clone(e.count), slices.Clone(e.rank)
	return &c
}

// OpSeconds implements plan.Evaluator.
func (e *expanded) OpSeconds(d int) []float64 { return e.seconds[d] }
