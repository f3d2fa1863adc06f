package strategies

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"placer/graph"
	"placer/graph/remat"
	"placer/graph/strategy"
	"placer/hw"
	"placer/internal/words"
	"placer/roofline"
	"placer/units"
)

// A Family is one model at any batch: its step of so many samples.
type Family func(batch int64) (*graph.Graph, error)

// models makes steps of strategies, keeping the graphs that they share. It serves any number of
// goroutines, each with a Judge of its own.
type models struct {
	building sync.Mutex // the family's own
	family   Family
	batch    int64 // of a step, all replicas together
	graphs   memo[variant, *graph.Graph]
	micros   memo[variant, micro]
}

// variant is a model's step of so many samples, with what it computes again.
type variant struct {
	batch     int64
	recompute strategy.Recompute
	context   int // replicas that share its tokens out; 0: none
}

// micro is the model of a micro-batch, with its blocks and the times of its ops.
type micro struct {
	model  *strategy.Model
	blocks *strategy.Blocks
	times  [][]float64 // [D][N], in the machine's own order; devices that are alike share them
}

func newModels(f Family, batch int64) *models { return &models{family: f, batch: batch} }

// variant is that of a micro-batch of s.
func (x *models) variant(s strategy.Strategy) variant {
	return variant{x.batch / max(1, int64(s.Parts())), s.Recompute, s.Context}
}

func (x *models) graph(v variant) (*graph.Graph, error) {
	return x.graphs.of(v, func() (*graph.Graph, error) {
		if v.context > 0 {
			return x.shared(v)
		}
		x.building.Lock()
		g, err := x.family(v.batch)
		x.building.Unlock()
		if err != nil {
			return nil, err
		}
		return recomputed(g, v.recompute)
	})
}

// shared is v as one of the replicas has it that share its tokens out.
func (x *models) shared(v variant) (*graph.Graph, error) {
	own := variant{v.batch, v.recompute, 0}
	more := variant{x.batch, v.recompute, 0}
	if more == own {
		more.batch *= 2
	}
	g, err := x.graph(own)
	if err != nil {
		return nil, err
	}
	other, err := x.graph(more)
	if err != nil {
		return nil, err
	}
	return strategy.ShareTokens(g, own.batch, other, more.batch, int64(v.context))
}

// recomputed returns the step of g that computes what r says again: of layers, in every one
// that can.
func recomputed(g *graph.Graph, r strategy.Recompute) (*graph.Graph, error) {
	switch r {
	case strategy.RecomputeNothing:
		return g, nil
	case strategy.RecomputeSelective:
		d, err := remat.Attention(g)
		if err != nil {
			return nil, fmt.Errorf("graph %s: %w", g.Name(), err)
		}
		return d.Graph, nil
	}
	l := remat.Find(g)
	var c remat.Changes
	for k := int32(1); k <= l.Last(); k++ {
		if l.Can(k) {
			c.Recompute = append(c.Recompute, k)
		}
	}
	d, err := l.Derive(c)
	if err != nil {
		return nil, err
	}
	return d.Graph, nil
}

// of returns the model of micro-batches of so many samples, with its blocks and the times
// of its ops on each device of j.
func (x *models) of(j *Judge, v variant) (*strategy.Model, *strategy.Blocks, [][]float64, error) {
	m, err := x.micros.of(v, func() (micro, error) { return x.micro(j, v) })
	times := m.times
	if j.order != nil && err == nil {
		times = make([][]float64, len(j.order))
		for k, d := range j.order {
			times[k] = m.times[d]
		}
	}
	return m.model, m.blocks, times, err
}

func (x *models) micro(j *Judge, v variant) (micro, error) {
	small, err := x.graph(v)
	if err != nil {
		return micro{}, err
	}
	whole, err := x.graph(variant{x.batch, v.recompute, 0})
	if err != nil {
		return micro{}, err
	}
	state, err := x.states(whole)
	if err != nil {
		return micro{}, err
	}
	m, err := strategy.NewModel(small, whole, state)
	if err != nil {
		return micro{}, err
	}
	costs, err := roofline.New(small, j.base, j.model)
	if err != nil {
		return micro{}, err
	}
	times := make([][]float64, j.base.NumDevices())
	for d := range times {
		if like := slices.IndexFunc(j.base.Devices[:d], func(e hw.Device) bool { return e.SameFigures(&j.base.Devices[d]) }); like >= 0 {
			times[d] = times[like]
			continue
		}
		times[d] = make([]float64, small.NumOps())
		for i := range times[d] {
			times[d][i] = float64(costs.OpSeconds(graph.OpID(i), d))
		}
	}
	return micro{m, strategy.NewBlocks(m, times[0]), times}, nil
}

