package session_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"placer/baselines/search/anneal"
	"placer/baselines/search/local"
	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/hw"
	"placer/hw/gpu"
	"placer/hw/gpu/fake"
	"placer/measure/session"
	"placer/placer/policy/goone"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// products is a graph of matrix products in three branches that exchange results.
func products(r *rand.Rand, layers int) *graph.Graph {
	b := graph.NewBuilder("products")
	var before []graph.TensorID
	for l := range layers {
		var now []graph.TensorID
		for k := range 3 {
			m, n, d := 256+int64(r.IntN(6))*256, 256+int64(r.IntN(6))*256, 512+int64(r.IntN(8))*512
			var in []graph.TensorID
			if l > 0 {
				in = append(in, before[k])
				if r.IntN(3) == 0 {
					in = append(in, before[(k+1)%3])
				}
			}
			op := b.Op(graph.Op{Name: fmt.Sprintf("product%d.%d", l, k), Kind: "MatMul", DType: graph.BF16, GEMM: graph.GEMM{Batch: 1, M: m, N: n, K: d}, Bytes: graph.Auto, Forward: graph.None},
				in, graph.Tensor{DType: graph.BF16, Shape: graph.Shape{m, n}, Bytes: graph.Auto})
			now = append(now, b.Output(op, 0))
		}
		before = now
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// asTheFake is the fake's timing model as a cost model: bf16 products alone.
type asTheFake struct {
	g *graph.Graph
	f *fake.Config
}

func (c asTheFake) OpSeconds(i graph.OpID, _ int) units.Seconds {
	p := c.g.Op(i).GEMM
	flops, bytes := 2*float64(p.M)*float64(p.N)*float64(p.K), 2*float64(p.M*p.K+p.K*p.N+p.M*p.N)
	return units.Seconds(c.f.Launch/1e9 + max(flops/c.f.FLOPs[gpu.BF16], bytes/c.f.Bandwidth))
}

// fakeMachine is n of the fake's devices as a machine, each pair with links of
// the fake's figures.
func fakeMachine(n int, f *fake.Config) *hw.Machine {
	m := &hw.Machine{Name: "fake", Routes: make([][]int32, n*n)}
	for i := range n {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprintf("gpu:%d", i), Model: "Fake", Kind: hw.GPU, Memory: units.Bytes(f.Memory) - 1<<30, MemoryBandwidth: 1e12, SMs: 100, Arch: "sm_80",
			Peak: map[string]units.FLOPsPerSecond{"f32": 2e13, "bf16": 3e14}, Launch: 3e-6})
		for j := range n {
			if i != j {
				m.Routes[i*n+j] = []int32{int32(len(m.Links))}
				m.Links = append(m.Links, hw.Link{Name: fmt.Sprintf("%d>%d", i, j), Bandwidth: units.BytesPerSecond(f.PeerBandwidth), Latency: units.Seconds(f.Copy / 1e9)})
			}
		}
	}
	return m
}

// lab is a problem that the simulator and the fake should agree on.
type lab struct {
	g       *graph.Graph
	m       *hw.Machine
	s       *sim.Simulator
	session *session.Session
	cache   *session.Cache
	task    problem.Problem
}

func newLab(t *testing.T, layers int) *lab {
	return newLabOf(t, products(rand.New(rand.NewPCG(4, 2)), layers), func(g *graph.Graph, f *fake.Config) sim.CostModel { return asTheFake{g, f} })
}

