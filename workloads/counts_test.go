package workloads

import (
	"math"
	"testing"

	"placer/graph"
)

// kept are the graphs that tests share: they do not change.
var kept = map[string]*graph.Graph{}

func built(t testing.TB, name string) *graph.Graph {
	t.Helper()
	if kept[name] == nil {
		kept[name] = fresh(t, name)
	}
	return kept[name]
}

func fresh(t testing.TB, name string) *graph.Graph {
	t.Helper()
	g, err := Build(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestPublishedOps compares op counts with those of GDP (section 6.3), which GO
// repeats.
func TestPublishedOps(t *testing.T) {
	seen := 0
	for _, s := range List() {
		if s.PublishedOps == 0 {
			continue
		}
		seen++
		n := built(t, s.Name).NumOps()
		off := float64(n)/float64(s.PublishedOps) - 1
		t.Logf("%-12s %6d ops, published %6d, %+.1f%%", s.Name, n, s.PublishedOps, 100*off)
		if math.Abs(off) > 0.10 {
			t.Errorf("%s has %d ops, published %d: %+.1f%%, want within 10%%", s.Name, n, s.PublishedOps, 100*off)
		}
	}
	if seen != 9 {
		t.Errorf("%d workloads have a published count, want 9", seen)
	}
}

// TestGrowth checks how counts grow with the layers: the published ones lie on
// lines.
func TestGrowth(t *testing.T) {
	count := func(name string) float64 { return float64(built(t, name).NumOps()) }
	cases := []struct {
		what            string
		got, want, slip float64
	}{
		{"gnmt: ops per layer of encoder and decoder, 2 to 4", (count("gnmt4") - count("gnmt2")) / 2, 9278, 0.1},
		{"gnmt: ops per layer of encoder and decoder, 4 to 8", (count("gnmt8") - count("gnmt4")) / 4, 9278, 0.1},
		{"wavenet: ops per stack", (count("wavenet10") - count("wavenet5")) / 5, 828.4, 0.1},
		// "About in proportion to layers": between 3 and 4 times from 2 to 8.
		{"rnnlm: 8 layers over 2", count("rnnlm8") / count("rnnlm2"), 3.5, 0.15},
		{"trfxl: 8 layers over 2", count("trfxl8") / count("trfxl2"), 3.5, 0.15},
	}
	for _, c := range cases {
		if off := c.got/c.want - 1; math.Abs(off) > c.slip {
			t.Errorf("%s: %.2f, want %.2f within %.0f%%", c.what, c.got, c.want, 100*c.slip)
		}
	}
}

// TestInceptionWithoutInitializers checks the count that docs/workloads.md states.
func TestInceptionWithoutInitializers(t *testing.T) {
	c := newInception(64)
	c.train.InitOps = false
	g, err := build(c, "inception")
	if err != nil {
		t.Fatal(err)
	}
	if n := g.NumOps(); n != 20274 {
		t.Errorf("%d ops without initializers, want 20,274", n)
	}
}
