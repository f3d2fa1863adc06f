package roofline

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

func Example() {
	b := graph.NewBuilder("layer")
	x := b.Op(graph.Op{Name: "x", Kind: "Placeholder", Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{64, 2048}, Bytes: graph.Auto})
	w := b.Op(graph.Op{Name: "w", Kind: "VariableV2", Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{2048, 8192}, Bytes: graph.Auto})
	product := graph.GEMM{Batch: 1, M: 64, N: 8192, K: 2048}
	y := b.Op(graph.Op{Name: "y", Kind: "MatMul", GEMM: product, FLOPs: product.FLOPs(), Bytes: graph.Auto, Forward: graph.None},
		[]graph.TensorID{b.Output(x, 0), b.Output(w, 0)}, graph.Tensor{Shape: graph.Shape{64, 8192}, Bytes: graph.Auto})
	b.Op(graph.Op{Name: "z", Kind: "Tanh", FLOPs: 4 * 64 * 8192, Bytes: graph.Auto, Forward: graph.None}, []graph.TensorID{b.Output(y, 0)}, graph.Tensor{Shape: graph.Shape{64, 8192}, Bytes: graph.Auto})
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"p100", "h100"} {
		m, err := hw.Take(name, 1, false)
		if err != nil {
			fmt.Println(err)
			return
		}
		model, err := New(g, m, Default())
		if err != nil {
			fmt.Println(err)
			return
		}
		for i := range g.NumOps() {
			c := model.Cost(graph.OpID(i), 0)
			fmt.Printf("%s on %s: %v, mostly %v\n", g.Op(graph.OpID(i)).Name, m.Devices[0].Model, c.Seconds(), c.Bound())
		}
	}
	// Output:
	// x on P100-PCIe-16GB: 200 ns, mostly launch
	// w on P100-PCIe-16GB: 200 ns, mostly launch
	// y on P100-PCIe-16GB: 312.9 us, mostly compute
	// z on P100-PCIe-16GB: 16.19 us, mostly memory
	// x on H100-SXM-80GB: 200 ns, mostly launch
	// w on H100-SXM-80GB: 200 ns, mostly launch
	// y on H100-SXM-80GB: 33.5 us, mostly memory
	// z on H100-SXM-80GB: 4.16 us, mostly launch
}

// flat is a device whose constants make sums easy.
func flat() (*hw.Machine, Config) {
	m := &hw.Machine{Name: "flat", Routes: make([][]int32, 1), Devices: []hw.Device{{
		Name: "gpu:0", Model: "F", Arch: "flat", Kind: hw.GPU, Memory: 1e9, MemoryBandwidth: 1e11, SMs: 1, Launch: 5e-6,
		Peak: map[string]units.FLOPsPerSecond{"f32": 1e12, "tf32": 4e12, "f64": 0.5e12},
	}}}
	p := Params{
		GEMM:      map[graph.DType]GEMMParams{graph.F32: {Peak: 1, Fixed: 3e-6}},
		Bandwidth: 0.5, Ramp: 2e-6, Vector: 0.25,
	}
	p.Pattern[graph.ClassReduction] = Pattern{Fraction: 0.1, Elements: 1, Wait: 1e-6} // 1e9 elements a second
	p.Pattern[graph.ClassGather].Fraction, p.Pattern[graph.ClassOther].Fraction = 0.1, 0.4
	return m, Config{Bookkeeping: 1e-7, TF32: true, Params: map[string]Params{"flat": p}}
}

