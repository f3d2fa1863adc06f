package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/sim/trace"
	"placer/units"
)

type costs []float64

func (c costs) OpSeconds(op graph.OpID, _ int) units.Seconds { return units.Seconds(c[op]) }

// step returns a run of three ops on two devices: a sends 3 kB to b, which then
// makes c wait without data.
func step(t testing.TB) (*sim.Trace, *graph.Graph, *hw.Machine) {
	b := graph.NewBuilder("three")
	a := b.Op(graph.Op{Name: `a "quoted"`, Kind: "MatMul"}, nil, graph.Tensor{Bytes: 3000})
	v := b.Op(graph.Op{Name: "b", Kind: "Add"}, []graph.TensorID{b.Output(a, 0)})
	c := b.Op(graph.Op{Name: "c", Kind: "Add"}, nil)
	b.Control(v, c)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := &hw.Machine{Name: "pair", Routes: [][]int32{nil, {0}, {1}, nil}}
	for d := range 2 {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprint("gpu:", d), Kind: hw.GPU, Memory: 1e6, MemoryBandwidth: 1,
			Peak: map[string]units.FLOPsPerSecond{"f32": 1}, SMs: 1})
		m.Links = append(m.Links, hw.Link{Name: fmt.Sprint("link:", d), Bandwidth: 1e9, Latency: 1e-6})
	}
	s, err := sim.New(g, m, costs{2e-6, 3e-6, 1.5e-6}, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: []uint8{0, 1, 0}}}, sim.Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	return r.Trace, g, m
}

func ExampleWriteChrome() {
	t, g, m := step(&testing.T{})
	if err := trace.WriteChrome(os.Stdout, t, g, m); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"displayTimeUnit":"ns","traceEvents":[
	// {"ph":"M","pid":1,"name":"process_name","args":{"name":"three on pair"}},
	// {"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"gpu:0"}},
	// {"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
	// {"ph":"X","pid":1,"tid":1,"name":"a \"quoted\"","ts":0.000,"dur":2.000},
	// {"ph":"X","pid":1,"tid":1,"name":"c","ts":10.000,"dur":1.500},
	// {"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"gpu:1"}},
	// {"ph":"M","pid":1,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
	// {"ph":"X","pid":1,"tid":2,"name":"b","ts":6.000,"dur":3.000},
	// {"ph":"M","pid":1,"tid":3,"name":"thread_name","args":{"name":"gpu:0 to gpu:1"}},
	// {"ph":"M","pid":1,"tid":3,"name":"thread_sort_index","args":{"sort_index":3}},
	// {"ph":"X","pid":1,"tid":3,"name":"a \"quoted\"","ts":2.000,"dur":4.000,"args":{"bytes":3000}},
	// {"ph":"M","pid":1,"tid":4,"name":"thread_name","args":{"name":"gpu:1 to gpu:0"}},
	// {"ph":"M","pid":1,"tid":4,"name":"thread_sort_index","args":{"sort_index":4}},
	// {"ph":"X","pid":1,"tid":4,"name":"control of b","ts":9.000,"dur":1.000},
	// {"ph":"s","pid":1,"tid":1,"name":"tensor","cat":"tensor","id":1,"ts":0.000},
	// {"ph":"t","pid":1,"tid":3,"name":"tensor","cat":"tensor","id":1,"ts":2.000},
	// {"ph":"f","bp":"e","pid":1,"tid":2,"name":"tensor","cat":"tensor","id":1,"ts":6.000},
	// {"ph":"s","pid":1,"tid":2,"name":"tensor","cat":"tensor","id":2,"ts":6.000},
	// {"ph":"f","bp":"e","pid":1,"tid":4,"name":"tensor","cat":"tensor","id":2,"ts":9.000},
	// {"ph":"C","pid":1,"name":"gpu:0 memory","ts":0.000,"args":{"bytes":3000}},
	// {"ph":"C","pid":1,"name":"gpu:0 memory","ts":6.000,"args":{"bytes":0}},
	// {"ph":"C","pid":1,"name":"gpu:1 memory","ts":2.000,"args":{"bytes":3000}},
	// {"ph":"C","pid":1,"name":"gpu:1 memory","ts":9.000,"args":{"bytes":0}}
	// ]}
}

func TestChromeIsJSON(t *testing.T) {
	tr, g, m := step(t)
	var b bytes.Buffer
	if err := trace.WriteChrome(&b, tr, g, m); err != nil {
		t.Fatal(err)
	}
	var doc struct{ TraceEvents []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || len(doc.TraceEvents) != 23 {
		t.Fatalf("%d events, %v", len(doc.TraceEvents), err)
	}
}

// decode prints a protobuf message as nested text, from the wire alone.
func decode(b []byte, fields map[string]bool, prefix string, out *[]string) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			*out = append(*out, "broken")
			return
		}
		b = b[size:]
		at := fmt.Sprintf("%s.%d", prefix, n)
		switch kind {
		case protowire.VarintType:
			x, size := protowire.ConsumeVarint(b)
			*out = append(*out, fmt.Sprintf("%s=%d", at, x))
			b = b[size:]
		case protowire.Fixed64Type:
			x, size := protowire.ConsumeFixed64(b)
			*out = append(*out, fmt.Sprintf("%s=fixed %d", at, x))
			b = b[size:]
		case protowire.BytesType:
			x, size := protowire.ConsumeBytes(b)
			if fields[at] {
				decode(x, fields, at, out)
			} else {
				*out = append(*out, fmt.Sprintf("%s=%q", at, x))
			}
			b = b[size:]
		default:
			*out = append(*out, "unexpected wire type")
			return
		}
	}
}

