package corpus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/graph/unit"
	"placer/placer/corpus/families"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
)

// size bounds a problem.
type size struct{ ops, cells int }

// A problem is of a size at which the search of a label comes far, but for one in six,
// and for families whose members are all larger.
var (
	small = size{3200, 650}
	large = size{12000, 2500}
)

// Draws of a problem before larger and indivisible ones count too, and before there is
// none.
const (
	patience = 10
	tries    = 200
)

// A problem is divisible where it has so many cells, and the proven bound leaves so much
// of the step on one device.
const (
	fewestCells = 40
	mostBound   = 0.75
)

// Draw returns problem index under a seed: the families take turns, and the first draw of
// the family that is small enough, divisible and may fit its machine counts.
func Draw(ctx context.Context, seed uint64, index int) (Recipe, *problem.Problem, error) {
	r := rand.New(rand.NewPCG(plan.StreamSeed(seed, fmt.Sprintf("corpus problem %d", index)), 0))
	all := families.All()
	f := all[index%len(all)]
	limit := small
	if r.IntN(6) == 0 {
		limit = large
	}
	for try := range tries {
		if err := ctx.Err(); err != nil {
			return Recipe{}, nil, err
		}
		if try == patience {
			limit = large
		}
		x, p, err := drawOnce(r, f, limit)
		if err != nil {
			return x, nil, err
		}
		if p != nil && (try >= patience || divisible(p)) {
			return x, p, nil
		}
	}
	return Recipe{}, nil, fmt.Errorf("problem %d: none of %d members of %s is small enough and may fit", index, tries, f.Name)
}

// drawOnce draws a member of f; the problem is nil where it is too large or cannot fit.
func drawOnce(r *rand.Rand, f families.Family, limit size) (x Recipe, p *problem.Problem, err error) {
	x.Net, x.Families = f.Draw(r)
	if name, ok := families.ForInference(x.Net); ok && r.IntN(4) == 0 {
		x.Net = name
	}
	x.Machine, x.Tasks = drawMachine(r), plan.AllTasks.String()
	memory := 0.0
	if r.IntN(4) == 0 {
		memory = 1.25 + 1.25*r.Float64()
	}
	g, err := families.Build(x.Net)
	if err != nil || g.NumOps() > limit.ops {
		return x, nil, err
	}
	if p, err = x.of(g); err == nil && memory > 0 {
		x.Machine.Memory = binding(p, memory)
		p, err = x.of(g)
	}
	switch {
	case errors.Is(err, problem.ErrInfeasible):
		return x, nil, nil
	case err != nil:
		return x, nil, err
	case p.Units.Levels[unit.Cell].NumUnits() > limit.cells:
		return x, nil, nil
	}
	return x, p, nil
}

// divisible reports whether there is something to win by a second device.
func divisible(p *problem.Problem) bool {
	bound := p.Bound
	if p.UnfusedBound > 0 {
		bound = p.UnfusedBound
	}
	one := p.Evaluate(make([]uint8, p.Graph.NumOps()))
	return p.Units.Levels[unit.Cell].NumUnits() >= fewestCells && bound <= mostBound*one.Value
}

// binding returns the memory of a device with which all devices together have factor
// times what one device would need for the whole step.
func binding(p *problem.Problem, factor float64) units.Bytes {
	peak := p.Peak(plan.Decision{Device: make([]uint8, p.Graph.NumOps()), Priority: p.Priority})
	return max(1, units.Bytes(factor*float64(peak[0])/float64(p.Machine.NumDevices())))
}