func TestCostByHand(t *testing.T) {
	product := graph.GEMM{Batch: 1, M: 256, N: 128, K: 1000} // one tile: 65.536e6 operations
	for _, c := range []struct {
		name string
		op   graph.Op
		tf32 bool
		want Cost
	}{
		{"elementwise", graph.Op{Kind: "Add", FLOPs: 1e6, Bytes: 1e6}, true, Cost{1e6 / 0.25e12, 1e6 / 0.5e11, 7e-6}},
		{"elementwise in double precision", graph.Op{Kind: "Add", DType: graph.F64, FLOPs: 1e6, Bytes: 1e6}, true, Cost{1e6 / 0.125e12, 1e6 / 0.5e11, 7e-6}},
		{"gather", graph.Op{Kind: "Gather", Bytes: 1e6}, true, Cost{0, 1e6 / 0.05e11, 7e-6}},
		{"one element at a time", graph.Op{Kind: "Sum", Bytes: 1e6}, true, Cost{0, 1e6 / 0.04e11, 8e-6}},
		{"narrow elements", graph.Op{Kind: "Sum", DType: graph.F16, Bytes: 1e6}, true, Cost{0, 1e6 / 0.02e11, 8e-6}},
		{"wide elements", graph.Op{Kind: "Sum", DType: graph.F64, Bytes: 1e6}, true, Cost{0, 1e6 / 0.05e11, 8e-6}},
		{"unknown kind", graph.Op{Kind: "Mystery", Bytes: 1e6}, true, Cost{0, 1e6 / 0.2e11, 7e-6}},
		{"no bytes either", graph.Op{Kind: "Mystery"}, true, Cost{0, 0, 7e-6}},
		{"view", graph.Op{Kind: "Reshape", Bytes: 1e6, FLOPs: 1e6}, true, Cost{0, 0, 1e-7}},
		{"variable", graph.Op{Kind: "VariableV2"}, true, Cost{0, 0, 1e-7}},
		{"input", graph.Op{Kind: "Placeholder"}, true, Cost{0, 0, 1e-7}},
		{"constant", graph.Op{Kind: "Const"}, true, Cost{0, 0, 1e-7}},
		{"product as tf32", graph.Op{Kind: "MatMul", GEMM: product, FLOPs: product.FLOPs(), Bytes: 1e6}, true, Cost{65.536e6 / 4e12, 1e6 / 0.5e11, 8e-6}},
		{"product as f32", graph.Op{Kind: "MatMul", GEMM: product, FLOPs: product.FLOPs(), Bytes: 1e6}, false, Cost{65.536e6 / 1e12, 1e6 / 0.5e11, 8e-6}},
		{"precise product", graph.Op{Kind: "MatMul", Precise: true, GEMM: product, FLOPs: product.FLOPs(), Bytes: 1e6}, true, Cost{65.536e6 / 1e12, 1e6 / 0.5e11, 8e-6}},
		{"product of a type without a rate", graph.Op{Kind: "MatMul", DType: graph.BF16, GEMM: product, FLOPs: product.FLOPs()}, true, Cost{65.536e6 / 1e12, 0, 8e-6}},
		{"product with an addition in it", graph.Op{Kind: "Gemm", DType: graph.BF16, GEMM: product, FLOPs: product.FLOPs() + 1e6}, true, Cost{65.536e6/1e12 + 1e6/0.25e12, 0, 8e-6}},
		{"product without dimensions", graph.Op{Kind: "Einsum", FLOPs: 1e6, Bytes: 1e6}, true, Cost{1e6 / 0.25e12, 1e6 / 0.5e11, 7e-6}},
		{"ten iterations", graph.Op{Kind: "Add", Repeats: 10, FLOPs: 1e7, Bytes: 1e7}, true, Cost{1e7 / 0.25e12, 1e7 / 0.5e11, 70e-6}},
		{"three kernels each", graph.Op{Kind: "Mystery", Repeats: 10, Kernels: 3, Bytes: 1e7}, true, Cost{0, 1e7 / 0.2e11, 210e-6}},
		{"ten steps of a layer", graph.Op{Kind: "LSTM", Repeats: 10, GEMM: product, FLOPs: 10 * (product.FLOPs() + 1e6), Bytes: 1e7}, true, Cost{10 * (65.536e6/4e12 + 1e6/0.25e12), 1e7 / 0.5e11, 80e-6}},
		{"products of three kernels", graph.Op{Kind: "while", Repeats: 10, Kernels: 3, GEMM: product, FLOPs: 10 * product.FLOPs()}, true, Cost{10 * 65.536e6 / 4e12, 0, 10 * (8e-6 + 2*7e-6)}},
		{"the bytes of one kernel", graph.Op{Kind: "while", Repeats: 10, GEMM: product, FLOPs: 10 * product.FLOPs(), Bytes: 1e7}, true, Cost{10 * 65.536e6 / 4e12, 1e7 / 0.5e11, 80e-6}},
		{"of three", graph.Op{Kind: "while", Repeats: 10, Kernels: 3, GEMM: product, FLOPs: 10 * product.FLOPs(), Bytes: 1e7}, true, Cost{10 * 65.536e6 / 4e12, 1e7 / 0.2e11, 220e-6}},
		{"a view in a loop", graph.Op{Kind: "Reshape", Repeats: 10}, true, Cost{0, 0, 1e-7}},
		// 9*1000 of the 256*128*1000 operations of a tile: cheaper without tiles.
		{"depthwise", graph.Op{Kind: "DepthwiseConv2dNative", DType: graph.BF16, GEMM: graph.GEMM{Batch: 1000, M: 1, N: 1, K: 9}, FLOPs: 18e3}, true, Cost{18e3 / 0.25e12, 0, 8e-6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, cfg := flat()
			cfg.TF32 = c.tf32
			c.op.Name, c.op.Forward = "op", graph.None
			b := graph.NewBuilder("g")
			b.Op(c.op, nil)
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			r, err := New(g, m, cfg)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Cost(0, 0)
			for _, x := range [][2]units.Seconds{{got.Compute, c.want.Compute}, {got.Memory, c.want.Memory}, {got.Launch, c.want.Launch}, {r.OpSeconds(0, 0), c.want.Seconds()}} {
				if math.Abs(float64(x[0]-x[1])) > 1e-12*float64(x[1]) {
					t.Errorf("cost %+v (%v), want %+v", got, r.OpSeconds(0, 0), c.want)
					break
				}
			}
		})
	}
}

