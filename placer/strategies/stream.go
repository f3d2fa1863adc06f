package strategies

import (
	"math"

	"placer/graph/strategy"
	"placer/plan"
	"placer/sim"
)

// Stream is what inference comes to where steps follow one another: stages of a pipeline begin
// the next step before the last has left it.
type Stream struct {
	Strategy strategy.Strategy
	Every    float64 // seconds from step to step
}

// streams compares in streams too: of steps that are a forward pass alone.
func (x *Comparison) streams(row *Row, s strategy.Strategy, r *Result) {
	if x.ahead == nil || r.Overflow > 0 {
		return
	}
	every, err := x.every(s, r)
	if err == nil && (row.Stream == nil || every < row.Stream.Every) {
		row.Stream = &Stream{s, every}
	}
}

// undivided streams steps of s in one micro-batch for each replica: the next step fills a pipeline
// as other micro-batches would, unless samples have to end a step before they begin the next.
func (x *Comparison) undivided(row *Row, s strategy.Strategy) {
	if x.ahead == nil || s.Pipeline == 1 || s.Chunks > 1 || x.c.MicroBatches > 0 {
		return
	}
	s.MicroBatches = 1
	if r, err := x.Simulate(s); err == nil {
		row.Tried++
		x.streams(row, s, r)
	}
}

// every returns how long a step takes in a stream of them. Micro-batches of the next step follow
// those of this one as these follow each other, so it is what as many micro-batches more add. Where samples hold keys and values, a micro-batch begins its next
// step when it has ended this one: a step takes no less than a micro-batch from its first op to its
// last.
func (x *Comparison) every(s strategy.Strategy, r *Result) (float64, error) {
	if s.Pipeline == 1 {
		return r.Seconds, nil
	}
	twice := s
	twice.MicroBatches *= 2
	m, blocks, _, err := x.ahead.of(x.judge, variant{x.c.Batch / int64(s.Parts()), strategy.RecomputeNothing, s.Context})
	if err != nil {
		return 0, err
	}
	j, err := x.on(r)
	if err != nil {
		return 0, err
	}
	step, err := x.ahead.emit(j, m, blocks, twice, r.Step.Bounds, r.Step.Folded)
	if err != nil {
		return 0, err
	}
	two, err := j.Run(step)
	if err != nil {
		return 0, err
	}
	seconds := two.Seconds - r.Seconds
	if !m.HasState() {
		return seconds, nil
	}
	latency, err := latency(j, r.Step)
	return max(seconds, latency), err
}

// latency returns the least time that a micro-batch takes from its first op to its last.
func latency(j *Judge, step *strategy.Step) (float64, error) {
	s, d, err := j.Simulator(step)
	if err != nil {
		return 0, err
	}
	r, err := s.Run(&plan.Plan{Decision: d}, sim.Options{Trace: true})
	if err != nil {
		return 0, err
	}
	n := step.Strategy.MicroBatches
	begin, end := make([]float64, n), make([]float64, n)
	for k := range n {
		begin[k] = math.Inf(1)
	}
	for _, span := range r.Trace.Ops {
		if k := step.Micro[span.Op]; k >= 0 {
			begin[k], end[k] = min(begin[k], float64(span.Start)), max(end[k], float64(span.End))
		}
	}
	least := math.Inf(1)
	for k := range n {
		least = min(least, end[k]-begin[k])
	}
	return least, nil
}
