package sequential

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
)

// Proposal is a rollout that is worth making on a graph never seen: the level at
// which it decides, the heuristic prior that it follows, and the weight of what was
// learned.
type Proposal struct {
	Level   string
	Prior   int     // number in heuristics
	Learned float32 // 0 or 1
}

// timeStepName is the level of an unrolled network's time steps; a graph without them
// has segments in their place.
const timeStepName = "time step"

// proposals returns all that there are, in a fixed order.
func proposals() (all []Proposal) {
	names := []string{timeStepName}
	for _, l := range levels {
		names = append(names, l.String())
	}
	for _, level := range names {
		for _, learned := range []float32{1, 0} {
			for prior := range heuristics() {
				all = append(all, Proposal{level, prior, learned})
			}
		}
	}
	return all
}

// levelOf returns the level at which x decides.
func (f *Features) levelOf(x Proposal) int {
	if x.Level != timeStepName {
		return max(0, slices.IndexFunc(levels, func(l unit.Level) bool { return l.String() == x.Level }))
	}
	if len(f.at) > timeStep {
		return timeStep
	}
	return slices.Index(levels, unit.Segment)
}

// Direct makes the policy's k best proposals on f, a greedy rollout each, and has the
// simulator judge every one of them: nothing is chosen among drafts. Where the schedule is
// decided too, the last of several is the best of the others in the order of its own
// longest path, transfers included. There are fewer when ctx ends.
func (p *Policy) Direct(ctx context.Context, f *Features, k int) ([]Sample, error) {
	made := k
	reorder := k > 1 && f.problem.Tasks.Has(plan.Schedule)
	if reorder {
		made--
	}
	out := p.rollOut(ctx, f, p.proposed(f, made))
	out = out[:f.judge(ctx, out)]
	if len(out) == 0 {
		return nil, ctx.Err()
	}
	if reorder && ctx.Err() == nil {
		best := Best(out)
		best.Priority = schedule.PlacedCriticalPath(f.problem, best.Device)
		best.Score = f.problem.Evaluator.Evaluate(best.Decision)
		out = append(out, best)
	}
	return out, nil
}

// WithoutLearning returns the policy that makes the same proposals and follows their
// priors alone: what the network's training is worth beside it.
func (p *Policy) WithoutLearning() *Policy {
	q := *p
	q.mute = true
	return &q
}

// WithoutTasks returns the policy that decides on placement as p does, and on schedule and
// fusion as one that has learned nothing of them.
func (p *Policy) WithoutTasks() *Policy {
	q := *p
	q.usual = true
	return &q
}

// levels returns the levels of schedule and fusion that p chooses for the units of s.
func (p *Policy) levels(s *instance) unitLevels {
	if p.usual {
		return usualLogits(s.part.NumUnits()).likeliest()
	}
	return p.net.tasksOf(s).likeliest()
}

// rollOut makes these proposals on f, a greedy rollout each, side by side where they
// decide at the same level. Those that ctx leaves no time for are missing.
func (p *Policy) rollOut(ctx context.Context, f *Features, all []Proposal) []Sample {
	type kind struct { // of proposals that are made side by side
		level   int
		learned float32
	}
	var kinds []kind
	of := map[kind][]int{}
	for i, x := range all {
		k := kind{f.levelOf(x), x.Learned}
		if p.mute {
			k.learned = 0
		}
		if of[k] == nil {
			kinds = append(kinds, k)
		}
		of[k] = append(of[k], i)
	}
	out, by := make([]Sample, len(all)), map[int]*rollouts{}
	for _, k := range kinds {
		s := f.instance(k.level)
		if by[k.level] == nil {
			by[k.level] = newRollouts(p.net, s)
		}
		for these := range slices.Chunk(of[k], defaultZeroShot().abreast) {
			if ctx.Err() != nil {
				break
			}
			priors := make([]heuristic, len(these))
			for n, i := range these {
				priors[n] = heuristics()[all[i].Prior]
				priors[n].learned = k.learned
			}
			for n, x := range by[k.level].greedy(priors) {
				y := Sample{Decision: plan.Decision{Device: make([]uint8, len(s.part.Of))}, level: k.level, clock: x.soonest}
				s.place(x.best, y.Device)
				y.Decision = f.decoder(s).decide(y.Device, p.levels(s))
				out[these[n]] = y
			}
		}
	}
	return slices.DeleteFunc(out, func(y Sample) bool { return y.Device == nil })
}