// What a calibration may add: a kernel smaller than a block for each multiprocessor
// fills less, a product has a bandwidth of its own, and odd rows make it slower.
func TestCalibratedCostByHand(t *testing.T) {
	even, odd := graph.GEMM{Batch: 1, M: 256, N: 128, K: 1000}, graph.GEMM{Batch: 1, M: 256, N: 127, K: 1000}
	for _, c := range []struct {
		name string
		op   graph.Op
		want Cost
	}{
		{"a quarter filled", graph.Op{Kind: "Add", Bytes: 1024}, Cost{0, 1024 / 0.5e11, 7e-6 + 0.25*4e-7}},
		{"filled", graph.Op{Kind: "Add", Bytes: 1e6}, Cost{0, 1e6 / 0.5e11, 7e-6 + 4e-7}},
		{"product", graph.Op{Kind: "MatMul", GEMM: even, FLOPs: even.FLOPs(), Bytes: 1e6}, Cost{65.536e6 / 1e12, 1e6 / 0.8e11, 8e-6}},
		{"odd product", graph.Op{Kind: "MatMul", GEMM: odd, FLOPs: odd.FLOPs(), Bytes: 1e6}, Cost{3 * 65.536e6 / 1e12, 1e6 / 0.8e11, 8e-6}},
	} {
		m, cfg := flat()
		cfg.TF32 = false
		p := cfg.Params["flat"].With(graph.F32, GEMMParams{Peak: 1, Fixed: 3e-6, Memory: 0.8, Odd: 3})
		p.Fill = 4e-7
		x := newDeviceModel(&m.Devices[0], Config{Bookkeeping: 1e-7, Params: map[string]Params{"flat": p}})
		c.op.Name, c.op.Forward = "op", graph.None
		got := x.cost(&c.op)
		for _, y := range [][2]units.Seconds{{got.Compute, c.want.Compute}, {got.Memory, c.want.Memory}, {got.Launch, c.want.Launch}} {
			if math.Abs(float64(y[0]-y[1])) > 1e-12*float64(c.want.Seconds()) {
				t.Errorf("%s: cost %+v, want %+v", c.name, got, c.want)
				break
			}
		}
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		cost Cost
		want string
	}{
		{Cost{3, 2, 1}, "compute"}, {Cost{2, 3, 1}, "memory"}, {Cost{1, 2, 3}, "launch"}, {Cost{2, 2, 2}, "compute"},
	} {
		if got := c.cost.Bound().String(); got != c.want {
			t.Errorf("%+v is bound by %s, want %s", c.cost, got, c.want)
		}
	}
}

