package sim

import (
	"placer/graph"
	"placer/graph/fuse"
	"placer/plan"
	"placer/units"
)

// Peak judges placements by the peak bytes of the fullest device, which it gives
// as Score.Seconds. It satisfies plan.Evaluator.
type Peak struct{ s *Simulator }

var _ plan.Evaluator = Peak{}

// NewPeak returns the evaluator on s, which must count memory and is its own
// from then on.
func NewPeak(s *Simulator) Peak {
	if !s.cfg.Memory {
		panic("sim: peaks of a simulator that counts no memory")
	}
	return Peak{s}
}

// Evaluate runs the step and returns the largest peak.
func (p Peak) Evaluate(d plan.Decision) plan.Score {
	score := p.s.Evaluate(d)
	if d.Fusion != nil {
		return p.s.fused.run.peak(score)
	}
	return p.s.peak(score)
}

// Peaks returns the peak bytes of each device in the last evaluation, which must have
// been without a fusion, [D].
func (s *Simulator) Peaks() []units.Bytes {
	peaks := make([]units.Bytes, len(s.devs))
	for d := range s.devs {
		peaks[d] = units.Bytes(s.devs[d].peak)
	}
	return peaks
}

// peak replaces the time of the run just made by its largest peak.
func (s *Simulator) peak(score plan.Score) plan.Score {
	score.Value = 0
	for d := range s.devs {
		score.Value = max(score.Value, float64(s.devs[d].peak))
	}
	return score
}

// Contention returns how transfers share links.
func (p Peak) Contention() Contention { return p.s.Contention() }

// Clone returns an evaluator for another goroutine.
func (p Peak) Clone() plan.Evaluator { return Peak{newSimulator(&p.s.tables)} }

// OpSeconds returns the time of every op on device d, [N], read-only.
func (p Peak) OpSeconds(d int) []float64 { return p.s.OpSeconds(d) }

// PeakBound returns a proven lower bound of the peak bytes of the fullest device
// of d: the resident bytes shared out evenly; the resident bytes of a co-location
// group; what an op reads and makes, beside its workspace, while it runs.
func PeakBound(g *graph.Graph, d int) units.Bytes {
	bound := (g.Resident() + units.Bytes(d) - 1) / units.Bytes(d)
	working := NewWorking(g)
	group := map[int32]units.Bytes{}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Group > 0 {
			group[o.Group] += o.Resident
			bound = max(bound, group[o.Group])
		}
		bound = max(bound, o.Resident+working.Bytes(i))
	}
	return bound
}

// Working knows what ops need while they run.
type Working struct {
	g    *graph.Graph
	root []graph.TensorID // [T] what a view is a view of in the end; others themselves
	view []bool           // [T]
}

// NewWorking returns that of g.
func NewWorking(g *graph.Graph) *Working {
	w := &Working{g: g, root: make([]graph.TensorID, g.NumTensors()), view: make([]bool, g.NumTensors())}
	for t, x := range fuse.Views(g) { // an op's inputs come before its outputs
		w.root[t] = graph.TensorID(t)
		if x >= 0 {
			w.root[t], w.view[t] = w.root[x], true
		}
	}
	return w
}

// Bytes returns the bytes beside its resident ones that op i needs, wherever it and
// others are: its workspace, what it makes, and what it reads, of a tensor and views of
// it the largest.
func (w *Working) Bytes(i graph.OpID) units.Bytes {
	need := w.g.Op(i).Workspace
	first, end := w.g.Outputs(i)
	for t := first; t < end; t++ {
		if x := w.g.Tensor(t); !x.Resident && !w.view[t] {
			need += x.Bytes
		}
	}
	inputs := w.g.Inputs(i)
	for k, t := range inputs {
		root, most, again := w.root[t], units.Bytes(0), false
		if w.g.Tensor(root).Resident {
			continue
		}
		for e, u := range inputs {
			if w.root[u] == root {
				most = max(most, w.g.Tensor(u).Bytes)
				again = again || e < k
			}
		}
		if !again {
			need += most
		}
	}
	return need
}
