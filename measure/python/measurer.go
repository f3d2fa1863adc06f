package python

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"placer/graph"
	"placer/hw"
	"placer/internal/words"
	"placer/plan"
	"placer/sim"
	"placer/sim/schedule"
)

// Measurer measures placements of one graph by one process, one at a time. It
// implements session.Measurer.
type Measurer struct {
	mu        sync.Mutex
	process   *Process
	graph     *graph.Graph
	machine   *hw.Machine
	simulator *sim.Simulator
	request   Request
}

// NewMeasurer returns a measurer of steps of g on m by p, under r. The simulator, of
// which it has a clone, gives the order of ops.
func NewMeasurer(p *Process, g *graph.Graph, m *hw.Machine, s *sim.Simulator, r Request) *Measurer {
	return &Measurer{process: p, graph: g, machine: m, simulator: s.Clone().(*sim.Simulator), request: r}
}

// Parallel is as session.Measurer says.
func (r *Measurer) Parallel() int { return 1 }

// Measure is as session.Measurer says. The order on every device is that of the
// simulated step. A placement that does not fit the machine's devices is not run;
// one whose results are not those of one device, bit for bit, is not measured.
func (r *Measurer) Measure(ctx context.Context, d plan.Decision) (plan.Score, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return plan.Score{}, err
	}
	p := &plan.Plan{Decision: d}
	predicted, err := r.simulator.Run(p, sim.Options{Trace: true})
	var over *sim.Infeasible
	if errors.As(err, &over) {
		return r.simulator.Evaluate(plan.Decision{Device: d.Device, Priority: d.Priority, Fusion: d.Fusion}), nil
	}
	if err != nil {
		return plan.Score{}, err
	}
	a, err := r.process.Measure(schedule.New(r.graph, r.machine, p, predicted), r.request)
	if err != nil {
		return plan.Score{}, err
	}
	if a.Equal != nil && !*a.Equal {
		return plan.Score{}, errors.New(r.process.runtime.Package + ": the results are not those of one device")
	}
	return plan.Score{Value: a.Step}, nil
}

// Runs reports why steps of g on m cannot be run: devices that the process lacks, or
// another program.
func (r *Ready) Runs(g *graph.Graph, m *hw.Machine) error {
	for i := range m.Devices {
		if name := m.Devices[i].Name; !slices.Contains(r.Devices, name) {
			return r.lacks(name, "machine "+m.Name+" has it")
		}
	}
	if r.Ops != g.NumOps() {
		return fmt.Errorf("graph %s has %s, the program beside it %d: capture it again", g.Name(), words.Count(g.NumOps(), "op", "ops"), r.Ops)
	}
	return nil
}

// Identity names what measurements depend on beside machine and settings.
func (r *Ready) Identity() string {
	host := r.Host
	if host == "" {
		host = runtime.GOARCH
	}
	id := fmt.Sprintf("%s %s, %s, %d cores", r.Runtime, r.Version, host, len(r.Devices)-len(r.GPUs))
	if len(r.GPUs) > 0 {
		id += ", " + strings.Join(r.GPUs, ", ")
	}
	return id
}