// states finds what ops of the whole step hold of the samples.
func (x *models) states(whole *graph.Graph) ([]bool, error) {
	if strategy.Trains(whole) {
		return nil, nil
	}
	twice, err := x.graph(variant{2 * x.batch, strategy.RecomputeNothing, 0})
	if err != nil {
		return nil, err
	}
	return strategy.States(whole, twice), nil
}

// mostWhole is the size of a step up to which stages that are replicated or split are
// simulated with all ranks: their activations then share links with rings.
const mostWhole = 300_000

// step returns the step of s on j's machine, its stages cut by the exact program. One
// replica stands for all where the machine and the strategy allow.
func (x *models) step(j *Judge, s strategy.Strategy) (*strategy.Step, error) {
	return x.derive(j, s, x.folds(j, s))
}

// folds reports whether one replica stands for all in the step of s.
func (x *models) folds(j *Judge, s strategy.Strategy) bool {
	if !j.fold {
		return j.alike(s)
	}
	fold := true
	if j.streamed != nil && s.Pipeline > 1 && s.Ranks() > s.Pipeline && s.Parts() > 0 {
		if g, err := x.graph(x.variant(s)); err == nil && g.NumOps()*s.MicroBatches*s.Data*s.Tensor <= mostWhole {
			fold = false
		}
	}
	return fold
}

// opsOf estimates the ops of the step of s, mostly from above: as if weights and the update were
// there for each micro-batch, but without communication. It is 0 where the model cannot be built.
func (x *models) opsOf(j *Judge, s strategy.Strategy) int {
	g, err := x.graph(x.variant(s))
	if err != nil {
		return 0
	}
	n := g.NumOps() * s.MicroBatches
	if !x.folds(j, s) {
		n *= s.Data * s.Tensor
	}
	return n
}

// derive is step, folded or not.
func (x *models) derive(j *Judge, s strategy.Strategy, fold bool) (*strategy.Step, error) {
	if parts := int64(s.Parts()); parts > x.batch || x.batch%parts != 0 {
		return nil, fmt.Errorf("a batch of %d cannot be divided into %s", x.batch, shares(s))
	}
	ranks := s.Ranks()
	if fold {
		ranks = s.Pipeline
	}
	if j.streamed == nil {
		err := streamsFit(j.Machine.Name, ranks) // before millions of ops are there
		switch {
		case err != nil && fold:
			return nil, errors.New(tooManyStages(ranks))
		case err != nil:
			return nil, fmt.Errorf("%s, so that no replica stands for all: %w", j.unlike(s), err)
		}
	}
	m, blocks, times, err := x.of(j, x.variant(s))
	if err != nil {
		return nil, err
	}
	bounds, err := cut(j.Machine, blocks, times, s)
	if err != nil {
		return nil, err
	}
	return x.emit(j, m, blocks, s, bounds, fold)
}

// tooManyStages says so of that many.
func tooManyStages(n int) string { return fmt.Sprintf("%d stages, want at most %d", n, hw.MaxPlaced/2) }

// shares names the parts that s divides samples into.
func shares(s strategy.Strategy) string {
	micro, replicas := words.Count(s.MicroBatches, "micro-batch", "micro-batches"), s.Parts()/s.MicroBatches
	switch {
	case replicas == 1:
		return micro
	case s.MicroBatches == 1:
		return fmt.Sprintf("the shares of %d replicas", replicas)
	}
	return fmt.Sprintf("%s for each of %d replicas", micro, replicas)
}

// emit is Judge.emit, with the step of the micro-batches of all replicas that share experts out.
func (x *models) emit(j *Judge, m *strategy.Model, blocks *strategy.Blocks, s strategy.Strategy, bounds []int, fold bool) (*strategy.Step, error) {
	if s.Experts > 0 {
		all := x.variant(s)
		all.batch *= int64(s.Experts)
		joint, err := x.graph(all)
		if err != nil {
			return nil, err
		}
		of := *m
		of.Joint, m = joint, &of
	}
	return j.emit(m, blocks, s, bounds, fold)
}

