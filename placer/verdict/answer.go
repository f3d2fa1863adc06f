package verdict

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/units"
)

// Answer is the best plan found for the first devices of a machine.
type Answer struct {
	Machine int // index of the machine that was judged
	Devices int // taken
	Used    int // of those: that run an op
	// On is the machine of the devices taken, which Decision is for.
	On *hw.Machine
	plan.Decision
	Method string // that found the plan; for one seeded by another answer, what found that
	Score  plan.Score
	Peak   []units.Bytes // [Devices]
	// AtLeast is how many bytes every plan lacks, proven; Score.Overflow is what this
	// plan does.
	AtLeast units.Bytes
	Bound   float64 // proven lower bound of the step, seconds; 0 where nothing fits
	// AtPeak is the step if every device did nothing but arithmetic at its peak.
	AtPeak      units.Seconds
	Evaluations int
	// Seen are the plans that the methods came to, for the trade between time, memory
	// and devices.
	Seen []Point
}

// Point is a plan as a trade: less is better of all three.
type Point struct {
	Machine int
	Devices int // that run an op
	Step    float64
	Memory  units.Bytes // of the fullest device
	Method  string
}

// used returns how many devices run an op.
func used(device []uint8) (n int) {
	var seen [hw.MaxDevices]bool
	for _, d := range device {
		if !seen[d] {
			seen[d] = true
			n++
		}
	}
	return n
}

// atPeak returns the time of g's arithmetic if all devices of m shared it and ran at the
// peak of its type; products in f32 that are not precise run in tf32 where there are units for it.
func atPeak(g *graph.Graph, m *hw.Machine) (s units.Seconds) {
	rate := func(t graph.DType) (sum units.FLOPsPerSecond) {
		for i := range m.Devices {
			peak := m.Devices[i].Peak
			if p, ok := peak[t.String()]; ok {
				sum += p
			} else {
				sum += peak[graph.F32.String()]
			}
		}
		return sum
	}
	byType := map[graph.DType]units.FLOPsPerSecond{}
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		t := o.DType
		if t == graph.F32 && !o.GEMM.IsZero() && !o.Precise {
			t = graph.TF32
		}
		if _, ok := byType[t]; !ok {
			byType[t] = rate(t)
		}
		s += o.FLOPs.Over(byType[t])
	}
	return s
}

// sortPoints sorts by devices, then by step.
func sortPoints(ps []Point) {
	slices.SortStableFunc(ps, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Devices, b.Devices), cmp.Compare(a.Step, b.Step))
	})
}
