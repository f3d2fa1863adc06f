package maxload

import (
	"placer/plan"
	"placer/units"
)

// Evaluator judges placements by their maximum load. Priorities do not matter to
// it. It satisfies plan.Evaluator.
type Evaluator struct {
	x       *Instance
	seconds [][]float64 // [D][N] of the simulator's clock, for methods that weigh ops
	block   []uint8
	load    []float64 // [D]
	bytes   []int64   // [D]
}

var _ plan.Evaluator = (*Evaluator)(nil)

// NewEvaluator returns an evaluator of x, whose blocks must be no coarser than
// the co-location groups. seconds, [D][N], is what OpSeconds answers.
func NewEvaluator(x *Instance, seconds [][]float64) *Evaluator {
	return &Evaluator{x: x, seconds: seconds, block: make([]uint8, x.NumBlocks()), load: make([]float64, x.NumDevices()), bytes: make([]int64, x.NumDevices())}
}

// Instance returns what the evaluator judges on.
func (e *Evaluator) Instance() *Instance { return e.x }

// Clone returns an evaluator for another goroutine.
func (e *Evaluator) Clone() plan.Evaluator { return NewEvaluator(e.x, e.seconds) }

// OpSeconds returns the time of every op on device d, [N], read-only.
func (e *Evaluator) OpSeconds(d int) []float64 { return e.seconds[d] }

// Evaluate returns the maximum load as Score.Seconds, and the bytes above the
// devices' memories.
func (e *Evaluator) Evaluate(device []uint8, _ []int32) plan.Score {
	x := e.x
	for b, m := range x.Members {
		e.block[b] = device[m[0]]
	}
	clear(e.load)
	clear(e.bytes)
	for b, d := range e.block {
		e.load[d] += x.Classes[x.ClassOf[d]].Seconds[b]
		e.bytes[d] += x.Size[b]
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
		s.Seconds = max(s.Seconds, e.load[d])
		s.Overflow += units.Bytes(max(0, e.bytes[d]-x.Classes[x.ClassOf[d]].Memory))
	}
	return s
}
