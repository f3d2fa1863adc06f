package sim

import (
	"slices"

	"placer/graph"
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

// peak replaces the time of the run just made by its largest peak.
func (s *Simulator) peak(score plan.Score) plan.Score {
	score.Value = 0
	for d := range s.devs {
		score.Value = max(score.Value, float64(s.devs[d].peak))
	}
	return score
}

// Clone returns an evaluator for another goroutine.
func (p Peak) Clone() plan.Evaluator { return Peak{newSimulator(&p.s.tables)} }

// OpSeconds returns the time of every op on device d, [N], read-only.
func (p Peak) OpSeconds(d int) []float64 { return p.s.OpSeconds(d) }

// PeakBound returns a proven lower bound of the peak bytes of the fullest device
// of d: the resident bytes shared out evenly; the resident bytes of a co-location
// group; what an op reads and makes, beside its workspace, while it runs.
func PeakBound(g *graph.Graph, d int) units.Bytes {
	bound := (g.Resident() + units.Bytes(d) - 1) / units.Bytes(d)
	group := map[int32]units.Bytes{}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Group > 0 {
			group[o.Group] += o.Resident
			bound = max(bound, group[o.Group])
		}
		bound = max(bound, o.Resident+Working(g, i))
	}
	return bound
}

// Working returns the bytes beside its resident ones that op i needs while it
// runs: what it reads and makes, each tensor once, and its workspace.
func Working(g *graph.Graph, i graph.OpID) units.Bytes {
	need := g.Op(i).Workspace
	first, end := g.Outputs(i)
	for t := first; t < end; t++ {
		if x := g.Tensor(t); !x.Resident {
			need += x.Bytes
		}
	}
	inputs := g.Inputs(i)
	for k, t := range inputs {
		if x := g.Tensor(t); !x.Resident && !slices.Contains(inputs[:k], t) {
			need += x.Bytes
		}
	}
	return need
}