func TestEveryOpTakesTime(t *testing.T) {
	b := graph.NewBuilder("ops")
	for _, k := range []graph.Kind{"Placeholder", "VariableV2", "Const", "Identity", "MatMul", "Conv2D", "Add", "Sum", "ConcatV2", "Gather", "MaxPool", "ApplyAdam", "Mystery"} {
		b.Op(graph.Op{Name: string(k), Kind: k, Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Bytes: 4096})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hw.Names() {
		m, err := hw.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(g, m, Default())
		if err != nil {
			t.Fatal(err)
		}
		for d := range m.Devices {
			if len(r.Seconds(d)) != g.NumOps() {
				t.Fatalf("%d times of %d ops", len(r.Seconds(d)), g.NumOps())
			}
			for i := range g.NumOps() {
				c := r.Cost(graph.OpID(i), d)
				if s := r.OpSeconds(graph.OpID(i), d); !(s > 0) || s != c.Seconds() || s != r.Seconds(d)[i] {
					t.Errorf("%s on %s: %v, parts %+v", g.Op(graph.OpID(i)).Name, m.Devices[d].Name, s, c)
				}
			}
		}
	}
}

// Devices of equal figures share a table; a device that differs has its own,
// even under the same model name.
func TestTablesPerDistinctDevice(t *testing.T) {
	g := benchGraph(t, 30)
	m, err := hw.Take("p100", 3, true)
	if err != nil {
		t.Fatal(err)
	}
	m.Devices[1].Launch *= 2
	r, err := New(g, m, Default())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.table) != 3 {
		t.Errorf("%d tables for GPU, slower GPU, GPU, CPU; want 3", len(r.table))
	}
	if a, b, c := r.OpSeconds(0, 0), r.OpSeconds(0, 1), r.OpSeconds(0, 2); a != c || b <= a {
		t.Errorf("times %v, %v, %v; want the first and the last equal, the second longer", a, b, c)
	}
}

