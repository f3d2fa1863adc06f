package python

import (
	"placer/graph"
	"placer/hw"
	"placer/sim"
	"placer/units"
)

// Format is that of an Answer without an error.
const Format = "placer step measurement 1"

// readyFormat is that of the process's first line.
const readyFormat = "placer runtime ready 1"

// Ready is what the process says of itself when it takes requests.
type Ready struct {
	Format  string   `json:"format"`
	Ops     int      `json:"ops"` // of the program
	Devices []string `json:"devices"`
	Runtime string   `json:"runtime"` // name of the Runtime
	Version string   `json:"version"` // of its framework
	Host    string   `json:"host"`    // processor's name, where known
	GPUs    []string `json:"gpus"`    // names, of gpu:0...
}

// Answer is a measured step. Times are in seconds, by Clock where nothing else is said.
type Answer struct {
	Error    string    `json:"error"` // why it could not be measured; then nothing else
	Format   string    `json:"format"`
	Step     float64   `json:"step_time_s"` // least of all rounds
	Clock    string    `json:"clock"`
	Realtime bool      `json:"realtime"`
	Wall     []float64 `json:"wall_s"`    // steps of the best round
	Virtual  []float64 `json:"virtual_s"` // likewise, processor time
	Rounds   []float64 `json:"rounds_s"`  // least step of each
	Spread   float64   `json:"spread"`    // (third quartile - first) / median
	Load     *float64  `json:"load"`      // cores' worth of others' time; nil: not known
	Devices  []Device  `json:"devices"`
	Equal    *bool     `json:"equal"` // results have the bits of one device's; nil: not compared
	Trace    []Event   `json:"trace"`
}

// Device is what one device did in the step.
type Device struct {
	Name     string  `json:"name"`
	Ops      int     `json:"ops"`
	Busy     float64 `json:"busy_s"` // its ops
	Copy     float64 `json:"copy_s"` // its sends
	Work     float64 `json:"work_s"` // processor time without waiting
	Wait     float64 `json:"wait_s"`
	Sent     int64   `json:"sent_bytes"`
	Received int64   `json:"received_bytes"`
}

// Event is an op of the traced step or, with Send, a copy of one of its outputs.
type Event struct {
	Op     string   `json:"op"`
	Device string   `json:"device"`
	Start  float64  `json:"start_s"`
	End    float64  `json:"end_s"`
	Send   bool     `json:"send"`
	Output int      `json:"output"`
	To     []string `json:"to"`
	Bytes  int64    `json:"bytes"`
}

// SimTrace returns the trace of a, a step of g on m, in the simulator's form. What
// names no op or device of theirs is left out.
func (a *Answer) SimTrace(g *graph.Graph, m *hw.Machine) *sim.Trace {
	ops, devices := map[string]graph.OpID{}, map[string]int{}
	for i := range graph.OpID(g.NumOps()) {
		ops[g.Op(i).Name] = i
	}
	for d := range m.Devices {
		devices[m.Devices[d].Name] = d
	}
	t := &sim.Trace{}
	for _, e := range a.Trace {
		op, known := ops[e.Op]
		d, placed := devices[e.Device]
		if !known || !placed {
			continue
		}
		start, end := units.Seconds(e.Start), units.Seconds(e.End)
		if !e.Send {
			t.Ops = append(t.Ops, sim.OpSpan{Op: op, Device: d, Ready: start, Start: start, End: end})
			continue
		}
		first, past := g.Outputs(op)
		if e.Output < 0 || int(first)+e.Output >= int(past) {
			continue
		}
		for _, name := range e.To {
			if to, ok := devices[name]; ok {
				t.Transfers = append(t.Transfers, sim.TransferSpan{Op: op, Tensor: first + graph.TensorID(e.Output), From: d, To: to, Bytes: units.Bytes(e.Bytes), Ready: start, Start: start, End: end})
			}
		}
	}
	return t
}
