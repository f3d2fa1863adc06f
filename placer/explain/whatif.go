package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"placer/baselines/search/anneal"
	"placer/hw"
	"placer/internal/words"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// WhatIf is the step of the plan if the machine were another.
type WhatIf struct {
	Name string
	Step Time
	Gain Time // of the step; negative where it grows, as list scheduling may
	Fits bool
	Note string
}

// shortest is a latency that is as good as none: the simulator wants one above zero.
const shortest units.Seconds = 1e-12

// machineChange makes another machine: all its devices are changed, or all its links.
type machineChange struct {
	name   string
	device func(*hw.Device) // nil: none; changes op times, which a file with times of its own has
	link   func(*hw.Link)   // nil: none; changes nothing on one device
}

// changes are those of which the rows tell.
var changes = []machineChange{
	{name: "links of twice the bandwidth", link: func(l *hw.Link) { l.Bandwidth *= 2 }},
	{name: "links without latency", link: func(l *hw.Link) { l.Latency = shortest }},
	{name: "no launch cost", device: func(d *hw.Device) { d.Launch, d.GraphLaunch = 0, 0 }},
	{name: "twice the memory bandwidth", device: func(d *hw.Device) { d.MemoryBandwidth *= 2 }},
	{name: "twice the arithmetic", device: func(d *hw.Device) {
		d.Peak = maps.Clone(d.Peak)
		for t := range d.Peak {
			d.Peak[t] *= 2
		}
	}},
}

// tells reports whether the step of c can differ.
func (x machineChange) tells(c *Case) bool {
	if x.device != nil && (c.Source.Times != nil || c.Source.Seconds != nil) {
		return false
	}
	return x.link == nil || len(c.Machine.Links) > 0
}

// of returns m changed.
func (x machineChange) of(m *hw.Machine) *hw.Machine {
	n := *m
	n.Devices, n.Links = slices.Clone(m.Devices), slices.Clone(m.Links)
	for d := range n.Devices {
		if x.device != nil {
			x.device(&n.Devices[d])
		}
	}
	for l := range n.Links {
		if x.link != nil {
			x.link(&n.Links[l])
		}
	}
	return &n
}

// whatIf returns the rows, the largest gain first.
func whatIf(ctx context.Context, c *Case, step Time, evaluations int) (rows []WhatIf, err error) {
	for _, x := range changes {
		if !x.tells(c) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := c.simulator(x.of(c.Machine))
		if err != nil {
			return nil, err
		}
		t, fits, err := stepOf(s, c.Plan)
		if err != nil {
			return nil, err
		}
		rows = append(rows, WhatIf{Name: x.name, Step: t, Gain: step - t, Fits: fits})
	}
	if evaluations > 0 && c.Machine.NumDevices() < hw.MaxPlaced {
		row, err := oneMore(ctx, c, step, evaluations)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b WhatIf) int { return cmp.Compare(b.Gain, a.Gain) })
	return rows, nil
}

// stepOf returns the step of p and whether it fits.
func stepOf(s *sim.Simulator, p *plan.Plan) (Time, bool, error) {
	r, err := s.Run(p, sim.Options{})
	var infeasible *sim.Infeasible
	if err != nil && !errors.As(err, &infeasible) {
		return 0, false, err
	}
	return ps(r.Makespan), err == nil, nil
}

// oneMore returns what a twin of the last GPU is worth to a short search from the plan,
// beyond what the same search finds without it.
func oneMore(ctx context.Context, c *Case, step Time, evaluations int) (WhatIf, error) {
	m, of := twin(c.Machine)
	without, _, err := searched(ctx, c, c.Machine, evaluations)
	if err != nil {
		return WhatIf{}, err
	}
	with, fits, err := searched(ctx, c, m, evaluations)
	if err != nil {
		return WhatIf{}, err
	}
	row := WhatIf{Name: "one device more, like " + of, Step: with, Gain: min(step, without) - with, Fits: fits, Note: fmt.Sprintf("a search of %s from the plan", words.Count(evaluations, "evaluation", "evaluations"))}
	if len(c.Machine.Links) == 0 {
		row.Note += "; over a link of 10 GB/s and 10 us, which is assumed"
	}
	if without < step {
		row.Note += fmt.Sprintf("; without the device it takes %v", units.Seconds(without.Seconds()))
	}
	return row, nil
}

// searched returns the best step that annealing from c's plan comes to on m. The error is
// that of ctx where it ends.
func searched(ctx context.Context, c *Case, m *hw.Machine, evaluations int) (Time, bool, error) {
	contention, err := c.Source.Contention(c.Contention)
	if err != nil {
		return 0, false, err
	}
	o := problem.Options{Scheduler: problem.FIFO, Contention: contention.String()}
	o.Tasks = o.DefaultTasks()
	p, err := problem.New(c.Source, m, o)
	if errors.Is(err, problem.ErrInfeasible) {
		s, err := c.simulator(m)
		if err != nil {
			return 0, false, err
		}
		return stepOf(s, c.Plan)
	}
	if err != nil {
		return 0, false, err
	}
	p.Decision = plan.Decision{Priority: c.Plan.Priority, Fusion: c.Plan.Fusion}
	p.Budget = plan.Budget{Evaluations: evaluations}
	out, err := anneal.Placer{From: []plan.Decision{c.Plan.Decision}, Workers: 1}.Place(ctx, &p.Problem)
	if err == nil {
		err = ctx.Err() // its best so far is no answer
	}
	if err != nil {
		return 0, false, err
	}
	best := plan.Plan{Decision: out.Decision.Or(p.Decision)}
	return stepOf(p.Simulator, &best)
}
