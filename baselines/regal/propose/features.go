package propose

import (
	"context"
	"math/rand/v2"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/sched"
)

// FeatureEvaluations is what the paper spends on the BRKGA columns.
const FeatureEvaluations = 400

// FeatureNames returns the names of the columns for d devices, [F].
func FeatureNames(d int) []string {
	names := []string{"inputs", "outputs", "internal", "most memory", "predecessors' time", "successors' time", "time", "most time"}
	for range d {
		names = append(names, "share on device")
	}
	return append(names, "place in schedule")
}

// Features are what REGAL's policies read of each op (Paliwal et al., ICLR 2020, A.2),
// a row of F in the problem's numbering: sums of tensor sizes, times of neighbours, and
// what a short BRKGA with uniform distributions thinks of the op. F = 9 + D; with two
// devices the paper's 11.
type Features struct {
	N, F        int
	V           []float32 // [N,F]
	Evaluations int       // spent
}

// NewFeatures computes the features of p under objective o. Sizes are in shares of the
// graph's largest, times of its largest op time; in the peak-memory task the
// columns of time are zero. pin is held on the first device; the BRKGA columns
// are means over the last population of a run of the given evaluations.
func NewFeatures(ctx context.Context, p *sched.Problem, o sched.Objective, pin int32, evaluations int, r *rand.Rand) *Features {
	n, d := p.N(), p.D()
	t := &Features{N: n, F: len(FeatureNames(d)), Evaluations: evaluations}
	t.V = make([]float32, n*t.F)
	largest, longest := 1.0, 0.0
	heavy, slow := int32(0), int32(0)
	for i := range int32(n) {
		largest = max(largest, float64(p.Internal(i)))
		for x, end := p.Outputs(i); x < end; x++ {
			largest = max(largest, float64(p.Size(x)))
		}
		if p.Memory(i)+p.Internal(i) > p.Memory(heavy)+p.Internal(heavy) {
			heavy = i
		}
		if p.Time()[i] > p.Time()[slow] {
			slow = i
		}
		longest = max(longest, p.Time()[i])
	}
	timed := o == sched.RunTime && longest > 0
	for i := range int32(n) {
		row := t.V[int(i)*t.F:]
		for _, x := range p.Inputs(i) {
			row[0] += float32(float64(p.Size(x)) / largest)
			if timed {
				row[4] += float32(p.Time()[p.Producer(x)] / longest)
			}
		}
		for x, end := p.Outputs(i); x < end; x++ {
			row[1] += float32(float64(p.Size(x)) / largest)
			for _, v := range p.Consumers(x) {
				if timed {
					row[5] += float32(p.Time()[v] / longest)
				}
			}
		}
		row[2] = float32(float64(p.Internal(i)) / largest)
		if timed {
			row[6] = float32(p.Time()[i] / longest)
		}
	}
	t.V[int(heavy)*t.F+3] = 1
	if timed {
		t.V[int(slow)*t.F+7] = 1
	}
	t.search(ctx, p, o, pin, r)
	return t
}

// search fills the BRKGA columns.
func (t *Features) search(ctx context.Context, p *sched.Problem, o sched.Objective, pin int32, r *rand.Rand) {
	e := sched.NewEvaluator(p, o)
	e.Pin(pin)
	found := brkga.Run(ctx, e, brkga.Uniform{}, brkga.Default(), brkga.Budget{Evaluations: t.Evaluations}, r)
	share := 1 / float32(len(found.Population))
	for _, keys := range found.Population {
		e.Decode(keys)
		for i, d := range e.Device() {
			t.V[i*t.F+8+int(d)] += share
		}
		place := 0
		for _, x := range e.Sequence() {
			if int(x) < t.N {
				t.V[int(x)*t.F+t.F-1] += share * float32(place) / float32(t.N)
				place++
			}
		}
	}
}