func newLabOf(t *testing.T, g *graph.Graph, model func(*graph.Graph, *fake.Config) sim.CostModel) *lab {
	t.Helper()
	f := fake.Default()
	f.Devices, f.Call = 3, 0 // a host that takes no time: the simulator knows none
	x := &lab{g: g, m: fakeMachine(3, &f)}
	costs := model(g, &f)
	var err error
	if x.s, err = sim.New(x.g, x.m, costs, sim.Default()); err != nil {
		t.Fatal(err)
	}
	d := fake.New(f)
	how := session.DefaultSettings()
	how.Repeats = 2
	if x.session, err = session.New(session.Config{Graph: x.g, Machine: x.m, Simulator: x.s, Costs: costs, Driver: d, BLAS: d.BLAS(), Settings: how, Clock: d.Clock}); err != nil {
		t.Fatal(err)
	}
	if x.cache, err = session.OpenCache(filepath.Join(t.TempDir(), "cache")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.cache.Close() })
	h, err := unit.Find(x.g, x.s.OpSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	x.task = problem.Problem{
		Problem:   plan.Problem{Graph: x.g, Machine: x.m, Units: h, Evaluator: x.s, Decision: plan.Decision{Priority: sim.CriticalPathPriority(x.g, x.s.OpSeconds(0))}, Tasks: plan.Place},
		Simulator: x.s, Bound: float64(x.s.LowerBound(t.Context()).Seconds),
	}
	return x
}

func (x *lab) measurements(t *testing.T, ctx context.Context) *session.Measurements {
	return session.NewMeasurements(ctx, x.session, x.cache, session.Key{Graph: x.g.Hash(), Machine: x.m.Hash()}, func(err error) { t.Error(err) })
}

// TestHardwareAgreesWithSimulator: on GPUs that take the predicted times, whole
// searches come to the same plan whether the policy's samples are simulated,
// measured, or screened and measured, and every row's measured step is the
// predicted one.
func TestHardwareAgreesWithSimulator(t *testing.T) {
	x := newLab(t, 6)
	ctx := context.Background()
	methods := []search.Method{
		{Name: "local", Kind: plan.Search, Stage: search.StageSearch, Weight: 1, New: func(search.Start) (plan.Placer, error) { return local.Placer{}, nil }},
		{Name: "GO-one", Kind: plan.Policy, Stage: search.StageSearch, Weight: 3, New: func(search.Start) (plan.Placer, error) {
			c := goone.Default()
			c.Level = unit.Op
			return goone.New(c)
		}},
	}
	searchWith := func(name string, change func(*search.Host, *session.Measurements)) *search.Result {
		task := x.task
		j := x.measurements(t, ctx)
		c := search.Default()
		c.Budget, c.Seed, c.Workers = plan.Budget{Evaluations: 300}, 3, 1
		clock := func() float64 { return 0 }
		host := search.Host{Clock: clock, CPU: clock}
		change(&host, j)
		r, err := search.Search(ctx, &task, methods, c, host)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range r.Rows {
			row := &r.Rows[i]
			if row.Predicted != nil && math.Abs(row.Score.Value/row.Predicted.Value-1) > 1e-5 {
				t.Errorf("%s: %s measured %v, predicted %v", name, row.Method, row.Score.Value, row.Predicted.Value)
			}
		}
		if n := j.Counts(); n.Failed != 0 || n.OverMemory != 0 {
			t.Errorf("%s: %+v", name, n)
		}
		return r
	}
	simulated := searchWith("roofline", func(*search.Host, *session.Measurements) {})
	for name, change := range map[string]func(*search.Host, *session.Measurements){
		"hardware": func(h *search.Host, j *session.Measurements) {
			h.Measurer, h.Rollouts = j, session.NewEvaluator(x.s.Clone(), j).Rollouts
		},
		"both": func(h *search.Host, j *session.Measurements) {
			s, err := session.NewPrescreen(x.s.Clone(), j, 4)
			if err != nil {
				t.Fatal(err)
			}
			h.Measurer, h.Rollouts = j, s.Rollouts
		},
	} {
		got := searchWith(name, change)
		for i := range simulated.Rows {
			a, b := &simulated.Rows[i], &got.Rows[i]
			if !slices.Equal(a.Device, b.Device) {
				t.Errorf("%s: %s has another placement than by simulation: %v, %v", name, a.Method, a.Score.Value, b.Score.Value)
			}
			if math.Abs(b.Score.Value/a.Score.Value-1) > 1e-5 {
				t.Errorf("%s: %s takes %v measured, %v simulated", name, a.Method, b.Score.Value, a.Score.Value)
			}
		}
		if got.Best != simulated.Best {
			t.Errorf("%s: %s is best, by simulation %s", name, got.Rows[got.Best].Method, simulated.Rows[simulated.Best].Method)
		}
	}
	if r := simulated.Row("GO-one"); !(r.Score.Value < x.serial()) {
		t.Errorf("the policy's %v is no better than one device's %v", r.Score.Value, x.serial())
	}
}

