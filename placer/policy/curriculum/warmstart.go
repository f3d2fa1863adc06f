package curriculum

import (
	"math"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/placer/policy/rollout"
	"placer/plan"
)

// WarmStart takes the logits of from to the units of stage to, softened so that the
// finer stage can still change its mind. seconds, [N], weigh the ops.
func WarmStart(from Learnt, heads []rollout.Head, to Stage, seconds []float64, devices int) (all Logits) {
	for t, head := range heads {
		rows := from.Logits[t]
		if head.Task == plan.Fuse && from.OneFusion {
			rows = slices.Repeat(rows[:1], len(rows))
		}
		most := float32(warmStartRange)
		if head.Task == plan.Place {
			most = max(most, logitOf(warmStartProbability, devices))
		}
		soft := make([][]float32, len(rows))
		for u, row := range rows {
			soft[u] = clampToBest(row, len(row)/head.Kinds, most)
		}
		all = append(all, prolong(soft, from.Units, to.Units, seconds))
	}
	return all
}

// clampToBest returns the logits of choices among levels levels each less the best of their
// choice, and none further below it than most.
func clampToBest(logits []float32, levels int, most float32) []float32 {
	soft := make([]float32, len(logits))
	for lo := 0; lo < len(logits); lo += levels {
		top := slices.Max(logits[lo : lo+levels])
		for a := lo; a < lo+levels; a++ {
			soft[a] = max(logits[a]-top, -most)
		}
	}
	return soft
}

// prolong gives each unit of fine the mean, by time, of the rows of the units of coarse
// that its ops belong to; where its ops take no time they all count the same.
func prolong(rows [][]float32, coarse, fine *unit.Partition, seconds []float64) [][]float32 {
	down := make([][]float32, fine.NumUnits())
	for u, ops := range fine.Ops {
		row := make([]float32, len(rows[0]))
		weight, least := float32(0), float32(0)
		if !slices.ContainsFunc(ops, func(i graph.OpID) bool { return float32(seconds[i]) > 0 }) {
			least = 1
		}
		for _, i := range ops {
			w := max(float32(seconds[i]), least)
			weight += w
			for a, x := range rows[coarse.Of[i]] {
				row[a] += w * x
			}
		}
		for a := range row {
			row[a] /= weight
		}
		down[u] = row
	}
	return down
}

// warmStartRange is the most by which a logit of the coarser stage lies below the best: a probability
// of at most a twelfth of the best one's is left.
const warmStartRange = 2.5

// warmStartProbability is the least probability that they leave the best device, if
// there are so many others that warmStartRange would leave it less.
const warmStartProbability = 0.8

// logitOf is by how much a logit lies above n-1 equal ones whose best has probability p.
func logitOf(p float64, n int) float32 {
	return float32(math.Log(p / (1 - p) * float64(n-1)))
}

// Majority returns the device of each unit of p in placement device, [N]: where it
// has most time.
func Majority(p *unit.Partition, device []uint8, seconds []float64, devices int) []uint8 {
	all := make([]uint8, p.NumUnits())
	for u, ops := range p.Ops {
		time := make([]float64, devices)
		most := device[ops[0]]
		for _, i := range ops {
			time[device[i]] += seconds[i]
			if time[device[i]] > time[most] {
				most = device[i]
			}
		}
		all[u] = most
	}
	return all
}

// StartBias is by how much the logits of a placement to start from begin above the
// others: 4, and more among many devices, so that a unit stays on its device with the
// probability that it has among four.
func StartBias(devices int) float32 { return max(4, logitOf(startProbability, devices)) }

const startProbability = 0.947
