package brkga

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Uniform proposes every key uniformly in [0,1), to 24 bits.
type Uniform struct{}

// Sample implements Distributions.
func (Uniform) Sample(r *rand.Rand, keys []float32) {
	for i := 0; i < len(keys); i += 2 {
		bits := r.Uint64()
		keys[i] = unit(bits >> 40)
		if i+1 < len(keys) {
			keys[i+1] = unit(bits & (1<<24 - 1))
		}
	}
}

func unit(bits uint64) float32 { return float32(bits) * (1.0 / (1 << 24)) }

// Beta proposes key i by a beta distribution of its own, for the first len(Keys)
// keys, and the rest uniformly: REGAL leaves the priorities of transfers so.
type Beta struct{ Keys []Shape }

// Shape is a beta distribution; Alpha = Beta = 1 is uniform.
type Shape struct{ Alpha, Beta float64 }

// Sample implements Distributions.
func (b Beta) Sample(r *rand.Rand, keys []float32) {
	if len(b.Keys) > len(keys) {
		panic(fmt.Sprintf("brkga: %d beta distributions for %d keys", len(b.Keys), len(keys)))
	}
	for i, s := range b.Keys {
		if s == (Shape{1, 1}) {
			keys[i] = unit(r.Uint64() >> 40)
			continue
		}
		x := distuv.Beta{Alpha: s.Alpha, Beta: s.Beta, Src: r}.Rand()
		if math.IsNaN(x) { // both gamma numbers are too small for a float: the limit is a coin
			x = 0
			if r.Float64()*(s.Alpha+s.Beta) < s.Alpha {
				x = 1
			}
		}
		keys[i] = float32(x)
	}
	Uniform{}.Sample(r, keys[len(b.Keys):])
}

// Quantised returns the beta distribution of action (m, v), each in 0..k-1 (A.6):
// mean (m+1)/(k+1), variance mean(1-mean)(v+1)/(k+1).
func Quantised(m, v, k int) Shape {
	if k < 2 || m < 0 || m >= k || v < 0 || v >= k {
		panic(fmt.Sprintf("brkga: action %d, %d of %d", m, v, k))
	}
	mean := float64(m+1) / float64(k+1)
	variance := mean * (1 - mean) * float64(v+1) / float64(k+1)
	beta := mean*(1-mean)*(1-mean)/variance - 1 + mean
	return Shape{Alpha: beta * mean / (1 - mean), Beta: beta}
}

// QuantisedBias returns the elite bias of action c in 0..k-1 (A.6): it lies in
// (0.5, 1).
func QuantisedBias(c, k int) float64 { return 0.5 * (1 + float64(c+1)/float64(k+1)) }