func TestPerfetto(t *testing.T) {
	tr, g, m := step(t)
	var b bytes.Buffer
	if err := trace.WritePerfetto(&b, tr, g, m); err != nil {
		t.Fatal(err)
	}
	messages := map[string]bool{".1": true, ".1.11": true, ".1.12": true, ".1.12.2": true, ".1.60": true, ".1.60.8": true, ".1.11.4": true}
	var lines []string
	for rest := b.Bytes(); len(rest) > 0; {
		n, _, size := protowire.ConsumeField(rest)
		if n != 1 || size < 0 {
			t.Fatalf("field %d of size %d at the top, want packets", n, size)
		}
		var fields []string
		decode(rest[:size], messages, "", &fields)
		lines = append(lines, strings.ReplaceAll(strings.Join(fields, " "), ".1.", "."))
		rest = rest[size:]
	}
	want := []string{
		`.60.1=1 .60.2="three on pair" .10=1 .13=1`,
		`.60.1=2 .60.2="gpu:0" .60.5=1 .10=1 .13=2`,
		`.8=0 .12.2.1=1 .12.2.2="a \"quoted\"" .11.9=1 .11.11=2 .11.10=1 .11.47=fixed 1 .10=1 .13=2`,
		`.8=2000 .11.9=2 .11.11=2 .10=1 .13=2`,
		`.8=10000 .12.2.1=2 .12.2.2="c" .11.9=1 .11.11=2 .11.10=2 .10=1 .13=2`,
		`.8=11500 .11.9=2 .11.11=2 .10=1 .13=2`,
		`.60.1=3 .60.2="gpu:1" .60.5=1 .10=1 .13=2`,
		`.8=6000 .12.2.1=3 .12.2.2="b" .11.9=1 .11.11=3 .11.10=3 .11.47=fixed 1 .11.47=fixed 2 .10=1 .13=2`,
		`.8=9000 .11.9=2 .11.11=3 .10=1 .13=2`,
		`.60.1=4 .60.2="gpu:0 to gpu:1" .60.5=1 .10=1 .13=2`,
		`.8=2000 .11.9=1 .11.11=4 .11.10=1 .11.4.3=3000 .11.4.10="bytes" .11.47=fixed 1 .10=1 .13=2`,
		`.8=6000 .11.9=2 .11.11=4 .10=1 .13=2`,
		`.60.1=5 .60.2="gpu:1 to gpu:0" .60.5=1 .10=1 .13=2`,
		`.8=9000 .12.2.1=4 .12.2.2="control of b" .11.9=1 .11.11=5 .11.10=4 .11.47=fixed 2 .10=1 .13=2`,
		`.8=10000 .11.9=2 .11.11=5 .10=1 .13=2`,
		`.60.1=6 .60.2="gpu:0 memory" .60.5=1 .60.8.3=3 .10=1 .13=2`,
		`.8=0 .11.9=4 .11.11=6 .11.30=3000 .10=1 .13=2`,
		`.8=6000 .11.9=4 .11.11=6 .11.30=0 .10=1 .13=2`,
		`.60.1=7 .60.2="gpu:1 memory" .60.5=1 .60.8.3=3 .10=1 .13=2`,
		`.8=2000 .11.9=4 .11.11=7 .11.30=3000 .10=1 .13=2`,
		`.8=9000 .11.9=4 .11.11=7 .11.30=0 .10=1 .13=2`,
	}
	for k := range max(len(lines), len(want)) {
		if k >= len(lines) || k >= len(want) || lines[k] != want[k] {
			t.Fatalf("packet %d of %d differs:\n got %s\nwant %s", k, len(lines), strings.Join(lines[k:], "\n"), strings.Join(want[k:], "\n"))
		}
	}
}

