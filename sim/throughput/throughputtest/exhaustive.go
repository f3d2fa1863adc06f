package throughputtest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph/formats/times"
	"placer/sim/throughput"
)

// Instance returns what Random does, and the instance of it.
func Instance(t testing.TB, rng *rand.Rand, n int) (throughput.Source, *throughput.Instance) {
	t.Helper()
	s, err := Random(rng, n)
	if err != nil {
		t.Fatal(err)
	}
	x, err := throughput.New(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return s, x
}

// Source returns the source of a graph with times, on the machine that its file describes.
func Source(t testing.TB, x *times.Instance) throughput.Source {
	t.Helper()
	m, err := x.Times.Machine()
	if err != nil {
		t.Fatal(err)
	}
	s, err := throughput.FromTable(x.Graph, m, x.Times)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Optimum returns the least of the largest loads of all placements of x's blocks that fit
// and that may, where it is not nil, allows; infinity where there is none.
func Optimum(x *throughput.Instance, may func(block []uint8) bool) float64 {
	best := math.Inf(1)
	All(x.NumBlocks(), x.NumDevices(), func(block []uint8) {
		if may != nil && !may(block) {
			return
		}
		if j := x.Evaluate(block); j.Overflow == 0 {
			best = min(best, j.Seconds)
		}
	})
	return best
}

// All calls f with every placement of n ops on d devices; the slice is f's
// during the call only.
func All(n, d int, f func(device []uint8)) {
	device := make([]uint8, n)
	for {
		f(device)
		k := 0
		for ; k < n; k++ {
			if device[k]++; int(device[k]) < d {
				break
			}
			device[k] = 0
		}
		if k == n {
			return
		}
	}
}
