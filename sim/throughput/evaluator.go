package throughput

import (
	"context"

	"placer/plan"
	"placer/units"
)

// Evaluator judges placements by their maximum load. Priorities do not matter to
// it. It satisfies plan.Evaluator.
type Evaluator struct {
	x      *Instance
	source Source
	times  [][]float64 // [D][N] of OpSeconds
	block  []uint8
	device []uint8   // [N]
	load   []float64 // [D]
	bytes  []int64   // [D]

	pipeline *pipeline // nil where memory is a sum
}

var _ plan.Evaluator = (*Evaluator)(nil)

// NewEvaluator returns an evaluator of s, which must join no ops into parts.
func NewEvaluator(s Source) (*Evaluator, error) {
	if s.Part != nil {
		panic("maxload: an evaluator of parts")
	}
	x, err := New(context.Background(), s)
	if err != nil {
		return nil, err
	}
	return newEvaluator(x, s, finite(s.Seconds)), nil
}

func newEvaluator(x *Instance, s Source, times [][]float64) *Evaluator {
	e := &Evaluator{x: x, source: s, times: times, block: make([]uint8, x.NumBlocks()), device: make([]uint8, len(x.Block)), load: make([]float64, x.NumDevices()), bytes: make([]int64, x.NumDevices())}
	if x.pipeline != nil {
		e.pipeline = x.pipeline.clone()
	}
	return e
}

// Instance returns what the evaluator judges on.
func (e *Evaluator) Instance() *Instance { return e.x }

// Clone returns an evaluator for another goroutine.
func (e *Evaluator) Clone() plan.Evaluator { return newEvaluator(e.x, e.source, e.times) }

// Source returns what the evaluator was made from.
func (e *Evaluator) Source() Source { return e.source }

// OpSeconds returns the time of every op on device d, [N], read-only. An op that cannot
// run there takes longest: methods weigh, sum and divide by these times.
func (e *Evaluator) OpSeconds(d int) []float64 { return e.times[d] }

// Evaluate returns the maximum load as Score.Value, infinite where an op cannot run on its
// device, and the bytes above the devices' memories. The definition knows neither priorities nor fusion.
func (e *Evaluator) Evaluate(d plan.Decision) plan.Score {
	x := e.x
	for b, m := range x.Members {
		e.block[b] = d.Device[m[0]]
	}
	clear(e.load)
	clear(e.bytes)
	for b, d := range e.block {
		e.load[d] += x.Classes[x.ClassOf[d]].Seconds[b]
		e.bytes[d] += x.Size[b]
	}
	if e.pipeline != nil {
		for i, b := range x.Block {
			e.device[i] = e.block[b]
		}
		copy(e.bytes, e.pipeline.peaks(e.device))
	}
	for k := range x.Nets {
		n := &x.Nets[k]
		var on uint64
		for _, b := range n.Blocks {
			on |= 1 << e.block[b]
		}
		if on&(on-1) == 0 {
			continue
		}
		for d := range e.load {
			if on>>d&1 != 0 && !x.Classes[x.ClassOf[d]].CPU {
				e.load[d] += n.Seconds
			}
		}
	}
	var s plan.Score
	for d := range e.load {
		s.Value = max(s.Value, e.load[d])
		s.Overflow += units.Bytes(max(0, e.bytes[d]-x.Classes[x.ClassOf[d]].Memory))
	}
	return s
}
