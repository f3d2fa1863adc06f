package gnn

import "testing"

// TestStreamsDiffer: no two purposes of a step, samples of which there may be more than a byte
// counts, draw the same numbers.
func TestStreamsDiffer(t *testing.T) {
	x := &Trainer{seed: 1}
	drawn := map[uint64]int{}
	for purpose := range streamSamples + 1000 {
		n := x.stream(3, 2, purpose).Uint64()
		if before, ok := drawn[n]; ok {
			t.Fatalf("purposes %d and %d draw the same", before, purpose)
		}
		drawn[n] = purpose
	}
}
