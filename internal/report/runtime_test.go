package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/internal/report"
	"placer/measure/python"
	"placer/plan"
	"placer/sim"
)

// TestMeasuredWithoutTime: an op that the runtime's clock saw for no time at all counts in
// the sums and has no error; the document can be written as JSON.
func TestMeasuredWithoutTime(t *testing.T) {
	b := graph.NewBuilder("g")
	for _, o := range []graph.Op{{Name: "r1", Kind: "Relu"}, {Name: "r2", Kind: "Relu"}, {Name: "m", Kind: "MatMul"}} {
		o.Forward = graph.None
		b.Op(o, nil, graph.Tensor{Bytes: 8})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := &hw.Machine{Name: "m", Devices: []hw.Device{{Name: "cpu:0"}}}
	predicted := &sim.Result{Makespan: 3, Busy: nil, Trace: &sim.Trace{Ops: []sim.OpSpan{{Op: 0, Start: 0, End: 1}, {Op: 1, Start: 1, End: 2}, {Op: 2, Start: 2, End: 3}}}}
	a := &python.Answer{Step: 4, Clock: "wall", Trace: []python.Event{
		{Op: "r1", Device: "cpu:0", Start: 0, End: 2}, {Op: "r2", Device: "cpu:0", Start: 2, End: 2}, {Op: "m", Device: "cpu:0", Start: 2, End: 2},
	}}
	d := report.MeasureRuntime(g, m, &plan.Plan{}, predicted, "tensorflow 2.21.0", a)
	if _, err := json.Marshal(d); err != nil {
		t.Fatal(err)
	}
	if len(d.Classes) != 2 {
		t.Fatalf("classes %+v", d.Classes)
	}
	var text bytes.Buffer
	if err := d.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{"gemm 1 0 s 1 s - - -", "elementwise 2 2 s 2 s 50.0% 50.0%"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, text.String())
		}
	}
	narrow(t, text.String())
}