// judge has the simulator judge the samples in turn, each plan once, until ctx ends, and
// returns how many are judged.
func (f *Features) judge(ctx context.Context, all []Sample) int {
	for i := range all {
		if ctx.Err() != nil {
			return i
		}
		x := &all[i]
		same := slices.IndexFunc(all[:i], func(y Sample) bool {
			return (y.level == x.level || f.problem.Tasks == plan.Place) && bytes.Equal(y.Device, x.Device)
		})
		if same >= 0 {
			x.Score = all[same].Score
			continue
		}
		x.Score = f.problem.Evaluator.Evaluate(x.Decision)
	}
	return len(all)
}

// proposed returns the policy's first k proposals for f, the best first; there are fewer
// where more would not help. A policy that has never tried any has them in a random order.
func (p *Policy) proposed(f *Features, k int) (chosen []Proposal) {
	all := proposals()
	if len(p.tried.Times) == 0 {
		random := rand.New(rand.NewPCG(0, 0x70))
		random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		return all[:min(k, len(all))]
	}
	for _, c := range choose(p.tried.logs, p.tried.weights(p.training.standard(f.summary), nil), min(k, mostProposals)) {
		chosen = append(chosen, all[c])
	}
	return chosen
}

// mostProposals is the number that are put in order for a graph.
const mostProposals = 64

// trials are what the proposals came to on training graphs. Letters: G graphs, C
// proposals, Q figures of a summary.
type trials struct {
	Families []string    `json:"families"` // [G]
	Graphs   [][]float32 `json:"graphs"`   // [G,Q] standardised summaries
	Times    [][]float32 `json:"times"`    // [G,C] steps over the expert's
	// Width is the distance, in deviations, at which a graph counts e^(-1/2) of what one
	// at hand counts; 0: all count the same.
	Width float64 `json:"width"`

	logs [][]float64 // [G,C] logarithms of Times
}

// weights returns what each graph counts for a graph of that summary, [G]; those of a
// family left out count nothing.
func (t *trials) weights(summary []float32, without func(family string) bool) []float64 {
	w, nearest := make([]float64, len(t.Graphs)), math.Inf(1)
	for g, x := range t.Graphs {
		w[g] = rootMeanSquare(x, summary)
		nearest = min(nearest, w[g])
	}
	for g, d := range w {
		switch {
		case without != nil && without(t.Families[g]):
			w[g] = 0
		case t.Width == 0:
			w[g] = 1
		default: // beside the nearest, so that something always counts
			w[g] = math.Exp((nearest*nearest - d*d) / (2 * t.Width * t.Width))
		}
	}
	return w
}

// widths are those that fit tries.
var widths = []float64{0, 2, 1, 0.5, 0.25}

// fit chooses the width by leaving out one family after another: that by which the best
// of DefaultSamples proposals, chosen on the other families, is shortest in the geometric
// mean.
func (t *trials) fit() {
	least, best := math.Inf(1), 0.0
	for _, width := range widths {
		t.Width = width
		sum := 0.0
		for g := range t.Graphs {
			w := t.weights(t.Graphs[g], func(family string) bool { return family == t.Families[g] })
			shortest := math.Inf(1)
			for _, c := range choose(t.logs, w, DefaultSamples) {
				shortest = min(shortest, float64(t.Times[g][c]))
			}
			sum += math.Log(shortest)
		}
		if sum < least-1e-12 {
			least, best = sum, width
		}
	}
	t.Width = best
}

