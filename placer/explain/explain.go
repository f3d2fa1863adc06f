package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Case is a plan to explain.
type Case struct {
	Source  problem.Source
	Machine *hw.Machine
	Plan    *plan.Plan
	// Contention is how transfers share links, as problem.Options has it.
	Contention string
}

// simulator returns the simulator of c's graph on m; the plan brings its priorities.
func (c *Case) simulator(m *hw.Machine) (*sim.Simulator, error) {
	s, _, err := problem.Simulator(c.Source, m, problem.Options{Scheduler: problem.FIFO, Contention: c.Contention})
	return s, err
}

// run returns the step of the plan with its trace. A plan that does not fit has one all
// the same.
func (c *Case) run() (*sim.Result, *sim.Infeasible, error) {
	s, err := c.simulator(c.Machine)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.Run(c.Plan, sim.Options{Trace: true})
	var infeasible *sim.Infeasible
	if err != nil && !errors.As(err, &infeasible) {
		return nil, nil, err
	}
	return r, infeasible, nil
}

// Part is a part of the critical path.
type Part struct {
	Name              string
	Compute, Transfer Time
	Steps             int // ops and transfers
}

// Total returns all of the part's time.
func (p Part) Total() Time { return p.Compute + p.Transfer }

// Device says what one device does in a step.
type Device struct {
	Name     string
	Ops      int
	Busy     Time
	OnPath   Time // of the critical path: that it computes
	CanWait  Time // of Busy: in ops that could each end later by a hundredth of the step
	PeakFree units.Bytes
}

// Link says what one link does in a step.
type Link struct {
	Name   string
	Bytes  units.Bytes
	Busy   Time
	OnPath Time // of the critical path: transfers that wait for it or hold it first
}

// Explanation is why a step takes what it takes. Layers and Kinds each sum to Step.
type Explanation struct {
	Step       Time
	Infeasible *sim.Infeasible // nil where the plan fits
	// Layers are the parts by layer of the model or by module, in the order of the
	// model; transfers belong to the layer that sends.
	Layers []Part
	// Kinds are the parts by kind of op, and by the two devices of a transfer, largest
	// first.
	Kinds   []Part
	Devices []Device
	Links   []Link // that carry something, largest part of the path first
	// Binds names the device or the link with the largest part of the path, Share is
	// that part.
	Binds string
	Share float64
	// NoSlack says why no op's slack is known; empty where Devices have theirs.
	NoSlack string
	WhatIf  []WhatIf
}

// Explain explains the step of c, with evaluations for the searches that what-if rows
// need. The error is that of ctx where it ends.
func Explain(ctx context.Context, c *Case, evaluations int) (*Explanation, error) {
	r, infeasible, err := c.run()
	if err != nil {
		return nil, err
	}
	x := &Explanation{Step: ps(r.Makespan), Infeasible: infeasible}
	x.parts(c, r)
	x.resources(c, r)
	x.WhatIf, err = whatIf(ctx, c, x.Step, evaluations)
	return x, err
}

// parts sums the critical path.
func (x *Explanation) parts(c *Case, r *sim.Result) {
	g := c.Source.Graph
	layers, kinds := newParts(), newParts()
	main := mainOps(c, r.Trace)
	named := Named(g)
	var all Time
	for _, s := range r.CriticalPath {
		t := ps(s.End) - ps(s.Start)
		all += t
		op := s.Op
		if !s.Transfer {
			op = main[op]
		}
		o := g.Op(op)
		layer := layers.at(LayerOf(o, named), order(o, named))
		layer.Steps++
		if s.Transfer {
			layer.Transfer += t
			k := kinds.at(fmt.Sprintf("%s to %s", c.Machine.Devices[s.From].Name, c.Machine.Devices[s.Device].Name), 0)
			k.Transfer += t
			k.Steps++
			continue
		}
		layer.Compute += t
		k := kinds.at(string(o.Kind), 0)
		k.Compute += t
		k.Steps++
	}
	if rest := x.Step - all; rest != 0 { // a walk that was led in a circle
		layers.at("not traced", 1<<30).Compute += rest
		kinds.at("not traced", 0).Compute += rest
	}
	x.Layers, x.Kinds = layers.byOrder(), kinds.bySize()
}

