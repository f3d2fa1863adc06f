package roofline

import (
	"math"
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

// TestCalibrated: constants in a device are used in place of the built-in ones,
// those left out stay, and Config's own come first.
func TestCalibrated(t *testing.T) {
	m, err := hw.Take("h100", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	d := &m.Devices[0]
	before := Default().ParamsOf(d)
	fitted := before.With(graph.BF16, GEMMParams{Peak: 0.5, Feed: 3, Ends: 1e-6, Tail: 0.25, Fixed: 2e-6, Memory: 0.6, Odd: 3})
	fitted.Bandwidth, fitted.Ramp, fitted.Fill = 0.9, 3e-6, 4e-7
	fitted.Pattern = [graph.NumClasses]Pattern{graph.ClassReduction: {Fraction: 0.7}, graph.ClassElementwise: {Fraction: 1}}
	d.Calibration = fitted.Calibration([]graph.DType{graph.BF16}, true, "test")
	// Streams are of steps that package measure runs; others have their ramp alone.
	if other := Default().ParamsOf(d); other.Bandwidth != before.Bandwidth || other.Pattern != before.Pattern || other.Ramp != 3e-6 || other.Fill != 4e-7 || other.gemm(graph.BF16) != fitted.gemm(graph.BF16) {
		t.Errorf("constants for a framework's steps: %+v", other)
	}
	got := Measured().ParamsOf(d)
	for k := range got.Pattern { // 0 stands for 1
		if a, b := got.Pattern[k], fitted.Pattern[k]; a.fraction() != b.fraction() || a.Elements != b.Elements || a.Wait != b.Wait {
			t.Errorf("pattern of %v: %+v, want %+v", graph.Class(k), a, b)
		}
	}
	if got.Bandwidth != 0.9 || got.Ramp != 3e-6 || got.Vector != before.Vector || got.gemm(graph.BF16) != fitted.gemm(graph.BF16) || got.gemm(graph.TF32) != before.gemm(graph.TF32) {
		t.Errorf("constants %+v", got)
	}
	cfg := Default()
	cfg.Params = map[string]Params{d.Arch: before}
	if got := cfg.ParamsOf(d); got.Bandwidth != before.Bandwidth {
		t.Errorf("the configuration's constants give way to those of the device")
	}

	b := graph.NewBuilder("sums")
	in := b.Output(b.Op(graph.Op{Name: "in", Kind: "Placeholder", Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Bytes: 1 << 30}), 0)
	b.Op(graph.Op{Name: "sum", Kind: "Sum", Bytes: graph.Auto, Forward: graph.None}, []graph.TensorID{in}, graph.Tensor{Bytes: 4})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(g, m, Measured())
	if err != nil {
		t.Fatal(err)
	}
	want := units.Bytes(1<<30+4).Over(d.MemoryBandwidth*0.9*0.7) + d.Launch + 3e-6 + 4e-7
	if x := r.OpSeconds(1, 0); math.Abs(float64(x/want)-1) > 1e-12 {
		t.Errorf("a sum takes %v, want %v", x, want)
	}
	d.Calibration.Streams.Bandwidth = 2
	if _, err := New(g, m, Measured()); err == nil {
		t.Error("a bandwidth above the peak: no error")
	}
	d.Calibration.Memory = &hw.MemoryConstants{Bandwidth: 0.5, Ramp: 1e-6}
	if got := Default().ParamsOf(d); got.Bandwidth != 0.5 || got.Ramp != 1e-6 || got.Fill != 0 {
		t.Errorf("the file's own memory constants: %+v", got)
	}
}

// TestClassNames: the classes that a machine file may name are this project's.
func TestClassNames(t *testing.T) {
	var names []string
	for k := range graph.NumClasses {
		switch c := graph.Class(k); c {
		case graph.ClassInput, graph.ClassVariable, graph.ClassConst, graph.ClassMeta, graph.ClassGEMM, graph.ClassConv:
		default:
			names = append(names, c.String())
		}
	}
	if !slices.Equal(names, hw.Classes()) {
		t.Errorf("machine files name %v, classes are %v", hw.Classes(), names)
	}
}
