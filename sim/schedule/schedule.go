package schedule

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"placer/graph"
	"placer/hw"
	"placer/internal/jsonx"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Format is the value of "format" in a schedule file.
const Format = "placer schedule 1"

// Schedule is a step's static order.
type Schedule struct {
	GraphName, GraphHash string
	Method               string        // that made the plan
	Step                 units.Seconds // simulated
	Devices              []string      // names, in the machine's order
	Ops                  []Op          // [N], topological; a device issues its ops in this order
}

// Op is one op of a schedule.
type Op struct {
	Name       string
	Device     int           // into Devices
	Start, End units.Seconds // simulated; of the whole kernel where the op is fused
	Kernel     int           // ops with one number, from 1, are fused in one kernel; 0: alone
}

// New returns the schedule of r, a result with a trace of p for g on m. Ops stand by
// start, those of one start by end and then by id: no op starts before one that it
// reads has ended, and ids are topological.
func New(g *graph.Graph, m *hw.Machine, p *plan.Plan, r *sim.Result) *Schedule {
	s := &Schedule{GraphName: g.Name(), GraphHash: g.Hash(), Method: p.Method, Step: r.Makespan, Ops: make([]Op, 0, g.NumOps())}
	for i := range m.Devices {
		s.Devices = append(s.Devices, m.Devices[i].Name)
	}
	spans := slices.Clone(r.Trace.Ops)
	slices.SortFunc(spans, func(a, b sim.OpSpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Op, b.Op))
	})
	kernels := 0
	for _, x := range spans {
		kernel := 0
		if len(x.Fused) > 0 {
			kernels++
			kernel = kernels
		}
		for _, op := range append([]graph.OpID{x.Op}, x.Fused...) {
			s.Ops = append(s.Ops, Op{Name: g.Op(op).Name, Device: x.Device, Start: x.Start, End: x.End, Kernel: kernel})
		}
	}
	return s
}

// Write writes the file, one op a line.
func (s *Schedule) Write(w io.Writer) error {
	var b []byte
	var err error
	str := func(key, x string) {
		if b = append(b, key...); err == nil {
			b, err = jsonx.AppendString(b, x)
		}
	}
	num := func(key string, x units.Seconds) {
		b = strconv.AppendFloat(append(b, key...), float64(x), 'g', -1, 64)
	}
	bw := bufio.NewWriter(w)
	str("{\"format\": \""+Format+"\",\n\"graph\": {\"name\": ", s.GraphName)
	str(", \"hash\": ", s.GraphHash)
	str("},\n\"method\": ", s.Method)
	num(",\n\"step_time_s\": ", s.Step)
	for i, d := range s.Devices {
		str([]string{",\n\"devices\": [", ", "}[min(i, 1)], d)
	}
	b = append(b, "],\n\"ops\": ["...)
	for i, o := range s.Ops {
		str([]string{"\n", ",\n"}[min(i, 1)]+`{"name": `, o.Name)
		str(`, "device": `, s.Devices[o.Device])
		num(`, "start_s": `, o.Start)
		num(`, "end_s": `, o.End)
		if o.Kernel > 0 {
			b = strconv.AppendInt(append(b, `, "kernel": `...), int64(o.Kernel), 10)
		}
		b = append(b, '}')
		if err != nil {
			return fmt.Errorf("schedule: op %d: %w", i, err)
		}
		bw.Write(b)
		b = b[:0]
	}
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	bw.Write(append(b, "\n]}\n"...))
	return bw.Flush()
}
