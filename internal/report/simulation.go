package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/internal/words"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// simulationFormat names the version of Simulation as a JSON document.
const simulationFormat = "placer simulation 1"

// Simulation is what the simulator says of one plan.
type Simulation struct {
	Format       string         `json:"format"`
	Graph        Graph          `json:"graph"`
	Machine      Machine        `json:"machine"`
	Method       string         `json:"method"` // that made the plan
	Scheduler    string         `json:"scheduler"`
	Fusion       string         `json:"fusion"`  // whose, as simulate's flag says
	Kernels      int            `json:"kernels"` // that run: ops, less those fused with others
	StepTime     float64        `json:"step_time_s"`
	Feasible     bool           `json:"feasible"`
	Infeasible   string         `json:"infeasible,omitempty"` // why
	LowerBound   float64        `json:"lower_bound_s"`
	Gap          *float64       `json:"gap"` // null where the plan does not fit
	Bounds       []boundPart    `json:"bounds"`
	Devices      []deviceUse    `json:"devices"`
	Links        []linkUse      `json:"links"`
	CriticalPath []criticalStep `json:"critical_path"`
	// Objective is there where another one than the step was asked for.
	Objective *Objective `json:"objective,omitempty"`
	// MaxLoad is there where it was asked for.
	MaxLoad *MaxLoad `json:"max_load,omitempty"`
	// Spread is there where it was asked for.
	Spread *Spread `json:"spread,omitempty"`
}

// Objective is what a plan comes to by another objective than the step.
type Objective struct {
	Name       plan.Objective `json:"name"`
	Value      float64        `json:"value"` // seconds of throughput, bytes of memory
	LowerBound float64        `json:"lower_bound"`
	Overflow   int64          `json:"overflow_bytes"`
}

func (o *Objective) writeText(pg *page) {
	fits := ""
	if o.Overflow > 0 {
		fits = fmt.Sprintf("; %s more than the devices have", units.Bytes(o.Overflow))
	}
	pg.prosef("%s %s; proven lower bound %s%s\n", valueNames[o.Name], Value(o.Name, o.Value), Value(o.Name, o.LowerBound), fits)
}

// Spread is the step over machines that deviate from the one named.
type Spread struct {
	Machines int     `json:"machines"`
	Error    float64 `json:"model_error"`
	Median   float64 `json:"median_s"`
	Quantile float64 `json:"quantile"`
	StepTime float64 `json:"step_time_s"` // that quantile
}

// boundPart is one proven lower bound.
type boundPart struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// deviceUse says what a device does in a step.
type deviceUse struct {
	Name   string  `json:"name"`
	Ops    int     `json:"ops"`
	Busy   float64 `json:"busy_s"`
	Idle   float64 `json:"idle_s"`
	Peak   int64   `json:"peak_bytes"`
	Memory int64   `json:"memory_bytes"`
}

// linkUse says what a link carries in a step.
type linkUse struct {
	Name  string  `json:"name"`
	Bytes int64   `json:"bytes"`
	Busy  float64 `json:"busy_s"`
}

// criticalStep is one step of the critical path: an op on a device, or a
// transfer to it.
type criticalStep struct {
	Op       string     `json:"op"` // that runs, or that has sent
	Kind     string     `json:"kind"`
	Transfer bool       `json:"transfer"`
	From     string     `json:"from,omitempty"` // device that sends, of a transfer
	Device   string     `json:"device"`
	Start    float64    `json:"start_s"`
	End      float64    `json:"end_s"`
	Waited   sim.Reason `json:"waited_for"`
}

// Simulate describes the step r of p, a plan for g on m. infeasible is the
// simulator's error, or nil.
func Simulate(g *graph.Graph, m *hw.Machine, p *plan.Plan, r *sim.Result, b *sim.Bound, infeasible error) *Simulation {
	s := &Simulation{
		Format: simulationFormat, Graph: IdentifyGraph(g), Machine: IdentifyMachine(m), Method: p.Method,
		Kernels: r.Kernels, StepTime: float64(r.Makespan), Feasible: infeasible == nil, LowerBound: float64(b.Seconds),
	}
	if infeasible != nil {
		s.Infeasible = infeasible.Error()
	} else {
		gap := b.Gap(r.Makespan)
		s.Gap = &gap
	}
	for _, x := range b.Parts {
		s.Bounds = append(s.Bounds, boundPart{x.Name, float64(x.Seconds)})
	}
	for d := range m.Devices {
		s.Devices = append(s.Devices, deviceUse{Name: m.Devices[d].Name, Busy: float64(r.Busy[d]), Idle: float64(r.Idle[d]), Peak: int64(r.PeakBytes[d]), Memory: int64(m.Devices[d].Memory)})
	}
	for _, d := range p.Device {
		s.Devices[d].Ops++
	}
	for l := range m.Links {
		s.Links = append(s.Links, linkUse{m.Links[l].Name, int64(r.LinkBytes[l]), float64(r.LinkBusy[l])})
	}
	for _, x := range r.CriticalPath {
		o := g.Op(x.Op)
		c := criticalStep{Op: o.Name, Kind: string(o.Kind), Transfer: x.Transfer, Device: m.Devices[x.Device].Name, Start: float64(x.Start), End: float64(x.End), Waited: x.Reason}
		if x.Transfer {
			c.From = m.Devices[x.From].Name
		}
		s.CriticalPath = append(s.CriticalPath, c)
	}
	return s
}

