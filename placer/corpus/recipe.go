package corpus

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/internal/faults"
	"placer/placer/corpus/families"
	"placer/placer/problem"
	"placer/plan"
)

// Recipe is what a problem is rebuilt from, exactly.
type Recipe struct {
	// Families are those that the graph belongs to: its own first, then those it joins.
	Families []string `json:"families"`
	Net      string   `json:"net"` // the graph, as families.Build takes it
	Machine  Machine  `json:"machine"`
	Tasks    string   `json:"tasks"` // as plan.ParseTasks takes them
}

// Validate reports every fault that can be seen without building the graph.
func (r Recipe) Validate() error {
	var errs faults.List
	errs.If(len(r.Families) == 0, "recipe: no family")
	errs = append(errs, families.Known(r.Families))
	errs.If(r.Net == "", "recipe: no net")
	errs = append(errs, r.Machine.Validate())
	if _, err := plan.ParseTasks(r.Tasks); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Problem rebuilds the problem.
func (r Recipe) Problem() (*problem.Problem, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	g, err := families.Build(r.Net)
	if err != nil {
		return nil, err
	}
	return r.of(g)
}

// of returns the problem of g, which is r's graph.
func (r Recipe) of(g *graph.Graph) (*problem.Problem, error) {
	m, err := r.Machine.Build()
	if err != nil {
		return nil, err
	}
	tasks, err := plan.ParseTasks(r.Tasks)
	if err != nil {
		return nil, err
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{Tasks: tasks})
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", r.Net, m.Name, err)
	}
	return p, nil
}

// Out reports whether the recipe belongs to what is held out.
func (r Recipe) Out(heldOut []string) bool { return families.Out(r.Families, heldOut) }
