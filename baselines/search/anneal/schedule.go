package anneal

import "math"

// whole is a run length that means whole groups.
const whole = 1 << 20

// stage is a part of the schedule: decisions at one granularity, at temperatures
// that fall geometrically, as fractions of the present cost.
type stage struct {
	coarse   bool // evaluated on the coarsened graph of cells, else on the problem
	ops      bool // decisions are ops in cells, else cells in chains
	alike    bool // decisions are ops, those that are alike in the cells of a chain together; with ops
	run      int  // most decisions of a group that move at once are twice this
	hot, end float64
	share    float64 // of the budget, relative to the other stages
}

// temperature is that at fraction x of the stage.
func (s *stage) temperature(x float64) float64 { return s.hot * math.Pow(s.end/s.hot, x) }

// defaultStages was tuned on the training graphs of GNMT and Inception at 6,000
// evaluations. Annealing of whole chains settles most; a coarsened graph finds the
// neighbourhood of a good placement in a tenth of the time, but orders the best of
// them only roughly.
var defaultStages = []stage{
	{coarse: true, run: whole, hot: 0.04, end: 0.001, share: 0.2},
	{coarse: true, run: 64, hot: 0.004, end: 0.0005, share: 0.05},
	{run: whole, hot: 0.01, end: 0.0005, share: 0.25},
	{run: 64, hot: 0.003, end: 0.0005, share: 0.1},
	{run: 16, hot: 0.003, end: 0.0003, share: 0.2},
	{run: 4, hot: 0.003, end: 0.0002, share: 0.15},
	{ops: true, run: 4, hot: 0.0005, end: 0.0001, share: 0.05},
}

// fineStages are those of Placer.Fine on ops, in place of one at the end. Their shares are
// multiples of what the stages on cells have together, settled on drawn problems
// (docs/adr/0088-single-ops.md).
var fineStages = []stage{
	{ops: true, alike: true, run: 16, hot: 0.001, end: 0.0002, share: 0.5},
	{ops: true, run: 4, hot: 0.0005, end: 0.0001, share: 1},
}

// fullTurns is how many evaluations a budget has for each unit of ops where the fine stages have
// their whole shares. With fewer most ops would not be tried.
const fullTurns = 0.25

// withFineStages returns those of stages that are on cells, and the fine ones, whose shares are
// the less the fewer turns an op has on average; the last has no less than the stages on ops had.
func withFineStages(stages []stage, turns float64) (out []stage) {
	cells, ops := 0.0, 0.0
	for _, s := range stages {
		if s.ops {
			ops += s.share
			continue
		}
		out = append(out, s)
		cells += s.share
	}
	for k, s := range fineStages {
		if s.share *= cells * min(1, turns/fullTurns); k == len(fineStages)-1 {
			s.share = max(s.share, ops)
		}
		out = append(out, s)
	}
	return out
}

// rounds is the number of exchanges between replicas in a stage.
const rounds = 8