// emit returns the step of m, cut at the bounds.
func (j *Judge) emit(m *strategy.Model, blocks *strategy.Blocks, s strategy.Strategy, bounds []int, fold bool) (*strategy.Step, error) {
	var failed error
	step, err := strategy.Derive(m, blocks, s, strategy.Options{Bounds: bounds, Fold: fold, One: func(c strategy.Collective) bool {
		quicker, err := j.short(s.Mesh, c)
		failed = errors.Join(failed, err)
		return quicker
	}})
	return step, cmp.Or(failed, err)
}

// roomy returns the step of s whose stages are cut by time alone, nil where the cut is the
// same: what a stage holds is estimated from above when stages are cut, so that a cut that
// seems to lack memory may fit.
func (x *models) roomy(j *Judge, s strategy.Strategy) (*strategy.Step, error) {
	if s.Pipeline == 1 {
		return nil, nil
	}
	m, blocks, times, err := x.of(j, x.variant(s))
	if err != nil {
		return nil, err
	}
	tight, err := cut(j.Machine, blocks, times, s)
	if err != nil {
		return nil, err
	}
	bounds, err := cutByTime(blocks, times, s)
	if err != nil || slices.Equal(tight, bounds) {
		return nil, err
	}
	return x.emit(j, m, blocks, s, bounds, x.folds(j, s))
}

// cut returns the cuts of s's chunks that take least time and fit.
func cut(m *hw.Machine, blocks *strategy.Blocks, times [][]float64, s strategy.Strategy) ([]int, error) {
	if s.Pipeline == 1 {
		return []int{0}, nil
	}
	seconds, room := make([][]float64, s.Pipeline), make([]units.Bytes, s.Pipeline)
	for p := range s.Pipeline {
		d := slowest(times, s.Mesh, p)
		seconds[p], room[p] = times[d], m.Devices[d].Memory*units.Bytes(s.Tensor)
	}
	l := blocks.Loads(seconds, s.MicroBatches)
	held := func(chunk int) int { return s.WarmUp(chunk % s.Pipeline) }
	return blocks.Cut(l, s.Pipeline*s.Chunks, room, held)
}

// slowestStage returns the time of a micro-batch on the slowest stage of s, cut to fit.
func (x *models) slowestStage(j *Judge, s strategy.Strategy) (most float64, err error) {
	_, blocks, times, err := x.of(j, x.variant(s))
	if err != nil {
		return 0, err
	}
	bounds, err := cut(j.Machine, blocks, times, s)
	if err != nil {
		return 0, err
	}
	seconds := make([][]float64, s.Pipeline)
	for p := range s.Pipeline {
		seconds[p] = times[slowest(times, s.Mesh, p)]
	}
	loads, stage := blocks.Loads(seconds, s.MicroBatches), make([]float64, s.Pipeline)
	for c, from := range bounds {
		to := blocks.Len()
		if c+1 < len(bounds) {
			to = bounds[c+1]
		}
		p := c % s.Pipeline
		for _, t := range loads.Seconds[p][from:to] {
			stage[p] += t
		}
	}
	return slices.Max(stage), nil
}

// cutByTime returns the cuts of s's chunks that take least time, whether they fit or not.
func cutByTime(blocks *strategy.Blocks, times [][]float64, s strategy.Strategy) ([]int, error) {
	seconds := make([][]float64, s.Pipeline)
	for p := range s.Pipeline {
		seconds[p] = times[slowest(times, s.Mesh, p)]
	}
	return blocks.Cut(blocks.Loads(seconds, s.MicroBatches), s.Pipeline*s.Chunks, nil, nil)
}

// slowest returns the slowest device of stage p.
func slowest(times [][]float64, mesh strategy.Mesh, p int) int {
	at, most := 0, -1.0
	for d := range mesh.Data {
		for t := range mesh.Tensor {
			k := mesh.Rank(d, p, t)
			if most >= 0 && &times[k][0] == &times[at][0] { // a device like that
				continue
			}
			sum := 0.0
			for _, s := range times[k] {
				sum += s
			}
			if sum > most {
				at, most = k, sum
			}
		}
	}
	return at
}
