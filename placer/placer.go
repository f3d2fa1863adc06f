package placer

import (
	"context"

	"placer/graph/formats"
	"placer/graph/formats/onnx"
	"placer/hw"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
)

// Read returns the problem to place the graph in file, of any form that
// graph/formats knows, on m. Op times that the file brings are used.
func Read(file string, m *hw.Machine, o problem.Options) (*problem.Problem, error) {
	f, err := formats.ReadFile(file, onnx.Default())
	if err != nil {
		return nil, err
	}
	return problem.New(problem.Source{Graph: f.Graph, Times: f.Times, Seconds: f.Seconds}, m, o)
}

// Place searches p with every method within evaluations of the searches and the
// policies together, on p's machine and on fewer of its GPUs (search.Config.Fewer), and
// returns the best plan and its step. One seed gives one plan.
// An error that is no *sim.Infeasible says that there is no plan.
func Place(ctx context.Context, p *problem.Problem, evaluations int, seed uint64) (*plan.Plan, *sim.Result, error) {
	c := search.Default()
	c.Budget, c.Seed, c.Fewer = plan.Budget{Evaluations: evaluations}, seed, true
	of := methods.Of(p)
	ms := methods.ByDefault(of, methods.ForSearch(of, methods.Default()))
	still := func() float64 { return 0 } // no budget in seconds: no clock
	found, err := search.Search(ctx, p, ms, c, search.Host{Clock: still, CPU: still})
	if err != nil {
		return nil, nil, err
	}
	best := &found.Rows[found.Best]
	d := &plan.Plan{Graph: p.Graph.Hash(), Machine: p.Machine.Name, Method: best.Method, Decision: best.Decision}
	r, err := Judge(p, d)
	return d, r, err
}

// Judge simulates d: its step time, the peak memory of every device, and the critical
// path. The error is a *sim.Infeasible, beside the result, where d does not fit.
func Judge(p *problem.Problem, d *plan.Plan) (*sim.Result, error) {
	if err := d.Check(p.Graph, p.Machine); err != nil {
		return nil, err
	}
	return p.Simulator.Clone().(*sim.Simulator).Run(d, sim.Options{})
}