// A peak of f64 is that of matrix units where a chip has them: products get it, elementwise
// arithmetic half the rate of f32, as on a chip without.
func TestDoublePrecision(t *testing.T) {
	product := graph.GEMM{Batch: 1, M: 8192, N: 8192, K: 8192}
	for _, c := range []struct {
		machine string
		ratio   float64 // of f64's peak to the rate of vector units
	}{{"v100", 1}, {"a100", 2}, {"h100", 2}, {"h200", 2}, {"h200m", 2}, {"b200", 1}} {
		m, err := hw.Take(c.machine, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		x := newDeviceModel(&m.Devices[0], Default())
		single, double := x.cost(&graph.Op{Kind: "Add", FLOPs: 1e9}).Compute, x.cost(&graph.Op{Kind: "Add", DType: graph.F64, FLOPs: 1e9}).Compute
		if r := float64(double / single); r < 1.99 || r > 2.01 {
			t.Errorf("%s: elementwise arithmetic in f64 takes %.3f times that in f32, want 2", c.machine, r)
		}
		peak := m.Devices[0].Peak
		if r := 2 * float64(peak["f64"]/peak["f32"]); r < 0.99*c.ratio || r > 1.01*c.ratio {
			t.Errorf("%s: f64 %v beside f32 %v", c.machine, peak["f64"], peak["f32"])
		}
		got, least := x.cost(&graph.Op{Kind: "MatMul", DType: graph.F64, GEMM: product, FLOPs: product.FLOPs(), Precise: true}).Compute, product.FLOPs().Over(peak["f64"])
		if got < least || got > least*3/2 {
			t.Errorf("%s: a product of f64 takes %v, at the peak %v", c.machine, got, least)
		}
	}
}

// A device of unknown architecture has the constants of its kind.
func TestUnknownArchitecture(t *testing.T) {
	cfg := Default()
	for _, c := range []struct {
		d    hw.Device
		want string
	}{
		{hw.Device{Kind: hw.GPU, Arch: "sm_90"}, "sm_90"},
		{hw.Device{Kind: hw.GPU, Arch: "gfx942"}, "sm_80"},
		{hw.Device{Kind: hw.GPU}, "sm_80"},
		{hw.Device{Kind: hw.CPU}, "avx2"},
	} {
		want := builtin[c.want]
		if got := cfg.params(&c.d); got.Ramp != want.Ramp || got.Pattern != want.Pattern || got.gemm(graph.F32) != want.gemm(graph.F32) {
			t.Errorf("%+v does not have the constants of %s", c.d, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	for _, arch := range sortedKeys(builtin) {
		if err := builtin[arch].Validate(); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
	good := builtin["sm_90"]
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"bookkeeping", func(c *Config) { c.Bookkeeping = 0 }, "bookkeeping time 0 s"},
		{"not a number", func(c *Config) { c.Bookkeeping = units.Seconds(math.NaN()) }, "bookkeeping"},
		{"bandwidth", func(c *Config) { p := good; p.Bandwidth = 1.5; c.Params = map[string]Params{"x": p} }, "constants of x: bandwidth is 1.5"},
		{"ramp", func(c *Config) { p := good; p.Ramp = -1; c.Params = map[string]Params{"x": p} }, "ramp"},
		{"fill", func(c *Config) { p := good; p.Fill = 2; c.Params = map[string]Params{"x": p} }, "fill is 2 s"},
		{"pattern", func(c *Config) {
			p := good
			p.Pattern[graph.ClassGather].Fraction = -1
			c.Params = map[string]Params{"x": p}
		}, "pattern of gather"},
		{"elements", func(c *Config) {
			p := good
			p.Pattern[graph.ClassMove].Elements = 1e6
			c.Params = map[string]Params{"x": p}
		}, "pattern of move: 1e+06 elements"},
		{"wait", func(c *Config) {
			p := good
			p.Pattern[graph.ClassMove].Wait = -1
			c.Params = map[string]Params{"x": p}
		}, "pattern of move: wait is -1 s"},
		{"no f32", func(c *Config) { p := good; p.GEMM = nil; c.Params = map[string]Params{"x": p} }, "no matrix-product constants"},
		{"product peak", func(c *Config) {
			c.Params = map[string]Params{"x": good.With(graph.F16, GEMMParams{})}
		}, "f16 peak is 0"},
		{"product tail", func(c *Config) {
			c.Params = map[string]Params{"x": good.With(graph.F16, GEMMParams{Peak: 1, Tail: 2})}
		}, "tail 2"},
		{"product memory", func(c *Config) {
			c.Params = map[string]Params{"x": good.With(graph.F16, GEMMParams{Peak: 1, Memory: 1.5})}
		}, "f16 memory is 1.5"},
		{"odd rows", func(c *Config) {
			c.Params = map[string]Params{"x": good.With(graph.F16, GEMMParams{Peak: 1, Odd: 0.5})}
		}, "f16 odd is 0.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Default()
			c.change(&cfg)
			if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			m, _ := flat()
			if _, err := New(benchGraph(t, 1), m, cfg); err == nil {
				t.Error("New took it")
			}
		})
	}
}

// benchGraph has n ops, a third of them products of 32 shapes, as unrolled
// recurrent networks have.
func benchGraph(tb testing.TB, n int) *graph.Graph {
	b := graph.NewBuilder("bench")
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Kind: "Add", Bytes: 1 << 20, FLOPs: 1 << 18, Forward: graph.None}
		if i%3 == 0 {
			o.Kind, o.GEMM = "MatMul", graph.GEMM{Batch: 1, M: 64, N: int64(128 * (1 + i%32)), K: 2048}
			o.FLOPs = o.GEMM.FLOPs()
		}
		b.Op(o, nil)
	}
	g, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// BenchmarkNew is to stay under 50 ms for the largest graph of the papers.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{10_000, 84_000} {
		b.Run(fmt.Sprintf("ops=%dk", n/1000), func(b *testing.B) {
			g := benchGraph(b, n)
			m, err := hw.Take("p100", 8, true)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := New(g, m, Default()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Steps that are run have no executor that visits ops which launch nothing, and
// read a convolution's input once for every position of its kernel.
func TestMeasuredSettings(t *testing.T) {
	m, err := hw.Take("h100", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	b := graph.NewBuilder("conv")
	conv := graph.Op{Name: "conv", Kind: "Conv2D", Bytes: 40 << 20, Forward: graph.None, GEMM: graph.GEMM{Batch: 1, M: 1 << 17, N: 32, K: 9 * 32}}
	conv.FLOPs = conv.GEMM.FLOPs()
	b.Op(conv, nil)
	b.Op(graph.Op{Name: "view", Kind: "Reshape", Forward: graph.None}, nil)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	std, err := New(g, m, Default())
	if err != nil {
		t.Fatal(err)
	}
	run, err := New(g, m, Measured())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := std.OpSeconds(1, 0), run.OpSeconds(1, 0); a != Default().Bookkeeping || b > 1e-8 {
		t.Errorf("a view takes %v, when measured %v", a, b)
	}
	operands := units.Bytes(4 * ((1<<17)*9*32 + 9*32*32 + (1<<17)*32))
	if got, want := run.OpSeconds(0, 0), operands.Over(m.Devices[0].MemoryBandwidth); got < want || got <= std.OpSeconds(0, 0) {
		t.Errorf("a convolution as a product takes %v, reading its operands %v; as an op %v", got, want, std.OpSeconds(0, 0))
	}
}