// full fails after some bytes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	tr, g, m := step(t)
	for name, write := range map[string]func(*full) error{
		"perfetto": func(f *full) error { return trace.WritePerfetto(f, tr, g, m) },
		"chrome":   func(f *full) error { return trace.WriteChrome(f, tr, g, m) },
	} {
		room := full(100)
		if err := write(&room); err == nil || err.Error() != "disk full" {
			t.Errorf("%s: %v, want disk full", name, err)
		}
	}
}

// Overlapping transfers of one pair, as fair sharing makes them, get a track each.
func TestOverlappingTransfers(t *testing.T) {
	tr, g, m := step(t)
	again := tr.Transfers[0]
	again.Start += 1e-6
	again.End += 1e-6
	tr.Transfers = append(tr.Transfers, again)
	var b bytes.Buffer
	if err := trace.WriteChrome(&b, tr, g, m); err != nil || !strings.Contains(b.String(), `"gpu:0 to gpu:1 (2)"`) {
		t.Fatalf("%v\n%s", err, b.String())
	}
}

// TestArrowsOfFusedOps: a transfer leaves the kernel of the op that made the tensor,
// not another one, and the device that runs nothing else.
func TestArrowsOfFusedOps(t *testing.T) {
	b := graph.NewBuilder("fused")
	a := b.Op(graph.Op{Name: "a", Kind: "Add"}, nil, graph.Tensor{Bytes: 3000})
	v := b.Op(graph.Op{Name: "b", Kind: "Add"}, []graph.TensorID{b.Output(a, 0)}, graph.Tensor{Bytes: 3000})
	b.Op(graph.Op{Name: "c", Kind: "MatMul"}, []graph.TensorID{b.Output(v, 0)})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	_, _, m := step(t)
	m.Devices = append(m.Devices, m.Devices[1]) // all ops are behind the first device
	m.Devices[2].Name = "gpu:2"
	m.Routes = [][]int32{nil, {0}, {0}, {0}, nil, {0}, {0}, {1}, nil}
	s, err := sim.New(g, m, costs{2e-6, 3e-6, 1.5e-6}, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: []uint8{1, 1, 2}, Fusion: []uint8{1, 1, 0}}}, sim.Options{Trace: true})
	if err != nil || r.Kernels != 2 {
		t.Fatal(r, err)
	}
	if err := trace.WritePerfetto(io.Discard, r.Trace, g, m); err != nil {
		t.Error(err)
	}
	var text strings.Builder
	if err := trace.WriteChrome(&text, r.Trace, g, m); err != nil || !strings.Contains(text.String(), `"ph":"s","pid":1,"tid":2`) {
		t.Errorf("%v, no arrow leaves gpu:1 in %s", err, text.String())
	}
}
