package transfer

import (
	"fmt"
	"math"
	"slices"
)

// Reach says how far a policy's training graphs extend: their summaries and the
// distance at which a family that was left out lies from the others.
type Reach struct {
	Mean  []float32   `json:"mean"`  // [Q] of the summaries
	Scale []float32   `json:"scale"` // [Q] their deviations
	Known [][]float32 `json:"known"` // [M,Q] standardised summaries of training graphs
	// Limit is the distance from the graphs of the other families within which nine
	// of ten training graphs lie: that far, transfer has been measured.
	Limit float64 `json:"limit"`
}

// mostKnown bounds the summaries that a policy file carries.
const mostKnown = 96

// noticed is a training graph by its number and its summary.
type noticed struct {
	Family  string    `json:"family"`
	Index   int       `json:"index"`
	Summary []float32 `json:"summary"` // [Q]
}

// summary returns the mean of the static columns of s, by time, and their
// deviations, [Q] with Q twice the number of columns.
func (s *Scene) summary() []float32 {
	mean, square := make([]float64, numStatic), make([]float64, numStatic)
	for u, w := range s.own {
		for k, x := range s.static[u*numStatic : (u+1)*numStatic] {
			mean[k] += w / s.total * float64(x)
			square[k] += w / s.total * float64(x) * float64(x)
		}
	}
	out := make([]float32, 0, 2*numStatic)
	for _, m := range mean {
		out = append(out, float32(m))
	}
	for k, q := range square {
		out = append(out, float32(math.Sqrt(max(0, q-mean[k]*mean[k]))))
	}
	return out
}

// reachOf returns the reach of the graphs seen.
func reachOf(graphs []noticed) Reach {
	if len(graphs) == 0 {
		return Reach{}
	}
	q := len(graphs[0].Summary)
	r := Reach{Mean: make([]float32, q), Scale: make([]float32, q)}
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
	var apart []float64 // from the nearest graph of another family
	for i, g := range graphs {
		least := math.Inf(1)
		for j, h := range graphs {
			if g.Family != h.Family {
				least = min(least, distance(all[i], all[j]))
			}
		}
		if !math.IsInf(least, 1) {
			apart = append(apart, least)
		}
	}
	if len(apart) > 0 {
		slices.Sort(apart)
		r.Limit = apart[len(apart)*9/10]
	}
	step := max(1, (len(all)+mostKnown-1)/mostKnown)
	for i := 0; i < len(all); i += step {
		r.Known = append(r.Known, all[i])
	}
	return r
}

func (r *Reach) standard(summary []float32) []float32 {
	x := make([]float32, len(summary))
	for k, v := range summary {
		x[k] = (v - r.Mean[k]) / r.Scale[k]
	}
	return x
}

// distance is the root mean square of the differences.
func distance(a, b []float32) float64 {
	sum := 0.0
	for k := range a {
		d := float64(a[k] - b[k])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(a)))
}

// Distance returns how far w lies from the nearest training graph. Beyond Limit
// the policy is out of its depth. It returns +Inf where nothing is known.
func (r *Reach) Distance(w *View) float64 {
	if len(r.Known) == 0 {
		return math.Inf(1)
	}
	x := r.standard(w.summary)
	least := math.Inf(1)
	for _, y := range r.Known {
		least = min(least, distance(x, y))
	}
	return least
}

func (r *Reach) validate() error {
	q := 2 * numStatic
	if len(r.Known) == 0 {
		return nil
	}
	if len(r.Mean) != q || len(r.Scale) != q || !(r.Limit >= 0) {
		return fmt.Errorf("reach: %d means, %d scales, limit %g; want %d columns", len(r.Mean), len(r.Scale), r.Limit, q)
	}
	for i, x := range r.Known {
		if len(x) != q {
			return fmt.Errorf("reach: graph %d has %d columns, want %d", i, len(x), q)
		}
	}
	for k, s := range r.Scale {
		if !(s > 0) {
			return fmt.Errorf("reach: scale %d is %g", k, s)
		}
	}
	return nil
}
