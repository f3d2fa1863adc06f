package rollout

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

// ErrTooCoarse is of units among which one fits no device. Finer ones may fit.
var ErrTooCoarse = errors.New("units are too coarse")

// Allowed tells which devices can hold a unit's resident bytes and one op's tensors,
// [U,D]. A unit that fits no device is ErrTooCoarse.
func Allowed(p *plan.Problem, of *unit.Partition) ([]bool, error) {
	devices := p.Machine.Devices
	allowed := make([]bool, 0, of.NumUnits()*len(devices))
	for _, ops := range of.Ops {
		var resident, largest units.Bytes
		for _, i := range ops {
			o := p.Graph.Op(i)
			resident += o.Resident
			largest = max(largest, o.Workspace+outputBytes(p.Graph, i))
		}
		fits := false
		for d := range devices {
			ok := resident+largest <= devices[d].Memory
			allowed = append(allowed, ok)
			fits = fits || ok
		}
		if !fits {
			return nil, fmt.Errorf("%w: that of op %s needs %s, more than any device has", ErrTooCoarse, p.Graph.Op(ops[0]).Name, resident+largest)
		}
	}
	return allowed, nil
}

// outputBytes sums what the outputs of op i occupy.
func outputBytes(g *graph.Graph, i graph.OpID) (n units.Bytes) {
	first, end := g.Outputs(i)
	for t := first; t < end; t++ {
		if x := g.Tensor(t); !x.Resident {
			n += x.Bytes
		}
	}
	return n
}
