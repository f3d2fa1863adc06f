package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/units"
)

// replayCase is a schedule with its step by python/tests/replay.py; see
// testdata/replay.md.
type replayCase struct {
	Static bool // step is that of order as it stands, else the order is replay's own
	Copies struct {
		Latency          float64 `json:"send_s"`
		Bandwidth        float64 `json:"send_bandwidth"`
		Delivery         float64 `json:"delivery_s"`
		Receive          float64 `json:"receive_s"`
		ReceiveBandwidth float64 `json:"receive_bandwidth"`
	}
	Ops []struct {
		Inputs  [][2]int // op and output
		Control []int
		Bytes   []int64
		Seconds float64
		Device  uint8
	}
	Priority []int32
	Order    []int
	Step     float64
}

// graph adds the ops in the order of ids and, where last is not nil, makes each
// wait for the one before it on its device.
func (c *replayCase) graph(t *testing.T, ids []int, last map[uint8]graph.OpID) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("replay")
	at := make([]graph.OpID, len(c.Ops))
	for _, i := range ids {
		o := &c.Ops[i]
		var in []graph.TensorID
		for _, r := range o.Inputs {
			in = append(in, b.Output(at[r[0]], r[1]))
		}
		var out []graph.Tensor
		for _, n := range o.Bytes {
			out = append(out, graph.Tensor{Bytes: units.Bytes(n)})
		}
		at[i] = b.Op(graph.Op{Name: fmt.Sprint(i), Kind: "Add"}, in, out...)
		before := map[graph.OpID]bool{}
		for _, j := range o.Control {
			before[at[j]] = true
		}
		if p, ok := last[o.Device]; ok {
			before[p] = true
		}
		for p := range before {
			b.Control(p, at[i])
		}
		if last != nil {
			last[o.Device] = at[i]
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestReplay(t *testing.T) {
	data, err := os.ReadFile("testdata/replay.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []replayCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 8 {
		t.Fatalf("%d cases, want 8", len(cases))
	}
	for k, c := range cases {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			n := len(c.Ops)
			ids := make([]int, n) // op of each id
			for i := range ids {
				ids[i] = i
			}
			var last map[uint8]graph.OpID
			d := plan.Decision{Priority: c.Priority}
			if c.Static {
				ids, last, d.Priority = c.Order, map[uint8]graph.OpID{}, nil
			}
			g := c.graph(t, ids, last)
			column, devices := make([]float64, n), 0
			for id, i := range ids {
				column[id] = c.Ops[i].Seconds
				d.Device = append(d.Device, c.Ops[i].Device)
				devices = max(devices, int(c.Ops[i].Device)+1)
			}
			x := c.Copies
			m := pairMachine(devices, units.Seconds(x.Latency), units.BytesPerSecond(x.Bandwidth))
			for l := range m.Links {
				m.Links[l].EndCosts = hw.EndCosts{Occupies: hw.Sender, Delivery: units.Seconds(x.Delivery), Receive: units.Seconds(x.Receive),
					ReceiveBandwidth: units.BytesPerSecond(x.ReceiveBandwidth)}
			}
			s, err := New(g, m, costTable(slices.Repeat([][]float64{column}, devices)), Default())
			if err != nil {
				t.Fatal(err)
			}
			s.record, s.starts = true, make([]float64, n)
			if got := s.Evaluate(d).Value; math.Abs(got-c.Step) > 1e-9*c.Step {
				t.Errorf("step of %v s, replay.py %v", got, c.Step)
			}
			if order := byKey(s.starts); !c.Static && !slices.EqualFunc(order, c.Order, func(a int32, b int) bool { return int(a) == b }) {
				t.Errorf("order %v, replay.py %v", order, c.Order)
			}
		})
	}
}
