package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/hw/gpu"
	"placer/hw/gpu/cuda/cudatest"
	"placer/hw/gpu/fake"
	"placer/hw/nvml"
	"placer/roofline"
	"placer/units"
)

// quick is a configuration for a fake, which has no noise.
func quick() Config {
	c := Default()
	c.Repeats, c.Target, c.Buffer = 3, 1e-4, 256<<20
	c.Messages = []units.Bytes{1 << 10, 64 << 10, 1 << 20, 16 << 20}
	return c
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= tolerance) {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

// TestFiguresComeBack: what the fake GPU was made of is what the benchmark finds.
func TestFiguresComeBack(t *testing.T) {
	f := fake.Default()
	f.Call = 100 // a host that keeps up
	g := fake.New(f)
	cfg := quick()
	cfg.State = func(uuid string) (nvml.State, error) { return nvml.State{SMClock: 1500, Throttle: 4}, nil }
	r, err := Run(context.Background(), cfg, g, g.BLAS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Devices) != 2 || len(r.Links) != 2 {
		t.Fatalf("%d devices, %d links", len(r.Devices), len(r.Links))
	}
	d := &r.Devices[0]
	near(t, "launch", float64(d.Launch.Median), f.Launch/1e9, 0.01)
	near(t, "node", float64(d.Node.Median), f.Node/1e9, 0.01)
	near(t, "copy", float64(d.Copy), f.Bandwidth, 0.05)
	near(t, "to device", float64(d.HostToGPU.Bandwidth), f.HostBandwidth, 0.02)
	near(t, "to device, latency", float64(d.HostToGPU.Latency), f.Copy/1e9, 0.05)
	near(t, "peer", float64(r.Links[0].Bandwidth), f.PeerBandwidth, 0.02)
	near(t, "peer, latency", float64(r.Links[0].Latency), f.Copy/1e9, 0.05)
	near(t, "bf16", d.Best("bf16"), f.FLOPs[gpu.BF16], 0.05)
	near(t, "f32", d.Best("f32"), f.FLOPs[gpu.F32], 0.05)
	if d.Best("f8") != 0 {
		t.Error("f8 products ran on a device without them")
	}
	if len(d.Throttled()) == 0 {
		t.Error("a throttled clock was not noticed")
	}
	if r.Links[0].Error > 0.01 || !r.Links[0].Direct {
		t.Errorf("link %+v", r.Links[0])
	}

	m, err := r.Machine("fake", nil)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	back, err := hw.Read(&file)
	if err != nil || back.Hash() != m.Hash() {
		t.Errorf("the machine file does not read back: %v", err)
	}
	near(t, "launch in a graph", float64(back.Captured().Devices[1].Launch), f.Node/1e9, 0.01)
	near(t, "launch outside", float64(back.Devices[1].Launch), f.Launch/1e9, 0.01)
	near(t, "transfer", float64(m.TransferSeconds(0, 1, 50e6)), 1e-3+f.Copy/1e9, 0.02)

	if err := r.Calibrate(); err != nil {
		t.Fatal(err)
	}
	fits := map[string]fit{}
	for _, x := range r.Fits {
		if x.Device == 0 {
			fits[x.Class] = x
		}
	}
	if x := fits["gemm bf16"]; x.After.MAPE > x.Before.MAPE || x.After.Samples < 30 || x.Unseen == nil || x.After.Kendall < 0.8 {
		t.Errorf("calibration of bf16 products: %+v", x)
	}
	if x := fits["gemm f32"]; x.After.MAPE > 0.5*x.Before.MAPE {
		t.Errorf("calibration of f32 products: %+v", x)
	}
	// Streams of the fake are a line through its bandwidth, which the fit finds.
	for _, class := range []string{"elementwise", "reduction"} {
		if x := fits[class]; x.After.MAPE > 0.01 || x.Stream == nil || x.Stream.Ramp+x.Stream.Fill > 2e-7 {
			t.Errorf("calibration of streams: %s %+v", class, x)
		}
	}

	// The machine file carries the constants, and predicts by them.
	fitted, err := r.Machine("fake", nil)
	if err != nil {
		t.Fatal(err)
	}
	file.Reset()
	if err := fitted.Write(&file); err != nil {
		t.Fatal(err)
	}
	if back, err = hw.Read(&file); err != nil || back.Hash() != fitted.Hash() || back.Hash() == m.Hash() {
		t.Errorf("the machine file with constants does not read back: %v", err)
	}
	for i := range back.Devices {
		p := roofline.Measured().ParamsOf(&back.Devices[i])
		q := p.GEMM[graph.BF16]
		if q != *fits["gemm bf16"].GEMM || p.Ramp != fits["elementwise"].Stream.Ramp {
			t.Errorf("%s predicts by %+v", back.Devices[i].Name, p)
		}
		// What reads the file makes the errors that the fit has told.
		d := back.Devices[i]
		d.Launch = d.GraphLaunch
		if got, want := roofline.Evaluate(r.Devices[i].samples(graph.BF16), &d, p), fits["gemm bf16"].After; math.Abs(got.MAPE-want.MAPE) > 1e-6 && i == 0 {
			t.Errorf("products of bf16 are off by %g by the file, %g by the fit", got.MAPE, want.MAPE)
		}
	}
}

// TestStaged: without direct access the copy goes through the host, and says so.
func TestStaged(t *testing.T) {
	f := fake.Default()
	f.P2P = false
	g := fake.New(f)
	cfg := quick()
	cfg.Shapes = nil
	r, err := Run(context.Background(), cfg, g, g.BLAS(), []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Links[0].Direct {
		t.Error("called direct")
	}
	near(t, "through the host", float64(r.Links[0].Bandwidth), f.HostBandwidth/2, 0.02)
}

func TestErrors(t *testing.T) {
	g := fake.New(fake.Default())
	if _, err := Run(context.Background(), quick(), g, g.BLAS(), []int{5}); err == nil {
		t.Error("GPU 5 of 2: no error")
	}
	bad := quick()
	bad.Repeats = 0
	if _, err := Run(context.Background(), bad, g, g.BLAS(), nil); err == nil {
		t.Error("no repeats: no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cfg := quick()
	cfg.Progress = func(string) { cancel() }
	if _, err := Run(ctx, cfg, g, g.BLAS(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
	if _, err := Run(context.Background(), quick(), g, sick{g.BLAS()}, nil); !errors.As(err, new(gpu.Status)) {
		t.Errorf("products that all fail: error %v, want that of cuBLAS", err)
	}
	none := fake.Default()
	none.Devices = 0
	if _, err := Run(context.Background(), quick(), fake.New(none), nil, nil); !errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("no device: error %v", err)
	}
}

// sick is a cuBLAS whose products of bf16 fail.
type sick struct{ gpu.BLAS }

func (s sick) Multiply(h gpu.Handle, p *gpu.Product) error {
	if p.Type == gpu.BF16 {
		return gpu.Status(14)
	}
	return s.BLAS.Multiply(h, p)
}

func TestFitLine(t *testing.T) {
	for _, c := range []struct{ a, b float64 }{{5e-6, 25e9}, {1e-6, 3e12}, {20e-6, 1e9}} {
		var p []point
		for n := units.Bytes(1 << 10); n <= 256<<20; n *= 4 {
			p = append(p, point{n, stat{Median: units.Seconds(c.a + float64(n)/c.b)}})
		}
		l := fitLine(p)
		near(t, "latency", float64(l.Latency), c.a, 1e-6)
		near(t, "bandwidth", float64(l.Bandwidth), c.b, 1e-6)
		if l.Error > 1e-6 {
			t.Errorf("error %g", l.Error)
		}
	}
	// Times that fall with size are noise; the result stays usable.
	l := fitLine([]point{{1 << 10, stat{Median: 2e-5}}, {1 << 20, stat{Median: 1e-5}}})
	if !(l.Latency > 0) || !(l.Bandwidth > 0) {
		t.Errorf("%+v", l)
	}
}

// TestRealGPU measures this host's GPU briefly.
func TestRealGPU(t *testing.T) {
	d, b := cudatest.Open(t)
	cfg := quick()
	cfg.Shapes = []shape{{1, 4096, 4096, 4096}}
	r, err := Run(context.Background(), cfg, d, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Devices {
		x := &r.Devices[i]
		t.Logf("%s: launch %v, node %v, copy %v, bf16 %.0f TFLOP/s", x.Name, x.Launch.Median, x.Node.Median, x.Copy, x.Best("bf16")/1e12)
		if x.Copy < 1e10 || x.Best("f32") < 1e11 {
			t.Errorf("copies of %v and f32 products of %g FLOP/s are no GPU's", x.Copy, x.Best("f32"))
		}
	}
}

func Example() {
	g := fake.New(fake.Default())
	cfg := quick()
	cfg.Types, cfg.Shapes = []gpu.DType{gpu.BF16}, []shape{{1, 4096, 4096, 4096}}
	r, err := Run(context.Background(), cfg, g, g.BLAS(), []int{0})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := r.Devices[0]
	fmt.Printf("%s: %.0f TFLOP/s in bf16, copies of %.1f TB/s, %v a launch\n", d.Name, d.Best("bf16")/1e12, float64(d.Copy)/1e12, d.Launch.Median)
	// Output:
	// Fake GPU: 300 TFLOP/s in bf16, copies of 1.9 TB/s, 3.026 us a launch
}

// TestShare: what one of two devices on a fake GPU finds. A kernel of the fake
// takes the same on any share, so the figures are those of the whole.
func TestShare(t *testing.T) {
	f := fake.Default()
	f.Call = 100
	g := fake.New(f)
	cfg := quick()
	cfg.Types = []gpu.DType{gpu.TF32}
	r, err := Run(context.Background(), cfg, g, g.BLAS(), []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Calibrate(); err != nil {
		t.Fatal(err)
	}
	m, err := r.Machine("fake", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []bool{false, true} {
		s, err := RunShare(context.Background(), cfg, g, g.BLAS(), 0, 2, own)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "node of a chain", float64(s.Branch.Median), f.Node/1e9, 0.05)
		d := s.On(m.Devices[0])
		near(t, "launch in a graph", float64(d.GraphLaunch), f.Node/1e9, 0.05)
		if !own {
			if len(s.Fits) != 0 || d.Calibration != m.Devices[0].Calibration {
				t.Errorf("a share of nothing has constants: %+v", s.Fits)
			}
			continue
		}
		near(t, "launch", float64(d.Launch), f.Launch/1e9, 0.01)
		if s.SMs != f.SMs/2 || len(s.Together) < 3 || d.Calibration == m.Devices[0].Calibration || d.Calibration.Streams == nil || len(d.Calibration.GEMM) != 1 {
			t.Errorf("%d SMs, %d sizes together, %+v", s.SMs, len(s.Together), d.Calibration)
		}
	}
}

// without is a cuBLAS that fails at one type as no library should.
type without struct {
	gpu.BLAS
	t gpu.DType
}

func (b without) Multiply(h gpu.Handle, p *gpu.Product) error {
	if p.Type == b.t {
		return gpu.Code(900)
	}
	return b.BLAS.Multiply(h, p)
}

// TestPartly: what fails is told, and everything else measured.
func TestPartly(t *testing.T) {
	f := fake.Default()
	f.Devices = 1
	g := fake.New(f)
	r, err := Run(context.Background(), quick(), g, without{g.BLAS(), gpu.F16}, nil)
	if !errors.Is(err, gpu.Code(900)) {
		t.Errorf("error %v", err)
	}
	if len(r.Devices) != 1 || r.Devices[0].Best("f16") != 0 || !(r.Devices[0].Best("bf16") > 0) || !(r.Devices[0].Best("f64") > 0) {
		t.Fatalf("%d devices, f16 %g, bf16 %g", len(r.Devices), r.Devices[0].Best("f16"), r.Devices[0].Best("bf16"))
	}
	if err := r.Calibrate(); err != nil {
		t.Error(err)
	}
	if m, err := r.Machine("fake", nil); err != nil || m.Devices[0].Calibration == nil {
		t.Errorf("no machine of what there is: %v", err)
	}
}
