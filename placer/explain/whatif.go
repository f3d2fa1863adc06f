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

// whatIf returns the rows, the largest gain first.
func whatIf(ctx context.Context, c *Case, step Time, evaluations int) (rows []WhatIf, err error) {
	for _, x := range []struct {
		name      string
		roofline  bool // changes op times, which a file with times of its own has
		transfers bool // changes nothing on one device
		change    func(d *hw.Device, l *hw.Link)
	}{
		{"links of twice the bandwidth", false, true, func(_ *hw.Device, l *hw.Link) {
			if l != nil {
				l.Bandwidth *= 2
			}
		}},
		{"links without latency", false, true, func(_ *hw.Device, l *hw.Link) {
			if l != nil {
				l.Latency = shortest
			}
		}},
		{"no launch cost", true, false, func(d *hw.Device, _ *hw.Link) {
			if d != nil {
				d.Launch, d.GraphLaunch = 0, 0
			}
		}},
		{"twice the memory bandwidth", true, false, func(d *hw.Device, _ *hw.Link) {
			if d != nil {
				d.MemoryBandwidth *= 2
			}
		}},
		{"twice the arithmetic", true, false, func(d *hw.Device, _ *hw.Link) {
			if d != nil {
				d.Peak = maps.Clone(d.Peak)
				for t := range d.Peak {
					d.Peak[t] *= 2
				}
			}
		}},
	} {
		if x.roofline && (c.Source.Times != nil || c.Source.Seconds != nil) || x.transfers && len(c.Machine.Links) == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m := changed(c.Machine, x.change)
		s, err := c.simulator(m)
		if err != nil {
			return nil, err
		}
		t, fits, err := stepOf(s, c.Plan)
		if err != nil {
			return nil, err
		}
		rows = append(rows, WhatIf{Name: x.name, Step: t, Gain: step - t, Fits: fits})
	}
	if evaluations > 0 && c.Machine.NumDevices() < hw.MaxDevices {
		row, err := oneMore(ctx, c, step, evaluations)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b WhatIf) int { return cmp.Compare(b.Gain, a.Gain) })
	return rows, nil
}

// changed returns m with each device and each link changed.
func changed(m *hw.Machine, change func(*hw.Device, *hw.Link)) *hw.Machine {
	n := *m
	n.Devices, n.Links = slices.Clone(m.Devices), slices.Clone(m.Links)
	for d := range n.Devices {
		change(&n.Devices[d], nil)
	}
	for l := range n.Links {
		change(nil, &n.Links[l])
	}
	return &n
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
	row := WhatIf{Name: "one device more, like " + of, Step: with, Gain: min(step, without) - with, Fits: fits, Note: fmt.Sprintf("a search of %d evaluations from the plan", evaluations)}
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

// twin returns m with another device like its last GPU (its last device, where it has
// none), and the name of that: the links of the new device are its own, each like that
// of its model; between the two they are like those between it and the first other
// device.
func twin(m *hw.Machine) (*hw.Machine, string) {
	d := len(m.Devices)
	of := d - 1
	for k := range m.Devices {
		if m.Devices[k].Kind == hw.GPU {
			of = k
		}
	}
	n := *m
	n.Devices, n.Links = slices.Clone(m.Devices), slices.Clone(m.Links)
	v := m.Devices[of]
	v.Name += " twin"
	n.Devices = append(n.Devices, v)
	// Links of routes from and to the model that it alone is at the end of are copied;
	// shared ones stay shared.
	own := map[int32]int32{}
	copied := func(route []int32, far int) []int32 {
		r := slices.Clone(route)
		for k, l := range r {
			if !exclusive(m, l, of) || k == far && len(r) > 1 {
				continue // far is the other device's end of the route
			}
			to, ok := own[l]
			if !ok {
				to = int32(len(n.Links))
				own[l] = to
				x := m.Links[l]
				x.Name += " twin"
				n.Links = append(n.Links, x)
			}
			r[k] = to
		}
		return r
	}
	n.Routes = make([][]int32, 0, (d+1)*(d+1))
	for s := range d + 1 {
		for t := range d + 1 {
			switch {
			case s == t:
				n.Routes = append(n.Routes, nil)
			case s < d && t < d:
				n.Routes = append(n.Routes, m.Route(s, t))
			case s == d && t != of:
				n.Routes = append(n.Routes, copied(m.Route(of, t), len(m.Route(of, t))-1))
			case t == d && s != of:
				n.Routes = append(n.Routes, copied(m.Route(s, of), 0))
			default:
				n.Routes = append(n.Routes, pairLink(&n, m, of, s == d))
			}
		}
	}
	return &n, m.Devices[of].Name
}

// exclusive reports whether link l is used by routes from or to device d alone.
func exclusive(m *hw.Machine, l int32, d int) bool {
	for s := range m.Devices {
		for t := range m.Devices {
			if s != d && t != d && slices.Contains(m.Route(s, t), l) {
				return false
			}
		}
	}
	return true
}

// pairLink adds to n a link between device of and its twin, from the twin or to it, and
// returns the route.
func pairLink(n, m *hw.Machine, of int, fromTwin bool) []int32 {
	l := hw.Link{Bandwidth: 10e9, Latency: 1e-5, Source: "assumed: a machine of one device has no links"}
	if other := slices.IndexFunc(m.Devices, func(e hw.Device) bool { return e.Name != m.Devices[of].Name && e.Kind == m.Devices[of].Kind }); other >= 0 {
		l.Latency, l.Bandwidth = m.Transfer(of, other)
		l.EndCosts = m.EndCosts(of, other)
	} else if len(m.Devices) > 1 {
		other := (of + 1) % len(m.Devices)
		l.Latency, l.Bandwidth = m.Transfer(of, other)
		l.EndCosts = m.EndCosts(of, other)
	}
	l.Name = m.Devices[of].Name + ">twin"
	if fromTwin {
		l.Name = "twin>" + m.Devices[of].Name
	}
	n.Links = append(n.Links, l)
	return []int32{int32(len(n.Links) - 1)}
}
