package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/internal/unionfind"
	"placer/internal/words"
	"placer/placer/explain"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Case is a placement to check.
type Case struct {
	Source    problem.Source
	Machine   *hw.Machine
	Placement *Placement
	// Contention is how transfers share links, as problem.Options has it.
	Contention string
}

// least is the part of a step that a change has to save for its fault to be a warning:
// what saves less is within what plans of one quality differ by.
const least = 0.001

// listed is how many findings a rule has at most, trials how many changes it simulates.
const (
	listed = 5
	trials = 24
)

// checker is the state of one Check.
type checker struct {
	*Case
	ctx    context.Context
	g      *graph.Graph
	sim    *sim.Simulator
	now    plan.Decision
	score  plan.Score
	result *sim.Result
	part   []int32   // [N] part of the model; ops that must share a device are in one part
	name   []string  // [parts]
	group  [][]int32 // ops of each co-location group
	report *Report
}

// Check finds the faults of c. A placement that names devices or ops that there are not,
// or splits what must stay together, is not simulated. The error is that of ctx where it
// ends.
func Check(ctx context.Context, c *Case) (*Report, error) {
	own := *c
	x := &checker{Case: &own, ctx: ctx, g: c.Source.Graph, report: &Report{Findings: slices.Clone(c.Placement.Findings)}}
	defer x.report.sort()
	if err := x.inRange(); err != nil {
		return nil, err
	}
	x.colocated()
	x.deadlock()
	if slices.ContainsFunc(x.report.Findings, func(f Finding) bool { return f.Rule != Deadlock }) {
		return x.report, nil
	}
	var err error
	if x.sim, _, err = problem.Simulator(c.Source, c.Machine, problem.Options{Scheduler: problem.FIFO, Contention: c.Contention}); err != nil {
		return nil, err
	}
	x.now = c.Placement.Decision
	if c.Placement.Order != nil && c.Placement.Priority == nil && x.report.Count(Error) == 0 {
		x.now.Priority = ranks(c.Placement.Order, x.g.NumOps())
	}
	x.result, err = x.sim.Run(&plan.Plan{Decision: x.now}, sim.Options{})
	var infeasible *sim.Infeasible
	if err != nil && !errors.As(err, &infeasible) {
		return nil, err
	}
	x.score = x.sim.Evaluate(x.now)
	x.report.Step = x.result.Makespan
	x.parts()
	x.memory()
	x.idle()
	if infeasible == nil {
		x.farWeights()
		x.pingPong()
		x.loops()
		x.unbalanced()
		x.slowLinks()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return x.report, nil
}

// inRange reports a placement of another number of ops, and adds findings of devices by
// number that there are not.
func (x *checker) inRange() error {
	p := x.Placement
	if len(p.Device) != x.g.NumOps() {
		return fmt.Errorf("%s placed, graph %s has %d", words.Count(len(p.Device), "op is", "ops are"), x.g.Name(), x.g.NumOps())
	}
	beyond := &Placement{}
	for i, d := range p.Device {
		if d != none && int(d) >= x.Machine.NumDevices() {
			beyond.lacks(x.Machine, fmt.Sprint("device ", d), x.g.Op(graph.OpID(i)).Name)
		}
	}
	if beyond.Findings != nil {
		q := *p
		q.Device = slices.Clone(p.Device)
		for i, d := range q.Device {
			if int(d) >= x.Machine.NumDevices() {
				q.Device[i] = none
			}
		}
		x.Placement = &q
		x.report.Findings = append(x.report.Findings, beyond.Findings...)
	}
	return nil
}

// ranks returns the priority, [N], under which a device runs its ops in their static
// order: by place in the order of its device.
func ranks(order [][]graph.OpID, n int) []int32 {
	place := make([]int, n)
	for _, ops := range order {
		for k, i := range ops {
			place[i] = k
		}
	}
	return sim.RankByKey(place)
}

// mostSingle is the size of a graph of no parts up to which each op is one.
const mostSingle = 2000

// partOf returns what advice calls the part of the model that op i belongs to: its layer or module, or
// in a graph that names neither the op itself.
func (x *checker) partOf(i graph.OpID, named, layered bool) string {
	o := x.g.Op(i)
	switch {
	case !named && !layered && x.g.NumOps() <= mostSingle:
		return o.Name
	case named && o.Module == "":
		return "the ops of no module"
	case !named && o.Layer == 0:
		return "the ops of no layer"
	}
	return explain.LayerOf(o, named)
}

// parts divides the ops into parts of the model, by layer or module.
func (x *checker) parts() {
	n := x.g.NumOps()
	index := map[string]int32{}
	x.part = make([]int32, n)
	named, layered := explain.Named(x.g), false
	for i := range n {
		layered = layered || x.g.Op(graph.OpID(i)).Layer != 0
	}
	for i := range n {
		name := x.partOf(graph.OpID(i), named, layered)
		k, ok := index[name]
		if !ok {
			k = int32(len(index))
			index[name] = k
			x.name = append(x.name, name)
		}
		x.part[i] = k
	}
	joined := unionfind.New(len(index))
	first := map[int32]int32{}
	for i := range n {
		if k := x.g.Op(graph.OpID(i)).Group; k > 0 {
			if j, ok := first[k]; ok {
				joined.Join(x.part[j], x.part[i])
			} else {
				first[k] = int32(i)
			}
		}
	}
	for i := range x.part {
		x.part[i] = joined.Root(x.part[i])
	}
}

// members returns the ops of each co-location group, by group.
func (x *checker) members(group int32) []int32 {
	if x.group == nil {
		for i := range x.g.NumOps() {
			if k := x.g.Op(graph.OpID(i)).Group; k > 0 {
				for int(k) >= len(x.group) {
					x.group = append(x.group, nil)
				}
				x.group[k] = append(x.group[k], int32(i))
			}
		}
	}
	return x.group[group]
}

// moved returns the placement with ops, and what must share a device with them, on
// device to.
func (x *checker) moved(ops []int32, to int) []uint8 {
	device := slices.Clone(x.now.Device)
	for _, i := range ops {
		device[i] = uint8(to)
		if k := x.g.Op(graph.OpID(i)).Group; k > 0 {
			for _, j := range x.members(k) {
				device[j] = uint8(to)
			}
		}
	}
	return device
}

// try simulates the plan on other devices; when the context has ended nothing is better
// than the plan.
func (x *checker) try(device []uint8) plan.Score {
	if x.ctx.Err() != nil {
		return x.score
	}
	d := x.now
	d.Device = device
	return x.sim.Evaluate(d)
}

// helps adds f where the change to device makes the step shorter by least, and reports
// whether it does.
func (x *checker) helps(f Finding, device []uint8) bool {
	s := x.try(device)
	gain := x.score.Value - s.Value
	if !s.Feasible() || gain < least*x.score.Value {
		return false
	}
	f.Severity, f.Gain, f.Tried = Warning, units.Seconds(gain), true
	x.report.Findings = append(x.report.Findings, f)
	return true
}

// on returns the ops of part on device d, and their seconds.
func (x *checker) on(part int32, d int) (ops []int32, seconds float64) {
	for i, p := range x.part {
		if p == part && int(x.now.Device[i]) == d {
			ops = append(ops, int32(i))
			seconds += x.sim.OpSeconds(d)[i]
		}
	}
	return ops, seconds
}

// partsOn returns the parts that device d runs ops of, those with the most seconds
// first.
func (x *checker) partsOn(d int) (parts []int32) {
	seconds := map[int32]float64{}
	for i, p := range x.part {
		if int(x.now.Device[i]) == d {
			if _, ok := seconds[p]; !ok {
				parts = append(parts, p)
			}
			seconds[p] += x.sim.OpSeconds(d)[i]
		}
	}
	slices.SortStableFunc(parts, func(a, b int32) int { return cmp.Compare(seconds[b], seconds[a]) })
	return parts
}
