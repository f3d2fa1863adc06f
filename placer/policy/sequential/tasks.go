package sequential

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/nn"
	"placer/plan"
	"placer/transformerxl"
)

// An encoder decides on schedule and fusion too, as GO does: behind the embedding,
// recurrent attention over the tasks gives each unit logits of its levels of both, all
// units at once. The middle level of a schedule leaves an op its rank on the longest
// path; the highest of fusion lets every op into the kernels of its readers, the middle
// those that TensorFlow's rules would. A policy that has learned nothing takes these.
const (
	scheduleLevels = 5
	fusionLevels   = 3

	// defaultWeight is the score of the level that a unit has without learning.
	defaultWeight = 4
	// shift is how far a level of the schedule moves an op's rank, as a share of all.
	shift = 0.02
)

// defaultLevel is the level of each task that a unit has without learning.
var defaultLevel = map[string]int{transformerxl.Scheduling: scheduleLevels / 2, transformerxl.Fusion: fusionLevels - 1}

// taskLogits are what a unit's levels of schedule and fusion score, [U,levels] each,
// by unit. Without an encoder they are those of no learning.
type taskLogits struct{ schedule, fusion nn.Mat }

// tasksOf returns the logits of s.
func (n *network) tasksOf(s *instance) taskLogits {
	if n.encoder != nil {
		return n.encoder.tasks(s)
	}
	return defaultLogits(s.part.NumUnits())
}

// defaultLogits are those of n units without learning.
func defaultLogits(n int) taskLogits {
	x := taskLogits{nn.NewMat(n, scheduleLevels), nn.NewMat(n, fusionLevels)}
	x.addDefaults()
	return x
}

// addDefaults adds the score of the default levels.
func (x taskLogits) addDefaults() {
	for u := range x.schedule.N {
		x.schedule.Row(u)[defaultLevel[transformerxl.Scheduling]] += defaultWeight
		x.fusion.Row(u)[defaultLevel[transformerxl.Fusion]] += defaultWeight
	}
}

// levels are those of each unit, [U] each.
type unitLevels struct{ schedule, fusion []int32 }

// likeliest returns the likeliest levels.
func (x taskLogits) likeliest() unitLevels {
	top := func(m nn.Mat) []int32 {
		at := make([]int32, m.N)
		for u := range at {
			row := m.Row(u)
			at[u] = int32(slices.Index(row, slices.Max(row)))
		}
		return at
	}
	return unitLevels{top(x.schedule), top(x.fusion)}
}

// sample draws levels by their probabilities.
func (x taskLogits) sample(r *rand.Rand) unitLevels {
	draw := func(m nn.Mat) []int32 {
		at, p := make([]int32, m.N), make([]float64, m.D)
		for u := range at {
			nn.SoftmaxRow(p, m.Row(u))
			at[u] = nn.Draw(p, r)
		}
		return at
	}
	return unitLevels{draw(x.schedule), draw(x.fusion)}
}

// WithoutTasks returns the policy that decides on placement as p does, and on schedule and
// fusion as one that has learned nothing of them.
func (p *Policy) WithoutTasks() *Policy {
	q := *p
	q.defaultTasks = true
	return &q
}

// levels returns the levels of schedule and fusion that p chooses for the units of s.
func (p *Policy) levels(s *instance) unitLevels {
	if p.defaultTasks {
		return defaultLogits(s.part.NumUnits()).likeliest()
	}
	return p.net.tasksOf(s).likeliest()
}

// taskDecoder turns levels into decisions on one problem.
type taskDecoder struct {
	s     *instance
	tasks plan.Tasks
	rank  []int32 // [N] on the longest path, 0 first
	rules *fuse.Rules
	key   []float64 // [N] scratch
	order []int32
}

// newTaskDecoder returns a decoder of the tasks of s's problem. Priorities are those that
// the problem gives.
func newTaskDecoder(s *instance, tasks plan.Tasks) *taskDecoder {
	n := len(s.part.Of)
	x := &taskDecoder{s: s, tasks: tasks, rank: s.problem.Priority, key: make([]float64, n), order: make([]int32, n)}
	if tasks.Has(plan.Fuse) {
		x.rules = fuse.NewRules(s.problem.Graph)
	}
	return x
}

// decide returns the decision of a placement, [N], and levels.
func (x *taskDecoder) decide(device []uint8, l unitLevels) plan.Decision {
	d := plan.Decision{Device: device, Priority: x.s.problem.Priority, Fusion: x.s.problem.Fusion}
	if x.tasks.Has(plan.Schedule) && x.rank != nil {
		d.Priority = x.priorities(l.schedule)
	}
	if x.tasks.Has(plan.Fuse) {
		d.Fusion = x.fused(device, l.fusion)
	}
	return d
}

// priorities returns a permutation, [N], by rank moved by the level of each op's unit.
func (x *taskDecoder) priorities(level []int32) []int32 {
	n := len(x.rank)
	for i, r := range x.rank {
		x.order[i] = int32(i)
		x.key[i] = float64(r) + float64(level[x.s.part.Of[i]]-scheduleLevels/2)*shift*float64(n)
	}
	slices.SortFunc(x.order, func(a, b int32) int {
		if c := cmp.Compare(x.key[a], x.key[b]); c != 0 {
			return c
		}
		return cmp.Compare(x.rank[a], x.rank[b])
	})
	priority := make([]int32, n)
	for at, i := range x.order {
		priority[i] = int32(at)
	}
	return priority
}

// fused returns fusion priorities, [N].
func (x *taskDecoder) fused(device []uint8, level []int32) []uint8 {
	f := fusion.Default(x.rules, device)
	for i := range f {
		switch level[x.s.part.Of[graph.OpID(i)]] {
		case 0:
			f[i] = 0
		case fusionLevels - 1:
			f[i] = 1
		}
	}
	return f
}
