package search

import (
	"context"
	"fmt"
	"slices"

	"placer/hw"
	"placer/plan"
)

// FewerMethod is the name of the row of a plan that a search on fewer GPUs has found.
const FewerMethod = "fewer-gpus"

// fewer searches on one GPU less, and one less again, down to one, each within the whole
// budget, as a search on that machine would. It leaves out numbers of GPUs whose proven
// bound is no better than what has been found. The best plan, if it is better than those
// of rows, makes a row. It returns too how many evaluations that took.
//
// Hence a search on D GPUs never ends behind one on d < D with the same methods, seed
// and budget: what that came to is the best of the searches on d GPUs and less, each of
// which has been made here or could not have given anything better. A plan for the
// smaller machine is a plan for this one, and takes the same step on it.
func (s *searcher) fewer(ctx context.Context, e plan.Evaluator, rows []*Row) (found *Row, evaluations int) {
	p := s.problem
	gpus, cpu := 0, false
	for _, d := range p.Machine.Devices {
		if d.Kind == hw.GPU {
			gpus++
		} else {
			cpu = true
		}
	}
	best := rows[choose(p.Graph, rows)]
	for d := gpus - 1; d > 0 && ctx.Err() == nil; d-- {
		m, err := p.Machine.Take(d, cpu)
		if err != nil {
			break
		}
		q, err := p.On(m)
		if err != nil {
			continue // nothing fits, or the problem is not about a machine
		}
		if best.Score.Feasible() && q.Bound*(1+tie) >= best.Score.Value {
			continue
		}
		s.announce(Event{Method: FewerMethod, Kind: plan.Search, What: Smaller, Budget: s.c.Budget, Reason: fmt.Sprintf("%d of %d", d, gpus)})
		c := s.c
		c.Fewer = false
		host := Host{Clock: s.host.Clock, Until: s.host.Until, CPU: s.host.CPU}
		r, err := Search(ctx, q, s.methods, c, host)
		if err != nil {
			continue // no method came to a placement
		}
		x := r.Rows[r.Best]
		row := &Row{Method: FewerMethod, Kind: plan.Search, Evaluations: 0, Decision: x.Decision.Clone()}
		for i, v := range row.Device {
			name := m.Devices[v].Name
			row.Device[i] = uint8(slices.IndexFunc(p.Machine.Devices, func(d hw.Device) bool { return d.Name == name }))
		}
		s.judge(row, e)
		evaluations += r.Evaluations + r.OnFewer
		row.Notes = []string{fmt.Sprintf("found by %s on %d of %d GPUs", x.Method, d, gpus)}
		if row.better(best) {
			best, found = row, row
		}
	}
	return found, evaluations
}
