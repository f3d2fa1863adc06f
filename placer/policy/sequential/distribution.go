package sequential

import (
	"fmt"
	"math"
	"slices"
)

// distribution is that of a policy's training graphs: their summaries, and the
// distance up to which transfer to other families has been measured.
type distribution struct {
	Mean  []float32   `json:"mean"`  // [Q] of the summaries
	Scale []float32   `json:"scale"` // [Q] their deviations
	Known [][]float32 `json:"known"` // [M,Q] standardised summaries of training graphs
	// Limit is the distance from the graphs of the other families within which nine of
	// ten training graphs lie, in deviations: a graph that lies farther is out of
	// distribution.
	Limit float64 `json:"limit"`
}

// mostKnown bounds the summaries that a policy file carries.
const mostKnown = 96

// trainingGraph is one by its number and its summary.
type trainingGraph struct {
	Family  string    `json:"family"`
	Index   int       `json:"index"`
	Summary []float32 `json:"summary"` // [Q]
}

// summary returns the mean of the unit features of s, by time, and their
// deviations, [Q] with Q twice the number of features.
func (s *instance) summary() []float32 {
	mean, square := make([]float64, numUnitFeatures), make([]float64, numUnitFeatures)
	for u, w := range s.own {
		for k, x := range s.features[u*numUnitFeatures : (u+1)*numUnitFeatures] {
			mean[k] += w / s.total * float64(x)
			square[k] += w / s.total * float64(x) * float64(x)
		}
	}
	out := make([]float32, 0, 2*numUnitFeatures)
	for _, m := range mean {
		out = append(out, float32(m))
	}
	for k, q := range square {
		out = append(out, float32(math.Sqrt(max(0, q-mean[k]*mean[k]))))
	}
	return out
}

// distributionOf returns that of the graphs seen.
func distributionOf(graphs []trainingGraph) distribution {
	if len(graphs) == 0 {
		return distribution{}
	}
	q := len(graphs[0].Summary)
	r := distribution{Mean: make([]float32, q), Scale: make([]float32, q)}
	n := float32(len(graphs))
	for k := range q {
		for _, g := range graphs {
			r.Mean[k] += g.Summary[k] / n
		}
		for _, g := range graphs {
			d := g.Summary[k] - r.Mean[k]
			r.Scale[k] += d * d / n
		}
		r.Scale[k] = float32(math.Sqrt(float64(r.Scale[k]))) + 0.05
	}
	all := make([][]float32, len(graphs))
	for i, g := range graphs {
		all[i] = r.standard(g.Summary)
	}
	r.Limit = limit(graphs, all)
	step := max(1, (len(all)+mostKnown-1)/mostKnown)
	for i := 0; i < len(all); i += step {
		r.Known = append(r.Known, all[i])
	}
	return r
}

// limit returns the distance within which nine of ten graphs, with standardised
// summaries x, [M,Q], lie from the nearest of another family; 0 for one family.
func limit(graphs []trainingGraph, x [][]float32) float64 {
	var apart []float64
	for i, g := range graphs {
		least := math.Inf(1)
		for j, h := range graphs {
			if g.Family != h.Family {
				least = min(least, rootMeanSquare(x[i], x[j]))
			}
		}
		if !math.IsInf(least, 1) {
			apart = append(apart, least)
		}
	}
	if len(apart) == 0 {
		return 0
	}
	slices.Sort(apart)
	return apart[len(apart)*9/10]
}

// standard returns a summary in deviations from the mean.
func (r *distribution) standard(summary []float32) []float32 {
	x := make([]float32, len(summary))
	for k, v := range summary {
		x[k] = (v - r.Mean[k]) / r.Scale[k]
	}
	return x
}

// rootMeanSquare is that of the differences.
func rootMeanSquare(a, b []float32) float64 {
	sum := 0.0
	for k := range a {
		d := float64(a[k] - b[k])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(a)))
}

// distance returns how far a summary lies from the nearest training graph's; +Inf
// where none is known.
func (r *distribution) distance(summary []float32) float64 {
	least := math.Inf(1)
	if len(r.Known) == 0 {
		return least
	}
	x := r.standard(summary)
	for _, y := range r.Known {
		least = min(least, rootMeanSquare(x, y))
	}
	return least
}

func (r *distribution) validate() error {
	q := 2 * numUnitFeatures
	if len(r.Known)+len(r.Mean)+len(r.Scale) == 0 {
		return nil
	}
	if len(r.Mean) != q || len(r.Scale) != q || !(r.Limit >= 0) {
		return fmt.Errorf("training graphs: %d means, %d scales, limit %g; want %d figures", len(r.Mean), len(r.Scale), r.Limit, q)
	}
	for i, x := range r.Known {
		if len(x) != q {
			return fmt.Errorf("training graphs: graph %d has %d figures, want %d", i, len(x), q)
		}
	}
	for k, s := range r.Scale {
		if !(s > 0) {
			return fmt.Errorf("training graphs: scale %d is %g", k, s)
		}
	}
	return nil
}
