package verdict

import (
	"errors"
	"slices"

	"placer/placer/problem"
)

// assemble returns the problem of a, also where nothing can fit: what is missing is then
// what methods make small.
func assemble(s problem.Source, a *Answer) (p *problem.Problem, impossible bool, err error) {
	contention, err := s.Contention("")
	if err != nil {
		return nil, false, err
	}
	var o problem.Options
	o.Tasks = problem.Options{Contention: contention.String()}.DefaultTasks()
	p, err = problem.New(s, a.On, o)
	if !errors.Is(err, problem.ErrInfeasible) {
		return p, false, err
	}
	roomy := *a.On
	roomy.Devices = slices.Clone(a.On.Devices)
	for d := range roomy.Devices {
		roomy.Devices[d].Memory += s.Resident()
	}
	if p, err = problem.New(s, &roomy, o); err != nil {
		return nil, true, err
	}
	if p.Simulator, _, err = problem.Simulator(s, a.On, o); err != nil {
		return nil, true, err
	}
	p.Machine, p.Evaluator, p.Kernels, p.Moves, p.Bound = a.On, p.Simulator, p.Simulator.KernelCosts, p.Simulator.Moves, 0
	return p, true, nil
}
