package stages

import (
	"context"
	"slices"

	"placer/baselines/budget"
	"placer/plan"
	"placer/plan/formats"
)

// maxClimb bounds the evaluations that moving the bounds of stages takes, from one set of
// starts.
const maxClimb = 256

// Nearest returns the best placement of p that t can take and that uses as many devices
// as device, [N], does: for a target of stages the better of the stages that give each
// device as many parts as it has now and of the balanced ones, whose bounds are then
// moved as long as that helps; for others each part on the device of most of it. The
// second result is the device of each part.
func Nearest(ctx context.Context, p *plan.Problem, t formats.Target, device []uint8) (*plan.Outcome, []uint8, error) {
	m := newModel(p)
	track := budget.New(ctx, p, t.Name)
	most := m.parts.Majority(device, p.Evaluator.OpSeconds(int(m.order[0])))
	if !t.Stages {
		track.Try(m.parts.Spread(p.Graph, most))
		out, err := track.Outcome()
		return out, most, err
	}
	used := 0
	count := make([]int, len(m.order))
	for i, d := range m.order {
		if slices.Contains(most, d) {
			used++
		}
		for _, x := range most {
			if x == d {
				count[i]++
			}
		}
	}
	used = max(used, 1)
	slices.SortStableFunc(count, func(a, b int) int { // those with parts first
		if (a > 0) != (b > 0) && a > 0 {
			return -1
		} else if (a > 0) != (b > 0) {
			return 1
		}
		return 0
	})
	kept := make([]int, 0, used) // as many parts a stage as the devices have
	at := 0
	for _, n := range count[:used] {
		kept = append(kept, at)
		at += n
	}
	best := m.climb(track, &t, m.fit(&t, m.balanced(used)), m.fit(&t, kept))
	out, err := track.Outcome()
	if err != nil {
		return nil, nil, err
	}
	out.Device = m.spread(best) // the best of what is legal
	return out, m.device(best), nil
}

// fit moves the bounds to where t allows them: of the stages of a stack of blocks none
// begins outside of it.
func (m *model) fit(t *formats.Target, bounds []int) []int {
	if m.legal(t, bounds) {
		return bounds
	}
	first, last := -1, -1
	for k, x := range m.parts.List {
		if x.Layer >= 0 {
			if first < 0 {
				first = k
			}
			last = k
		}
	}
	if first < 0 {
		return bounds[:1]
	}
	out := []int{0}
	for _, b := range bounds[1:] {
		b = max(b, first+1, out[len(out)-1]+1)
		if b <= last {
			out = append(out, b)
		}
	}
	return out
}

// climb evaluates the starts and moves single bounds of the best as long as it gets
// better. It returns the best bounds.
func (m *model) climb(track *budget.Tracker, t *formats.Target, starts ...[]int) []int {
	var best []int
	var score plan.Score
	most := track.Evaluations() + maxClimb
	try := func(bounds []int) bool {
		if !m.legal(t, bounds) {
			return false
		}
		s := track.Try(m.spread(bounds))
		if best == nil || s.Better(score) {
			best, score = slices.Clone(bounds), s
			return true
		}
		return false
	}
	for _, b := range starts {
		try(b)
	}
	if best == nil {
		best = []int{0}
		try(best)
	}
	for again := true; again && track.Evaluations() < most && !track.Done(); {
		again = false
		for j := 1; j < len(best); j++ {
			for _, by := range []int{-1, 1, -4, 4} {
				next := slices.Clone(best)
				next[j] += by
				end := len(m.parts.List)
				if j+1 < len(next) {
					end = next[j+1]
				}
				if next[j] > next[j-1] && next[j] < end && track.Evaluations() < most && try(next) {
					again = true
				}
			}
		}
	}
	return best
}

// method is a rule that splits a model into stages.
type method struct {
	name   string
	device func(*model) []uint8 // of each part
}

func (r method) Name() string  { return r.name }
func (method) Kind() plan.Kind { return plan.Baseline }

func (r method) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	m := newModel(p)
	return budget.One(ctx, p, r.name, m.parts.Spread(p.Graph, r.device(m)))
}

// best is "layers".
type best struct{}

// Layers is "layers": the best split of the model's blocks into contiguous stages, of
// any number of them: balanced by the dynamic program, then with its bounds moved.
func Layers() plan.Placer { return best{} }

func (best) Name() string    { return "layers" }
func (best) Kind() plan.Kind { return plan.Baseline }

func (best) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	m := newModel(p)
	track := budget.New(ctx, p, "layers")
	var starts [][]int
	for s := range min(len(m.order), len(m.parts.List)) {
		starts = append(starts, m.balanced(s+1))
	}
	m.climb(track, nil, starts...)
	return track.Outcome()
}
