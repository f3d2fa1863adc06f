package placer

import "math"

// worth is what the levels of each class seem to be worth by the samples of late.
type worth struct {
	FusionConfig
	sum, count [][]float64 // [C][levels] seconds above the mean of the round, and samples
	chance     [][]float64 // [C][levels] what follows
	fine       bool        // a stage behind the first
}

func newWorth(c FusionConfig, classes int, fine bool) *worth {
	table := func() [][]float64 {
		t := make([][]float64, classes)
		for k := range t {
			t[k] = make([]float64, c.Levels)
		}
		return t
	}
	return &worth{c, table(), table(), table(), fine}
}

// add takes in a round of samples: cost are the seconds of each class in each of
// them, [K][C]; nil stands for none told. spent is the share of the budget that is
// used up, step the step time that temperatures are parts of.
func (w *worth) add(round []sample, cost [][]float64, spent, step float64) {
	k := float64(len(round))
	mean, local := 0.0, w.Local
	for _, s := range round {
		mean += s.score.Seconds / k
	}
	if cost == nil {
		local = 0
	}
	temperature := step * w.Hot * math.Pow(w.Cold/w.Hot, spent)
	for c := range w.sum {
		near := 0.0
		for j := range cost {
			near += cost[j][c] / k
		}
		for l := range w.sum[c] {
			w.sum[c][l] *= 1 - w.Decay
			w.count[c][l] *= 1 - w.Decay
		}
		for j, s := range round {
			above := (1 - local) * (s.score.Seconds - mean)
			if local > 0 {
				above += local * (cost[j][c] - near)
			}
			w.sum[c][s.level[c]] += above
			w.count[c][s.level[c]]++
		}
		boltzmann(w.chance[c], w.sum[c], w.count[c], temperature)
	}
}

// boltzmann writes the chances of levels by their mean seconds, sum / (count + 1),
// which draws those that were hardly tried to the mean of all.
func boltzmann(chance, sum, count []float64, temperature float64) {
	least := math.Inf(1)
	for l := range chance {
		chance[l] = sum[l] / (count[l] + 1)
		least = min(least, chance[l])
	}
	total := 0.0
	for l, x := range chance {
		chance[l] = math.Exp((least - x) / temperature)
		total += chance[l]
	}
	for l := range chance {
		chance[l] /= total
	}
}

// steer changes the chances of class c that imitation comes to.
func (w *worth) steer(c int, chance []float64, spent float64) {
	if spent < w.Warm {
		copy(chance, w.chance[c])
		return
	}
	u := w.Explore * min(1, (1-spent)/exploreEnd)
	if w.fine {
		u *= w.Finer
	}
	for l := range chance {
		chance[l] = (1-u)*chance[l] + u*((1-w.Guided)/float64(len(chance))+w.Guided*w.chance[c][l])
	}
}

// exploreEnd is the last share of the budget, over which exploration falls to 0.
const exploreEnd = 0.2