// IdentifyGraph returns what identifies g.
func IdentifyGraph(g *graph.Graph) Graph {
	return Graph{Name: g.Name(), Ops: g.NumOps(), Edges: g.NumEdges(), Hash: g.Hash()}
}

// IdentifyMachine returns what identifies m.
func IdentifyMachine(m *hw.Machine) Machine {
	return Machine{Name: m.Name, Devices: m.NumDevices(), Hash: m.Hash()}
}

// ofPlan is a scheduler or a fusion that the plan itself names.
const ofPlan = "plan"

// longest is how many steps of the critical path the text form shows.
const longest = 10

// WriteText writes s as tables.
func (s *Simulation) WriteText(w io.Writer) error {
	pg := newPage(w)
	order, kernels := s.Scheduler+" scheduler", ""
	if s.Scheduler == ofPlan {
		order = "the plan's order"
	}
	if s.Kernels < s.Graph.Ops {
		kernels = fmt.Sprintf(", %s fusion into %s", s.Fusion, words.Count(s.Kernels, "kernel", "kernels"))
		if s.Fusion == ofPlan {
			kernels = fmt.Sprintf(", fused as planned into %s", words.Count(s.Kernels, "kernel", "kernels"))
		}
	}
	pg.prosef("%s: %s on %s, %s\n", s.Graph.Name, words.Count(s.Graph.Ops, "op", "ops"), s.Machine.Name, devices(s.Machine.Devices))
	pg.fill("  ", fmt.Sprintf("placed by %s, %s%s", cmp.Or(s.Method, "unknown"), order, kernels))
	if s.Gap != nil {
		pg.prosef("step time %s, %.1f%% above the proven lower bound %s\n\n", seconds(s.StepTime), 100**s.Gap, seconds(s.LowerBound))
	} else {
		pg.prosef("step time %s, but the plan does not fit; proven lower bound of plans that do: %s\n\n", seconds(s.StepTime), seconds(s.LowerBound))
	}
	if x := s.Spread; x != nil {
		pg.prosef("over %d machines that deviate by %.1f%%: median %s, p%g %s\n\n", x.Machines, 100*x.Error, seconds(x.Median), 100*x.Quantile, seconds(x.StepTime))
	}
	pg.table(s.deviceTable())
	pg.printf("\n")
	t := newTable("lower bound", ">step time", "because of")
	for _, b := range s.Bounds {
		t.row(b.Name, seconds(b.Seconds), boundReasons[b.Name])
	}
	pg.table(t)
	s.writePath(pg)
	if s.Objective != nil {
		pg.printf("\n")
		if s.MaxLoad != nil {
			pg.table(s.MaxLoad.table())
		}
		s.Objective.writeText(pg)
	}
	return pg.err
}

// boundReasons says in a line why no step is shorter than each part of a bound.
var boundReasons = map[string]string{
	sim.BoundCriticalPath: "the longest path, each op on its fastest device",
	sim.BoundWork:         "all work, shared by all devices",
	sim.BoundWindow:       "the same, less what cannot run early or late",
	sim.BoundGroup:        "ops that must share a device, one after another",
	sim.BoundMemory:       "work, where fast devices cannot hold all ops",
	sim.BoundSplit:        "one device for all ops, or one transfer",
	sim.BoundTransfers:    "the longest path, with transfers that no plan avoids",
	sim.BoundLateWork:     "work between the two ends of that path",
}

// deviceTable has a row for each device.
func (s *Simulation) deviceTable() *table {
	t := newTable("device", ">ops", ">busy", ">of step", ">peak memory", ">of memory")
	for _, d := range s.Devices {
		t.row(d.Name, d.Ops, seconds(d.Busy), percent(d.Busy, s.StepTime), units.Bytes(d.Peak), percent(float64(d.Peak), float64(d.Memory)))
	}
	return t
}

// writePath writes where the critical path's time goes, and its longest steps.
func (s *Simulation) writePath(pg *page) {
	var ops, transfers float64
	waited := map[sim.Reason]int{}
	steps := slices.Clone(s.CriticalPath)
	for _, x := range steps {
		if x.Transfer {
			transfers += x.End - x.Start
		} else {
			ops += x.End - x.Start
		}
		waited[x.Waited]++
	}
	pg.prosef("\ncritical path: %s; ops %s (%s), transfers %s (%s)\n", words.Count(len(steps), "step", "steps"), seconds(ops), percent(ops, s.StepTime), seconds(transfers), percent(transfers, s.StepTime))
	for _, r := range []sim.Reason{sim.ForCompute, sim.ForTransfer, sim.ForDevice, sim.ForLink} {
		pg.printf("  %d waited for: %s\n", waited[r], r)
	}
	slices.SortStableFunc(steps, func(a, b criticalStep) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	t := newTable("longest steps", "where", ">start", ">takes", "waited for").fitting("start")
	for _, x := range steps[:min(longest, len(steps))] {
		where := x.Device
		if x.Transfer {
			where = x.From + " to " + x.Device
		}
		t.row(fmt.Sprintf("%s (%s)", x.Op, x.Kind), where, seconds(x.Start), seconds(x.End-x.Start), x.Waited)
	}
	pg.table(t)
}
