package sequential

import (
	"math"
	"slices"
)

// work is about how long the proposals take on a graph, in steps of schedules, as it is
// known before any is made. Letters: C proposals, N things that several need and that are
// made once: for each level the description of its units, then, for those by which what was
// learned counts, their embedding.
type work struct {
	of    []float64 // [C] to make it and to have it judged
	needs [][]int   // [C]
	once  []float64 // [N]
}

// Work in steps of schedules: that of looking at one device for one decision, of describing
// a level by node of the coarsened graph and by op, and of simulating an op. It was measured
// on one core of a server of 2023, as stepsPerSecond was, when the order was chosen; all but
// the simulation takes a half to two thirds of it since. An encoder was measured later: making
// its graph for a level, and embedding a unit, by the number of the policy's weights.
const (
	surveying     = 1.5
	describing    = 10
	describingOps = 0.3
	simulating    = 1
	compiling     = 12_000
	embedding     = 1. / 800
)

// work returns that of all of p's proposals on f.
func (p *Policy) work(f *Features) work {
	config := defaultZeroShot()
	n, d, nodes := float64(f.problem.Graph.NumOps()), float64(f.problem.Machine.NumDevices()), float64(f.coarse.nodes.Graph.NumOps())
	w := work{of: make([]float64, len(allProposals)), needs: make([][]int, len(allProposals)), once: make([]float64, 2*len(f.at))}
	needs := make([][2]int, len(f.at)) // of each level: description, embedding
	for l := range needs {
		needs[l] = [2]int{l, len(f.at) + l}
		if level(l) >= atSegments { // cells are described in any case
			w.once[needs[l][0]] = describing*nodes + describingOps*n
		}
		if p.net.encoder != nil {
			w.once[needs[l][1]] = compiling + embedding*float64(p.Weights())*float64(f.units[l])
		}
	}
	l := atCells
	for c, x := range allProposals {
		if c%perLevel == 0 {
			l = f.levelOf(x)
		}
		scored := float64(f.units[l]) * d
		step := nodes + float64(f.units[l]) + surveying*scored + float64(x.Learned)*float64(config.scoring)*scored
		w.needs[c], w.of[c] = needs[l][:1+int(x.Learned)], passes*step+simulating*n
	}
	return w
}

// choose returns rows of logs, the logarithms of times, [C,G]: one after another those
// that shorten the best of them most for their work, in the mean over graphs, each by its
// weight. A graph of which nothing is placed counts as infeasibleExpert of the expert's
// steps. There are fewer than n where more would not help. Gains fall as more is chosen
// (they are submodular), so for the work of any number of the first, but for what is
// made once, no other choice gains more than 1/(1-1/e) times as much in these graphs
// (Streeter and Golovin, NeurIPS 2008).
func choose(logs [][]float64, weight []float64, w work, n int) (chosen []int) {
	if len(weight) == 0 {
		return nil
	}
	x := &greedy{logs: logs, weight: weight, w: w, made: make([]bool, len(w.once)),
		best: slices.Repeat([]float64{math.Log(infeasibleExpert)}, len(weight)), gain: slices.Repeat([]float64{math.Inf(1)}, len(logs))}
	for range min(n, len(logs)) {
		c := x.next()
		if c < 0 { // nothing gets better any more
			break
		}
		chosen = append(chosen, c)
		x.take(c)
	}
	return chosen
}

// greedy is the state of choose. Gains are summed lazily (Minoux, 1978): as they only fall
// while more is chosen, one that was summed earlier is a bound.
type greedy struct {
	logs   [][]float64 // [C,G]
	weight []float64   // [G]
	w      work
	best   []float64 // [G] of what is chosen
	gain   []float64 // [C] at most, as of when it was last summed
	made   []bool    // [N]
}

// next returns the proposal of most gain for its work, -1 where none has any.
func (x *greedy) next() int {
	// What seemed best before is good now, too, and most are no match for it.
	first, rate := 0, 0.0
	for c, gain := range x.gain {
		if gain/x.cost(c) > rate {
			first, rate = c, gain/x.cost(c)
		}
	}
	x.sum(first)
	least := x.gain[first] / x.cost(first) * (1 - 1e-9)
	at, most := -1, 0.0
	for c := range x.gain {
		cost := x.cost(c)
		if x.gain[c] <= max(least, most)*cost {
			continue
		}
		if x.sum(c); x.gain[c] > most*cost && x.gain[c] > 1e-9 {
			at, most = c, x.gain[c]/cost
		}
	}
	return at
}

// cost returns the work of proposal c, with that of what it is the first to need.
func (x *greedy) cost(c int) float64 {
	cost := x.w.of[c]
	for _, i := range x.w.needs[c] {
		if !x.made[i] {
			cost += x.w.once[i]
		}
	}
	return cost
}

// sum brings the gain of proposal c up to date.
func (x *greedy) sum(c int) {
	total, row := 0.0, x.logs[c]
	best, weight := x.best[:len(row)], x.weight[:len(row)]
	for g, log := range row {
		shorter := best[g] - log
		total += weight[g] * ((shorter + math.Abs(shorter)) / 2) // 0 below 0, without a branch
	}
	x.gain[c] = total
}

// take adds proposal c to what is chosen.
func (x *greedy) take(c int) {
	for _, i := range x.w.needs[c] {
		x.made[i] = true
	}
	for g, log := range x.logs[c] {
		x.best[g] = min(x.best[g], log)
	}
}
