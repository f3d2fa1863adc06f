package problem

import (
	"placer/plan"
	"placer/sim"
)

// DefaultTasks returns what a search decides on where nothing is asked for: all
// tasks, or placement alone where there is nothing else to decide (another objective
// than the step) or no way to judge it (transfers that are said never to wait).
func (o Options) DefaultTasks() plan.Tasks {
	k, err := sim.ParseContention(o.Contention)
	if o.Objective.Normal() != plan.Step || err == nil && k == sim.Uncontended {
		return plan.Place
	}
	return plan.AllTasks
}