func (x *lab) serial() (sum float64) {
	for _, s := range x.s.OpSeconds(0) {
		sum += s
	}
	return sum
}

// chains is a graph of products with an activation each, and of loops behind them,
// which a plan may fuse.
func chains(r *rand.Rand, layers int) *graph.Graph {
	b := graph.NewBuilder("chains")
	const side = 1024
	out := graph.Tensor{DType: graph.BF16, Shape: graph.Shape{side, side}, Bytes: graph.Auto}
	op := func(name string, kind graph.Kind, k int64, in ...graph.TensorID) graph.TensorID {
		o := graph.Op{Name: name, Kind: kind, DType: graph.BF16, Bytes: graph.Auto, Forward: graph.None}
		if k > 0 {
			o.GEMM = graph.GEMM{Batch: 1, M: side, N: side, K: k}
		}
		return b.Output(b.Op(o, in, out), 0)
	}
	before := make([]graph.TensorID, 3)
	for k := range before {
		before[k] = op(fmt.Sprint("in", k), "Tanh", 0)
	}
	for l := range layers {
		var now []graph.TensorID
		for k := range before {
			x := op(fmt.Sprintf("product%d.%d", l, k), "MatMul", 512*(1+int64(r.IntN(8))), before[k])
			x = op(fmt.Sprintf("act%d.%d", l, k), "Softmax", 0, op(fmt.Sprintf("tanh%d.%d", l, k), "Tanh", 0, x)) // nothing joins a softmax
			other := before[r.IntN(3)]
			x = op(fmt.Sprintf("add%d.%d", l, k), "Add", 0, x, other)
			now = append(now, op(fmt.Sprintf("mul%d.%d", l, k), "Mul", 0, x, other))
		}
		before = now
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// chainsOnFake is what the fake takes for chains.
type chainsOnFake struct {
	g *graph.Graph
	f *fake.Config
}

func (c chainsOnFake) Parts(i graph.OpID, _ int) fuse.Parts {
	if p := c.g.Op(i).GEMM; !p.IsZero() {
		return fuse.Parts{Compute: asTheFake(c).OpSeconds(i, 0) - units.Seconds(c.f.Launch/1e9), Launch: units.Seconds(c.f.Launch / 1e9)}
	}
	return fuse.Parts{PerByte: 1 / c.f.Bandwidth, Launch: units.Seconds(c.f.Launch / 1e9)}
}

func (c chainsOnFake) OpSeconds(i graph.OpID, d int) units.Seconds {
	p := c.Parts(i, d)
	return p.Compute + units.Seconds(float64(c.g.Op(i).Bytes)*p.PerByte) + p.Launch
}

// TestFusedAgrees: where samples have priorities and fusion too, each is measured
// with its own, and takes what the simulator says; the best plan fuses.
func TestFusedAgrees(t *testing.T) {
	for _, evaluator := range []string{"hardware", "both"} {
		x := newLabOf(t, chains(rand.New(rand.NewPCG(1, 3)), 2), func(g *graph.Graph, f *fake.Config) sim.CostModel { return chainsOnFake{g, f} })
		x.task.Tasks = plan.AllTasks
		x.task.Bound = float64(x.s.FusedLowerBound().Seconds)
		j := x.measurements(t, context.Background())
		clock := func() float64 { return 0 }
		host := search.Host{Clock: clock, CPU: clock, Measurer: j, Rollouts: session.NewEvaluator(x.s.Clone(), j).Rollouts}
		if evaluator == "both" {
			s, err := session.NewPrescreen(x.s.Clone(), j, 4)
			if err != nil {
				t.Fatal(err)
			}
			host.Rollouts = s.Rollouts
		}
		methods := []search.Method{
			{Name: "annealing", Kind: plan.Search, Stage: search.StageSearch, Weight: 1, New: func(search.Start) (plan.Placer, error) { return anneal.Placer{Workers: 1}, nil }},
			{Name: "GO-one", Kind: plan.Policy, Stage: search.StageSearch, Weight: 1, New: func(search.Start) (plan.Placer, error) {
				return goone.New(goone.Default())
			}},
		}
		c := search.Default()
		c.Budget, c.Seed, c.Workers = plan.Budget{Evaluations: 96}, 3, 1
		r, err := search.Search(context.Background(), &x.task, methods, c, host)
		if err != nil {
			t.Fatalf("%s: %v", evaluator, err)
		}
		for i := range r.Rows {
			row := &r.Rows[i]
			if row.Predicted == nil || math.Abs(row.Score.Value/row.Predicted.Value-1) > 1e-5 {
				t.Errorf("%s: %s measured %v, predicted %v", evaluator, row.Method, row.Score.Value, row.Predicted)
			}
			if !slices.ContainsFunc(row.Fusion, func(f uint8) bool { return f != fuse.Never }) {
				t.Errorf("%s: %s fuses nothing", evaluator, row.Method)
			}
		}
		if n := j.Counts(); n.Failed != 0 || n.OverMemory != 0 || n.Measured < 10 {
			t.Errorf("%s: %+v", evaluator, n)
		}
	}
}

// moody measures predicted times off by a factor that depends on the plan, and
// remembers what it was asked for.
type moody struct {
	s     *sim.Simulator
	asked map[string]bool
}

func (m *moody) Parallel() int { return 1 }
func (m *moody) Measure(_ context.Context, d plan.Decision) (plan.Score, error) {
	hash := session.PlanHash(d)
	m.asked[hash] = true
	factor := 0.5 + float64(hash[0]%16)/8
	return plan.Score{Value: factor * m.s.Evaluate(plan.Decision{Device: d.Device, Priority: d.Priority, Fusion: d.Fusion}).Value}, nil
}

// TestBestIsMeasured: however promising an estimate is, the policy's plan is one
// that has been measured, with that time.
func TestBestIsMeasured(t *testing.T) {
	x := newLab(t, 4)
	m := &moody{x.s.Clone().(*sim.Simulator), map[string]bool{}}
	j := session.NewMeasurements(context.Background(), m, x.cache, session.Key{Graph: "g", Machine: "m"}, func(err error) { t.Error(err) })
	s, err := session.NewPrescreen(x.s.Clone(), j, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := goone.Default()
	c.Level = unit.Op
	p, err := goone.New(c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Place(context.Background(), &plan.Problem{Graph: x.g, Machine: x.m, Units: x.task.Units, Decision: plan.Decision{Priority: x.task.Priority}, Evaluator: x.s.Clone(), Rollouts: s, Budget: plan.Budget{Evaluations: 160}, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	d := plan.Decision{Device: out.Device, Priority: x.task.Priority}
	if hash := session.PlanHash(d); !m.asked[hash] {
		t.Error("the best plan was never measured")
	}
	want, _ := m.Measure(context.Background(), d)
	if out.Score != want {
		t.Errorf("best score %+v, measured %+v", out.Score, want)
	}
	if rounds := 160 / 16; len(m.asked) > 2*rounds+1 {
		t.Errorf("%d plans measured in %d rounds", len(m.asked), rounds)
	}
}