// validate reports a fault of trials read from a file.
func (t *trials) validate() error {
	n := len(t.Times)
	if len(t.Graphs) != n || len(t.Families) != n || !(t.Width >= 0) {
		return fmt.Errorf("trials: %d graphs, %d families, %d rows of times, width %g", len(t.Graphs), len(t.Families), n, t.Width)
	}
	for g := range n {
		if len(t.Graphs[g]) != 2*numUnitFeatures || len(t.Times[g]) != len(proposals()) {
			return fmt.Errorf("trials: graph %d has %d figures and %d times, want %d and %d", g, len(t.Graphs[g]), len(t.Times[g]), 2*numUnitFeatures, len(proposals()))
		}
		for c, x := range t.Times[g] {
			if !(x > 0) {
				return fmt.Errorf("trials: graph %d, proposal %d: time %g", g, c, x)
			}
		}
	}
	return nil
}

// firstJudged is the number of a family's first graph on which proposals are judged:
// training does not come that far.
const firstJudged = 1 << 20

// try tries all proposals of the run's policy on graphs of its families.
func (t *pretraining) try(ctx context.Context, p *Policy) (trials, error) {
	all, out := proposals(), trials{}
	for _, f := range t.families {
		for i := range t.c.Judged {
			x, err := t.newExample(ctx, f, firstJudged+i)
			if err != nil {
				return trials{}, err
			}
			w, err := NewFeatures(x.problem)
			if err != nil {
				return trials{}, err
			}
			made := p.rollOut(ctx, w, all)
			if w.judge(ctx, made) < len(all) {
				return trials{}, ctx.Err()
			}
			row := make([]float32, len(all))
			for c, y := range made {
				row[c] = float32(math.Round(1e4*relative(y.Score, w.instance(y.level), x.expert)) / 1e4)
			}
			out.Families, out.Graphs, out.Times = append(out.Families, f.Name), append(out.Graphs, p.training.standard(w.summary)), append(out.Times, row)
		}
	}
	out.logs = logarithms(out.Times)
	if len(out.Times) > 0 {
		out.fit()
	}
	return out, nil
}

// Propose tries all proposals anew, on graphs of the families that c trains on, which
// must be those that p was trained on. expert places what times are relative to.
func (p *Policy) Propose(ctx context.Context, c PretrainConfig, expert plan.Placer) error {
	c.Policy = p.config
	t, err := newPretraining(c, nil)
	if err != nil {
		return err
	}
	t.host.Expert = expert
	p.tried, err = t.try(ctx, p)
	return err
}

// logarithms returns those of times, [G,C].
func logarithms(times [][]float32) [][]float64 {
	logs := make([][]float64, len(times))
	for g, row := range times {
		logs[g] = make([]float64, len(row))
		for c, x := range row {
			logs[g][c] = math.Log(float64(x))
		}
	}
	return logs
}

// choose returns columns of logs, the logarithms of times, [G,C], that make the best of the
// first n least in the mean over graphs, each by its weight, for every n, as far as taking
// one after another does.
func choose(logs [][]float64, weight []float64, n int) (chosen []int) {
	if len(logs) == 0 {
		return nil
	}
	best := slices.Repeat([]float64{math.Inf(1)}, len(logs))
	known := math.Inf(1)
	for range min(n, len(logs[0])) {
		at, least := -1, known
		for c := range logs[0] {
			sum := 0.0
			for g, row := range logs {
				if weight[g] > 0 {
					sum += weight[g] * min(best[g], row[c])
				}
			}
			if sum < least-1e-9 {
				at, least = c, sum
			}
		}
		if at < 0 { // nothing gets better any more
			break
		}
		known = least
		chosen = append(chosen, at)
		for g, row := range logs {
			best[g] = min(best[g], row[at])
		}
	}
	return chosen
}