// mainOps returns, for the lowest op of every kernel, the one that takes longest alone.
func mainOps(c *Case, t *sim.Trace) map[graph.OpID]graph.OpID {
	s, err := c.simulator(c.Machine)
	main := map[graph.OpID]graph.OpID{}
	for _, x := range t.Ops {
		main[x.Op] = x.Op
		if err != nil {
			continue
		}
		seconds := s.OpSeconds(x.Device)
		for _, i := range x.Fused {
			if seconds[i] > seconds[main[x.Op]] {
				main[x.Op] = i
			}
		}
	}
	return main
}

// Named reports whether ops of g name modules.
func Named(g *graph.Graph) bool {
	for i := range g.NumOps() {
		if g.Op(graph.OpID(i)).Module != "" {
			return true
		}
	}
	return false
}

// LayerOf returns the name of the part of the model that o belongs to: its module down
// to the first number in the path (or the first part of one without a number), where
// the graph has modules, else its layer.
func LayerOf(o *graph.Op, named bool) string {
	if !named {
		if o.Layer == 0 {
			return "no layer"
		}
		return fmt.Sprintf("layer %d", o.Layer)
	}
	if o.Module == "" {
		return "no module"
	}
	path := strings.Split(o.Module, ".")
	for k, p := range path {
		if p != "" && strings.Trim(p, "0123456789") == "" {
			return strings.Join(path[:k+1], ".")
		}
	}
	return path[0]
}

// order is where the part of o stands among others: modules come as the path meets them.
func order(o *graph.Op, named bool) int {
	if named {
		return 0
	}
	return int(o.Layer)
}

// parts collects parts by name.
type parts struct {
	index map[string]int
	all   []Part
	order []int
}

func newParts() *parts { return &parts{index: map[string]int{}} }

func (p *parts) at(name string, order int) *Part {
	k, ok := p.index[name]
	if !ok {
		k = len(p.all)
		p.index[name] = k
		p.all, p.order = append(p.all, Part{Name: name}), append(p.order, order)
	}
	return &p.all[k]
}

// byOrder returns the parts by their order, those of one order as they came.
func (p *parts) byOrder() []Part {
	at := make([]int, len(p.all))
	for k := range at {
		at[k] = k
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(p.order[a], p.order[b]) })
	sorted := make([]Part, len(at))
	for k, i := range at {
		sorted[k] = p.all[i]
	}
	return sorted
}

// bySize returns the parts, the largest first, those of one size as they came.
func (p *parts) bySize() []Part {
	slices.SortStableFunc(p.all, func(a, b Part) int { return cmp.Compare(b.Total(), a.Total()) })
	return p.all
}

// resources says what devices and links do, and which of them binds.
func (x *Explanation) resources(c *Case, r *sim.Result) {
	m := c.Machine
	onDevice, onLink := make([]Time, m.NumDevices()), make([]Time, len(m.Links))
	for _, s := range r.CriticalPath {
		if t := ps(s.End) - ps(s.Start); s.Transfer {
			onLink[s.Link] += t
		} else {
			onDevice[s.Device] += t
		}
	}
	slack, why := slacks(c, r)
	x.NoSlack = why
	for d := range m.Devices {
		x.Devices = append(x.Devices, Device{Name: m.Devices[d].Name, Busy: ps(r.Busy[d]), OnPath: onDevice[d], PeakFree: m.Devices[d].Memory - r.PeakBytes[d]})
		x.bind(m.Devices[d].Name, onDevice[d])
	}
	for _, d := range c.Plan.Device {
		x.Devices[d].Ops++
	}
	for k, s := range r.Trace.Ops {
		if slack != nil && slack[k] > r.Makespan/100 {
			x.Devices[s.Device].CanWait += ps(s.End) - ps(s.Start)
		}
	}
	for l := range m.Links {
		if r.LinkBytes[l] > 0 || r.LinkBusy[l] > 0 {
			x.Links = append(x.Links, Link{m.Links[l].Name, r.LinkBytes[l], ps(r.LinkBusy[l]), onLink[l]})
			x.bind(m.Links[l].Name, onLink[l])
		}
	}
	slices.SortStableFunc(x.Links, func(a, b Link) int { return cmp.Or(cmp.Compare(b.OnPath, a.OnPath), cmp.Compare(b.Busy, a.Busy)) })
}

func (x *Explanation) bind(name string, onPath Time) {
	if share := float64(onPath) / float64(max(1, x.Step)); share > x.Share {
		x.Binds, x.Share = name, share
	}
}
