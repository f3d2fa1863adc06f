package sequential

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDistribution: a training graph lies at no distance, another family's within the
// limit or not as leave-one-family-out says, and a strange one beyond.
func TestDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var seen []trainingGraph
	for f := range 3 {
		for i := range 20 {
			x := make([]float32, 2*numUnitFeatures)
			for k := range x {
				x[k] = 10 + float32(f)/4 + float32(r.NormFloat64())/4
			}
			seen = append(seen, trainingGraph{string(rune('a' + f)), i, x})
		}
	}
	known := distributionOf(seen)
	if err := known.validate(); err != nil {
		t.Fatal(err)
	}
	w, learned := views(t, small)
	far := known.distance(w.summary())
	if far <= known.Limit {
		t.Errorf("a graph unlike all lies at %g, within %g", far, known.Limit)
	}
	near := distributionOf(append(seen, trainingGraph{"d", 0, learned.instance(atCells).summary()}))
	if d := near.distance(w.summary()); d > 1e-6 {
		t.Errorf("a training graph lies at distance %g", d)
	}
	var nothing distribution
	if !math.IsInf(nothing.distance(w.summary()), 1) {
		t.Error("with nothing known, a graph is near")
	}
}
