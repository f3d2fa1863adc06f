package sequential

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDeviceNamesDoNotMatter: scores of a device do not depend on the order in
// which devices are listed.
func TestDeviceNamesDoNotMatter(t *testing.T) {
	s := instanceOf(t, small)
	p := policy(t, 16)
	f := &pass{n: p.net}
	f.encode(s)
	r := rand.New(rand.NewPCG(1, 9))
	y := make([]float32, 3*numDeviceFeatures)
	for i := range y {
		y[i] = float32(r.NormFloat64())
	}
	a := slices.Clone(f.forward([]int32{2}, y, nil, 3))
	turned := append(slices.Clone(y[numDeviceFeatures:]), y[:numDeviceFeatures]...)
	b := f.forward([]int32{2}, turned, nil, 3)
	for d := range a {
		if math.Abs(float64(a[(d+1)%3]-b[d])) > 1e-5 {
			t.Errorf("device %d scores %g, want %g", d, b[d], a[(d+1)%3])
		}
	}
}
