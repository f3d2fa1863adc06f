package transfer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"placer/graph/unit"
	"placer/plan"
)

// Placer places with a pretrained policy as it is: forward passes, and an
// evaluation of each sample to choose among them.
type Placer struct {
	Policy *Policy
	// Samples is the number of placements, the greedy one among them; 0 means
	// DefaultSamples.
	Samples int
}

// DefaultSamples is the number of samples of a zero-shot placement.
const DefaultSamples = 16

var _ plan.Placer = Placer{}

// Name returns "zero-shot".
func (Placer) Name() string { return "zero-shot" }

// Kind returns plan.Policy.
func (Placer) Kind() plan.Kind { return plan.Policy }

// Place samples and returns the best.
func (z Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	w, err := NewView(p)
	if err != nil {
		return nil, err
	}
	samples, err := z.Policy.ZeroShot(ctx, w, z.within(p.Budget))
	if err != nil {
		return nil, err
	}
	best := Best(samples)
	o := &plan.Outcome{Device: best.Device, Score: best.Score, Evaluations: len(samples)}
	if p.Report != nil {
		p.Report(plan.Progress{Method: z.Name(), Evaluations: o.Evaluations, Best: o.Score, Device: o.Device})
	}
	if d := z.Policy.Reach.Distance(w); d > z.Policy.Reach.Limit {
		o.Notes = append(o.Notes, fmt.Sprintf("the pretrained policy is out of its depth: distance %.2f from the nearest training graph, measured up to %.2f", d, z.Policy.Reach.Limit))
	}
	return o, nil
}

// within returns the number of samples within b.
func (z Placer) within(b plan.Budget) int {
	k := z.Samples
	if k <= 0 {
		k = DefaultSamples
	}
	if b.Evaluations > 0 {
		k = min(k, b.Evaluations)
	}
	return k
}

// View is a problem as the policy reads it at every level.
type View struct {
	problem *plan.Problem
	scenes  []*Scene  // [levels], and that by time steps where there are such
	summary []float32 // of the cells that training knows, without partial gradients
}

// NewView returns p's, with partial gradients apart, and by time steps, too.
func NewView(p *plan.Problem) (*View, error) {
	q := *p
	q.Units = p.Units.WithPartialGradients(p.Graph, p.Evaluator.OpSeconds(0))
	w, err := newView(&q)
	if err != nil {
		return nil, err
	}
	known := w
	if plain := q.Units.WithoutPartialGradients(); plain != q.Units {
		asLearned := *p
		asLearned.Units = plain
		if known, err = newView(&asLearned); err != nil {
			return nil, err
		}
	}
	w.summary = known.scenes[0].summary()
	if err := w.addTimeSteps(); err != nil {
		return nil, err
	}
	return w, nil
}

// addTimeSteps adds the scene whose units are runs of a time step.
func (w *View) addTimeSteps() error {
	p := *w.problem
	if p.Units = p.Units.ByTimeStep(p.Graph); p.Units == nil {
		return nil
	}
	s, err := newScene(&p, w.scenes[0].nodes, unit.Segment)
	if err != nil {
		return err
	}
	s.name = "time step"
	w.scenes = append(w.scenes, s)
	return nil
}

// newView returns p's with its units as they are.
func newView(p *plan.Problem) (*View, error) {
	w := &View{problem: p}
	nodes, err := contract(p)
	if err != nil {
		return nil, err
	}
	for _, l := range levels {
		s, err := newScene(p, nodes, l)
		if err != nil {
			return nil, err
		}
		w.scenes = append(w.scenes, s)
	}
	return w, nil
}

// A policy that places as it is makes many drafts by forward passes and has those
// judged that end soonest by its own schedule, which costs a hundredth of a
// simulation and knows nothing of it.
const (
	// revisions of a draft, each made in knowledge of the one before (GO's
	// iterations), its first version among them; the soonest counts.
	revisions = 4
	// mostRounds bounds how often each guide is followed at each level and weight of
	// what was learned: first greedily, then at temperatures of up to hottest.
	mostRounds = 3
	hottest    = 0.7
	// effort bounds the work of all drafts of large graphs, in steps of schedules: half a
	// minute of one core.
	effort = 400_000_000
	// scoring is the work of scoring one device.
	scoring = 4
	// alike is the relative difference of two schedules' ends below which one is not
	// worth judging beside the other: drafts of like guides end in nearly the same plan.
	alike = 0.002
	// abreast is the number of drafts that are made side by side.
	abreast = 14
)

// weights of what was learned (Guide.Own): advice alone carries over to any graph,
// what was learned goes further on most.
var weights = []float32{0, 1}

