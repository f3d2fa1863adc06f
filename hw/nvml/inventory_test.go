package nvml

import "testing"

// TestNVLinkRate: data sheets give both directions of all links together: P100 160
// GB/s over 4, V100 300 over 6, A100 600 over 12, H100 900 over 18, B200 1800 over
// 18, A6000 112.5 over 4.
func TestNVLinkRate(t *testing.T) {
	for name, c := range map[string]struct {
		major, minor, links int
		both                float64
	}{"P100": {6, 0, 4, 160e9}, "V100": {7, 0, 6, 300e9}, "A100": {8, 0, 12, 600e9}, "A6000": {8, 6, 4, 112.5e9}, "H100": {9, 0, 18, 900e9}, "B200": {10, 0, 18, 1800e9}} {
		g := gpu{Major: c.major, Minor: c.minor}
		if got := 2 * float64(c.links) * g.nvlinkRate(); got < 0.99*c.both || got > 1.01*c.both {
			t.Errorf("%s: %.4g B/s over %d links, want %.4g", name, got, c.links, c.both)
		}
	}
}
