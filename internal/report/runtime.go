package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/internal/words"
	"placer/measure/python"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/units"
)

// runtimeFormat names the version of RuntimeMeasurement as a JSON document.
const runtimeFormat = "placer runtime measurement 1"

// RuntimeMeasurement is what a framework's step took under a plan, beside what was
// predicted.
type RuntimeMeasurement struct {
	Format    string          `json:"format"`
	Graph     Graph           `json:"graph"`
	Machine   Machine         `json:"machine"`
	Method    string          `json:"method"`  // that made the plan
	Runtime   string          `json:"runtime"` // name and version
	Clock     string          `json:"clock"`   // virtual (processor time) or wall
	Realtime  bool            `json:"realtime"`
	Step      float64         `json:"step_time_s"` // least, by Clock
	Predicted float64         `json:"predicted_s"`
	Error     float64         `json:"error"`  // predicted / measured - 1
	Wall      []float64       `json:"wall_s"` // steps of the best round
	Virtual   []float64       `json:"virtual_s"`
	Rounds    []float64       `json:"rounds_s"` // least step of each
	Spread    float64         `json:"spread"`
	Load      *float64        `json:"load"`            // cores' worth of others' time; null: not known
	Equal     *bool           `json:"equal,omitempty"` // results have the bits of one device's
	Devices   []runtimeDevice `json:"devices"`
	Classes   []runtimeClass  `json:"classes"`
}

type runtimeDevice struct {
	python.Device
	PredictedBusy float64 `json:"predicted_busy_s"`
	PredictedCopy float64 `json:"predicted_copy_s"` // 0 where the machine's copies occupy no sender
}

// runtimeClass is one class of ops on one device.
type runtimeClass struct {
	Device string `json:"device"`
	measuredClass
}

// MeasureRuntime describes a, a measured step of p, a plan for g on m; predicted is the
// simulator's step without fusion, with its trace.
func MeasureRuntime(g *graph.Graph, m *hw.Machine, p *plan.Plan, predicted *sim.Result, runtime string, a *python.Answer) *RuntimeMeasurement {
	d := &RuntimeMeasurement{Format: runtimeFormat, Graph: IdentifyGraph(g), Machine: IdentifyMachine(m), Method: p.Method, Runtime: runtime,
		Clock: a.Clock, Realtime: a.Realtime, Step: a.Step, Predicted: float64(predicted.Makespan), Error: float64(predicted.Makespan)/a.Step - 1,
		Wall: a.Wall, Virtual: a.Virtual, Rounds: a.Rounds, Spread: a.Spread, Load: a.Load, Equal: a.Equal}
	busy := make([]units.Seconds, m.NumDevices())
	for _, x := range predicted.Trace.Ops {
		busy[x.Device] += x.End - x.Start
	}
	for _, x := range a.Devices {
		y := runtimeDevice{Device: x}
		if i := slices.IndexFunc(m.Devices, func(d hw.Device) bool { return d.Name == x.Name }); i >= 0 {
			y.PredictedBusy, y.PredictedCopy = float64(busy[i]), float64(max(0, predicted.Busy[i]-busy[i]))
		}
		d.Devices = append(d.Devices, y)
	}
	d.Classes = runtimeClasses(g, m, predicted.Trace, a.SimTrace(g, m))
	return d
}

// runtimeClasses compares the ops of two traces of one plan that compute, by device and
// class.
func runtimeClasses(g *graph.Graph, m *hw.Machine, predicted, measured *sim.Trace) []runtimeClass {
	type times struct {
		ops                 int
		sum, predictedSum   float64
		predicted, measured []units.Seconds // of ops that the runtime's clock saw at all
	}
	lasts := make([]units.Seconds, g.NumOps())
	for _, x := range predicted.Ops {
		lasts[x.Op] = x.End - x.Start
	}
	found := make([][graph.NumClasses]times, m.NumDevices())
	for _, x := range measured.Ops {
		class := g.Op(x.Op).Kind.Class()
		switch class {
		case graph.ClassInput, graph.ClassVariable, graph.ClassConst:
			continue // take no time
		}
		c := &found[x.Device][class]
		took := x.End - x.Start
		c.ops, c.sum, c.predictedSum = c.ops+1, c.sum+float64(took), c.predictedSum+float64(lasts[x.Op])
		if took > 0 { // no share of nothing is an error
			c.predicted, c.measured = append(c.predicted, lasts[x.Op]), append(c.measured, took)
		}
	}
	all := []runtimeClass{}
	for device := range found {
		for class := range graph.Class(graph.NumClasses) {
			c := &found[device][class]
			if c.ops == 0 {
				continue
			}
			r := roofline.NewReport(c.predicted, c.measured)
			all = append(all, runtimeClass{m.Devices[device].Name, measuredClass{class.String(), c.ops, c.sum, c.predictedSum, r.MAPE, r.P95, r.Kendall}})
		}
	}
	return all
}

// WriteText writes d as tables.
func (d *RuntimeMeasurement) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.prosef("%s: %s on %s, %s; placed by %s; %s\n", d.Graph.Name, words.Count(d.Graph.Ops, "op", "ops"), d.Machine.Name, devices(d.Machine.Devices), cmp.Or(d.Method, "unknown"), d.Runtime)
	step := fmt.Sprintf("step %s (%s clock), predicted %s, %+.1f%%", seconds(d.Step), d.Clock, seconds(d.Predicted), 100*d.Error)
	if len(d.Wall) > 0 {
		step += fmt.Sprintf("; wall clock %s", seconds(slices.Min(d.Wall)))
	}
	if d.Load != nil {
		step += fmt.Sprintf("; load of others %.2f cores", *d.Load)
	}
	if d.Equal != nil {
		step += "; results " + map[bool]string{true: "equal to one device's", false: "NOT equal to one device's"}[*d.Equal]
	}
	pg.prosef("%s\n\n", step)
	t := newTable("device", ">ops", ">busy", ">predicted", ">copies", ">predicted", ">waits", ">sent", ">received")
	for _, x := range d.Devices {
		t.row(x.Name, x.Ops, seconds(x.Busy), seconds(x.PredictedBusy), seconds(x.Copy), seconds(x.PredictedCopy), seconds(x.Wait), units.Bytes(x.Sent), units.Bytes(x.Received))
	}
	pg.table(t)
	if len(d.Classes) == 0 {
		return pg.err
	}
	pg.printf("\n")
	t = newTable("device", "class", ">ops", ">measured", ">predicted", ">mean error", ">p95", ">tau")
	for _, c := range d.Classes {
		if c.Measured == 0 {
			t.row(c.Device, c.Class, c.Ops, seconds(0), seconds(c.Predicted), "-", "-", "-")
			continue
		}
		t.row(c.Device, c.Class, c.Ops, seconds(c.Measured), seconds(c.Predicted), percent(c.MAPE, 1), percent(c.P95, 1), fmt.Sprintf("%.2f", c.Kendall))
	}
	pg.table(t)
	return pg.err
}
