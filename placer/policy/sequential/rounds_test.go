package sequential

import (
	"math"
	"slices"
	"testing"

	"placer/plan"
)

// TestPace: rounds share out a budget in seconds as time passes and never take
// more than the configuration says.
func TestPace(t *testing.T) {
	const firstSamples, fewest = 64, 16 // of tuneSettings
	now := 0.0
	x := pace{clock: func() float64 { return now }, budget: plan.Budget{Seconds: 100}, rounds: rounds{tuneSettings: DefaultTune().settings(), base: 512, early: 512, late: 512}}
	x.Steps = 10
	s := &TuneState{}
	now = 10 // of preparation
	if k := x.samples(s); k != firstSamples {
		t.Fatalf("first round of %d samples, want %d", k, firstSamples)
	}
	s.Step, s.Evaluations = 1, firstSamples
	now += 0.1 * firstSamples // a tenth of a second each
	if k, want := x.samples(s), int((100-now)/9/0.1+1e-6); k != want {
		t.Errorf("%d samples, want %d", k, want)
	}
	now = 10 + 0.001*firstSamples
	if k := x.samples(s); k != 512 {
		t.Errorf("%d samples of quick evaluations, want 512", k)
	}
	now = 99.9
	if k := x.samples(s); k != fewest {
		t.Errorf("%d samples at the end, want %d", k, fewest)
	}
	now = 100
	if k := x.samples(s); k != 0 {
		t.Errorf("%d samples behind the end", k)
	}
}

// TestLevels: a run goes from the level that it began with to cells; its first
// step, of every level, comes on top.
func TestLevels(t *testing.T) {
	c := DefaultTune()
	for i, want := range [][]int{{49}, {40, 9}, {36, 8, 5}, atTimeSteps: {31, 0, 0, 18}} {
		start := level(i)
		got, last := make([]int, start+1), start
		for k := range c.Steps {
			l := c.settings().level(k, start)
			if l > last {
				t.Fatalf("from level %d, step %d goes back to %d", start, k, l)
			}
			if k > 0 && !within(l, 0) || within(start, l) != (l == start || l < start && (l == 0 || start != atTimeSteps)) {
				t.Errorf("level %d within %d: %v", start, l, within(start, l))
			}
			last = l
			got[l]++
		}
		if !slices.Equal(got, want) {
			t.Errorf("from level %d: %v steps of each, want %v", start, got, want)
		}
	}
}

// Steps are larger where cells and devices make many logits, and on large graphs
// levels begin with more of them.
func TestManyLogitsLearnFaster(t *testing.T) {
	c := DefaultTune().settings()
	most := mostUnits(c)
	for _, x := range []struct {
		ops, units, devices int
		times               int
	}{
		{10_000, most, 8, 1},
		{10_000, most + 1, 8, 2},
		{c.largeGraph + 1, most, 8, 1},
		{c.largeGraph + 1, most + 1, 8, 2},
		{9697, 890, 4, 1},    // amoebanet
		{10_257, 969, 8, 2},  // trfxl8
		{46_004, 1382, 4, 2}, // gnmt4
		{81_892, 2350, 8, 2}, // gnmt8
	} {
		r := c.rounds(x.ops, x.units, x.devices)
		if r.fits != c.Fits*x.times || r.rate != c.Rate*float64(x.times) {
			t.Errorf("%d ops, %d units, %d devices: %d steps at rate %g, want %d times %d at %g", x.ops, x.units, x.devices, r.fits, r.rate, x.times, c.Fits, c.Rate)
		}
		if more := x.times > 1 && x.ops > c.largeGraph; more != (r.opening > c.openingFits) {
			t.Errorf("%d ops, %d units, %d devices: a level begins with %d steps", x.ops, x.units, x.devices, r.opening)
		}
	}
}

// mostUnits returns the most, on eight devices, that rounds of c converge on as they
// are.
func mostUnits(c *tuneSettings) int { return int(math.Round(1 / c.strays(1, 8))) }

// Logits lead at the end as strays says: fitted to an elite that agrees, as in
// logits.fit, they leave the other devices the chance that it counts.
func TestStrays(t *testing.T) {
	c := DefaultTune().settings()
	for _, d := range []int{2, 4, 8} {
		z, stray := 0.0, 0.0 // of the elite's device over the others
		for range c.Steps * c.Fits {
			each := 1 / (math.Exp(z) + float64(d-1))
			stray = each * float64(d-1)
			z += c.Rate * (stray + each)
		}
		if want := c.strays(1, d); math.Abs(stray/want-1) > 0.02 {
			t.Errorf("%d devices: the elite's is left with a chance of %g, want %g", d, stray, want)
		}
	}
}

// Rounds grow where a graph has five minutes, and shrink again where an evaluation
// takes long.
func TestSamplesOfARound(t *testing.T) {
	c := DefaultTune().settings()
	for _, x := range []struct {
		ops, units, devices int
		base, early, late   int
	}{
		{2835, 243, 2, 256, 128, 256},
		{c.smallGraph, 8 * mostUnits(c), 8, 256, 512, 512},
		{c.smallGraph + 1, mostUnits(c), 8, 256, 512, 512},
		{10_257, 969, 8, 1024, 2048, 2048}, // trfxl8
		{46_004, 1382, 4, 512, 512, 512},   // gnmt4
		{81_892, 2350, 8, 256, 512, 512},   // gnmt8
		{4 * c.hugeGraph, 2350, 8, 128, 256, 256},
	} {
		if r := c.rounds(x.ops, x.units, x.devices); r.base != x.base || r.early != x.early || r.late != x.late {
			t.Errorf("%d ops, %d units, %d devices: base %d, %d early, %d late, want %d, %d, %d", x.ops, x.units, x.devices, r.base, r.early, r.late, x.base, x.early, x.late)
		}
	}
	c.Samples = 64
	if r := c.rounds(81_892, 2350, 8); r.base != 64 {
		t.Errorf("base %d, want the 64 that are asked for", r.base)
	}
}
