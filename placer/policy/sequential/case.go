package sequential

import (
	"math/rand/v2"

	"placer/hw"
	"placer/placer/corpus/families"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
)

// Case is a problem by name.
type Case struct {
	Workload string // the graph, as families.Build takes it
	GPU      string // the machine, of Devices of these, as hw.Take takes it
	Devices  int
	// Bandwidth is a factor of all links' bandwidths; 0 leaves them as they are.
	Bandwidth float64
}

// Problem builds the case: its graph, machine, units and simulator. It reports a workload or a
// machine that there is not.
func (c Case) Problem() (*plan.Problem, error) {
	g, err := families.Build(c.Workload)
	if err != nil {
		return nil, err
	}
	m, err := hw.Take(c.GPU, c.Devices, false)
	if err != nil {
		return nil, err
	}
	if c.Bandwidth > 0 {
		for i := range m.Links {
			m.Links[i].Bandwidth *= units.BytesPerSecond(c.Bandwidth)
		}
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		return nil, err
	}
	p.Units = p.Units.WithoutPartialGradients() // which training does not know (see NewFeatures)
	return &p.Problem, nil
}

// drawCase returns a random member of f on a random machine.
func drawCase(f families.Family, r *rand.Rand) Case {
	name, _ := f.Draw(r)
	c := Case{Workload: name, GPU: "p100", Devices: []int{2, 2, 4, 4, 8}[r.IntN(5)]}
	if x := r.IntN(10); x < 3 {
		c.GPU = []string{"a100", "h100", "v100"}[x]
	}
	c.Bandwidth = []float64{1, 1, 1, 0.5, 2, 4}[r.IntN(6)]
	return c
}
