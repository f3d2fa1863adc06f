package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/hw/nvml"
	"placer/internal/words"
	"placer/measure"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// measurementFormat names the version of Measurement as a JSON document.
const measurementFormat = "placer measurement 1"

// Measurement is what a step took on real devices, beside what was predicted.
type Measurement struct {
	Format    string           `json:"format"`
	Graph     Graph            `json:"graph"`
	Machine   Machine          `json:"machine"`
	Method    string           `json:"method"` // that made the plan
	Predicted float64          `json:"predicted_s"`
	Runs      []measuredRun    `json:"runs"` // one for each mode
	GPUs      []string         `json:"gpus"` // that the machine's devices stood on
	Devices   []measuredDevice `json:"devices"`
	Classes   []measuredClass  `json:"classes"`
	Notes     []string         `json:"notes,omitempty"`
}

// measuredRun is one way of issuing the step.
type measuredRun struct {
	Mode      string       `json:"mode"`
	Predicted float64      `json:"predicted_s"` // issued that way
	Step      float64      `json:"step_time_s"` // median
	Error     float64      `json:"error"`       // predicted / measured - 1
	Steps     []float64    `json:"steps_s"`
	Issue     float64      `json:"issue_s"`            // by the host
	Trace     float64      `json:"traced_s,omitempty"` // the step with events around every op
	State     []nvml.State `json:"states,omitempty"`
}

// measuredDevice is one device of the machine.
type measuredDevice struct {
	Name          string  `json:"name"`
	On            string  `json:"on"` // what it stood on
	SMs           int     `json:"sms,omitempty"`
	Ops           int     `json:"ops"`
	Busy          float64 `json:"busy_s"`
	PredictedBusy float64 `json:"predicted_busy_s"`
	Slab          int64   `json:"slab_bytes"`
	PredictedPeak int64   `json:"predicted_peak_bytes"`
}

// measuredClass is one class of ops.
type measuredClass struct {
	Class     string  `json:"class"`
	Ops       int     `json:"ops"`
	Measured  float64 `json:"measured_s"`
	Predicted float64 `json:"predicted_s"`
	MAPE      float64 `json:"mape"`
	P95       float64 `json:"p95"`
	Kendall   float64 `json:"kendall_tau"`
}

// Measure describes the runs of p, a plan for g on m, whose devices stood on the
// GPUs named. Devices and classes are those of the first run that has a trace.
func Measure(g *graph.Graph, m *hw.Machine, p *plan.Plan, predicted *sim.Result, on []string, runs []*measure.Result) *Measurement {
	d := &Measurement{Format: measurementFormat, Graph: IdentifyGraph(g), Machine: IdentifyMachine(m), Method: p.Method, Predicted: float64(predicted.Makespan), GPUs: on,
		Devices: []measuredDevice{}, Classes: []measuredClass{}}
	for _, r := range runs {
		x := measuredRun{Mode: r.Mode.String(), Predicted: float64(r.Predicted), Step: float64(r.Makespan), Error: float64(r.Predicted/r.Makespan) - 1, Issue: float64(r.Issue), Trace: float64(r.Traced), State: r.States}
		for _, s := range r.Steps {
			x.Steps = append(x.Steps, float64(s))
		}
		d.Runs = append(d.Runs, x)
		for _, n := range r.Notes {
			if !slices.Contains(d.Notes, n) {
				d.Notes = append(d.Notes, n)
			}
		}
		if slices.ContainsFunc(r.States, func(s nvml.State) bool { return s.Throttle&nvml.Spoiled != 0 }) {
			d.Notes = append(d.Notes, r.Mode.String()+": the clock was held down during the measurement")
		}
	}
	k := slices.IndexFunc(runs, func(r *measure.Result) bool { return r.Trace != nil })
	if k < 0 {
		return d
	}
	r := runs[k]
	for i := range m.Devices {
		x := measuredDevice{Name: m.Devices[i].Name, On: on[i], SMs: r.SMs[i], Busy: float64(r.Busy[i]), PredictedBusy: float64(predicted.Busy[i]), Slab: int64(r.Slab[i])}
		if predicted.PeakBytes != nil {
			x.PredictedPeak = int64(predicted.PeakBytes[i])
		}
		d.Devices = append(d.Devices, x)
	}
	for _, v := range p.Device {
		d.Devices[v].Ops++
	}
	d.Classes = append(d.Classes, classesOf(r)...)
	return d
}

// WriteText writes d as tables.
func (d *Measurement) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.prosef("%s: %s on %s, %s; placed by %s\n", d.Graph.Name, words.Count(d.Graph.Ops, "op", "ops"), d.Machine.Name, devices(d.Machine.Devices), cmp.Or(d.Method, "unknown"))
	pg.printf("predicted step %s\n\n", seconds(d.Predicted))
	t := newTable("issued", ">step", ">fastest", ">slowest", ">predicted off by", ">host issues in", ">traced step")
	for _, r := range d.Runs {
		t.row(r.Mode, seconds(r.Step), seconds(slices.Min(r.Steps)), seconds(slices.Max(r.Steps)), fmt.Sprintf("%+.1f%%", 100*r.Error), seconds(r.Issue), seconds(r.Trace))
	}
	pg.table(t)
	pg.printf("\n")
	t = newTable("device", "on", ">SMs", ">ops", ">busy", ">predicted", ">memory", ">predicted peak")
	for _, x := range d.Devices {
		var sms any = "all"
		if x.SMs > 0 {
			sms = x.SMs
		}
		t.row(x.Name, x.On, sms, x.Ops, seconds(x.Busy), seconds(x.PredictedBusy), units.Bytes(x.Slab), units.Bytes(x.PredictedPeak))
	}
	pg.table(t)
	pg.printf("\n")
	t = newTable("class", ">ops", ">measured", ">predicted", ">mean error", ">p95", ">tau")
	for _, c := range d.Classes {
		t.row(c.Class, c.Ops, seconds(c.Measured), seconds(c.Predicted), percent(c.MAPE, 1), percent(c.P95, 1), fmt.Sprintf("%.2f", c.Kendall))
	}
	pg.table(t)
	pg.notes("", d.Notes...)
	return pg.err
}