// work returns the work of following every guide once, in steps of schedules.
func (w *View) work() (sum int) {
	for _, s := range w.scenes {
		sum += len(weights) * revisions * len(Guides()) * (len(s.steps) + scoring*s.turns*s.d)
	}
	return sum
}

// rounds returns how often every guide is followed: less often for large graphs.
func (w *View) rounds() int { return max(1, min(mostRounds, effort/max(1, w.work()))) }

// draftsPace is the work of drafts in a second of one core, about.
const draftsPace = 10_000_000

// takes returns about how many seconds the drafts of ZeroShot take.
func (w *View) takes() float64 { return float64(w.rounds()*w.work()) / draftsPace }

// ZeroShot returns k samples of w, each judged once by the simulator: first the
// greedy draft whose own schedule ends soonest, then those that end soonest of each
// level and each weight of what was learned; runs of time steps count as segments,
// of which one or the other suits. There are fewer when ctx ends.
func (p *Policy) ZeroShot(ctx context.Context, w *View, k int) ([]Sample, error) {
	random := rand.New(rand.NewPCG(w.problem.Seed, 0x7a))
	greedy := &shortlist{most: 1}
	lists := make([]*shortlist, len(levels)*len(weights))
	for i := range lists {
		lists[i] = &shortlist{most: 8 * k}
	}
	for l, s := range w.scenes {
		kind := l
		if l == timeStep {
			kind = slices.Index(levels, unit.Segment)
		}
		f, e := &pass{n: p.net}, &episodes{}
		f.units(s.static)
		for i, own := range weights {
			list := lists[kind*len(weights)+i]
			for round := range w.rounds() {
				p.drafts(ctx, f, e, s, own, float32(min(1, round))*hottest, random, func(x *state) {
					if round == 0 {
						greedy.offer(l, x)
					}
					list.offer(l, x)
				})
			}
		}
	}
	if len(greedy.of) == 0 {
		return nil, ctx.Err()
	}
	greedy.of[0].Greedy = true
	out := merge(greedy.of, lists, k)
	for i := range out {
		if i > 0 && ctx.Err() != nil {
			return out[:i], nil
		}
		out[i].Score = w.problem.Evaluator.Evaluate(out[i].Device, w.problem.Priority)
	}
	return out, nil
}

// drafts follows every guide once, at temperatures from 0 to hot, and offers what
// comes of it. It ends early when ctx does.
func (p *Policy) drafts(ctx context.Context, f *pass, e *episodes, s *Scene, own, hot float32, random *rand.Rand, offer func(*state)) {
	var temperature [abreast]float32
	for guides := range slices.Chunk(Guides(), abreast) {
		if ctx.Err() != nil {
			return
		}
		for i := range guides {
			guides[i].Own = own
			temperature[i] = hot * random.Float32()
		}
		e.roll(s, f, guides, revisions-1, false, sampler(temperature[:], random, s.d))
		for _, x := range e.states[:len(guides)] {
			offer(x)
		}
	}
}

// shortlist holds the drafts whose schedules end soonest, each schedule once.
type shortlist struct {
	most int
	of   []Sample // by clock
}

// offer takes in the best of x's drafts at a level, if it is one of them.
func (l *shortlist) offer(level int, x *state) {
	at, same := slices.BinarySearchFunc(l.of, x.soonest, func(y Sample, clock float64) int { return cmp.Compare(y.clock, clock) })
	if same || at == l.most {
		return
	}
	y := Sample{Device: make([]uint8, len(x.s.part.Of)), level: level, clock: x.soonest}
	for i, u := range x.s.part.Of {
		y.Device[i] = uint8(x.best[u])
	}
	l.of = slices.Insert(l.of, at, y)
	l.of = l.of[:min(len(l.of), l.most)]
}

// merge returns first and the first of each list, then the second of each, and so
// on, by clock within a rank, until there are k; of schedules that end alike, one.
func merge(first []Sample, lists []*shortlist, k int) []Sample {
	out := slices.Clone(first)
	for _, apart := range []float64{alike, 0} { // those alike only where others do not suffice
		for rank := range 8 * k {
			var row []Sample
			for _, l := range lists {
				if rank < len(l.of) {
					row = append(row, l.of[rank])
				}
			}
			slices.SortStableFunc(row, func(a, b Sample) int { return cmp.Compare(a.clock, b.clock) })
			for _, x := range row {
				if len(out) < k && !slices.ContainsFunc(out, func(y Sample) bool { return math.Abs(y.clock-x.clock) <= apart*x.clock }) {
					out = append(out, x)
				}
			}
		}
	}
	return out
}

// Best returns the best of samples, the first of equals.
func Best(samples []Sample) Sample {
	best := samples[0]
	for _, x := range samples[1:] {
		if x.Score.Better(best.Score) {
			best = x
		}
	}
	return best
}
