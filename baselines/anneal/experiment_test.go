//go:build experiment

package anneal

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"placer/baselines/human"
	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/units"
	"placer/workloads"
)

var workload = flag.String("workload", "gnmt8", "workload")
var gpus = flag.Int("gpus", 8, "GPUs")
var detail = flag.Bool("detail", false, "print every chain")

func TestUnits(t *testing.T) {
	g, err := workloads.Build(*workload)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", *gpus, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		t.Fatal(err)
	}
	sec := make([]float64, g.NumOps())
	total := 0.0
	for i := range sec {
		sec[i] = float64(r.OpSeconds(graph.OpID(i), 0))
		total += sec[i]
	}
	t0 := time.Now()
	h, err := unit.Find(g, sec)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s: %d ops, total %.1f ms, resident %v, found in %v\n", *workload, g.NumOps(), total*1e3, g.Resident(), time.Since(t0))
	if err := h.Check(g); err != nil {
		t.Fatal(err)
	}
	for l, p := range h.Levels {
		fmt.Printf("%v %d units\n", unit.Level(l), p.NumUnits())
	}
	if *detail {
		ch := h.Levels[unit.Chain]
		ncell := make([]int, ch.NumUnits())
		for _, u := range h.Parents(unit.Cell, unit.Chain) {
			ncell[u]++
		}
		nseg := make([]int, ch.NumUnits())
		for _, u := range h.Parents(unit.Segment, unit.Chain) {
			nseg[u]++
		}
		for u, ops := range ch.Ops {
			s := 0.0
			big := ops[0]
			layers := map[int32]int{}
			for _, i := range ops {
				s += sec[i]
				if sec[i] > sec[big] {
					big = i
				}
				layers[g.Op(i).Layer]++
			}
			fmt.Printf("%3d %-8v partner %3d ops %5d cells %4d segs %3d  %.2f ms  first %s big %s(%s) layers %v reads %v\n", u, h.Roles[unit.Chain][u], h.Partners[unit.Chain][u], len(ops), ncell[u], nseg[u], s*1e3, g.Op(ops[0]).Name, g.Op(big).Name, g.Op(big).Kind, layers, h.Reads[unit.Chain][u])
		}
	}
}

type sums [][]float64

func (s sums) OpSeconds(i graph.OpID, d int) units.Seconds { return units.Seconds(s[d][i]) }

func TestSurrogate(t *testing.T) {
	g, err := workloads.Build(*workload)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", *gpus, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(g, m, r, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	sec := s.OpSeconds(0)
	h, err := unit.Find(g, sec)
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	c, err := unit.Contract(g, h.Levels[unit.Cell], 110000)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("contract: %d nodes %d edges %d tensors in %v (of %d, %d)\n", c.Graph.NumOps(), c.Graph.NumEdges(), c.Graph.NumTensors(), time.Since(t0), g.NumOps(), g.NumEdges())
	var cs sums
	for d := range *gpus {
		cs = append(cs, c.Sum(s.OpSeconds(d)))
	}
	cfg := sim.Default()
	cfg.Memory = false
	q, err := sim.New(c.Graph, m, cs, cfg)
	if err != nil {
		t.Fatal(err)
	}
	prio := sim.CriticalPathPriority(g, sec)
	cprio := sim.CriticalPathPriority(c.Graph, cs[0])
	dev := make([]uint8, g.NumOps())
	cdev := make([]uint8, c.Graph.NumOps())
	eval := func(n string) {
		t0 := time.Now()
		a := s.Evaluate(dev, prio)
		t1 := time.Now()
		b := q.Evaluate(cdev, cprio)
		t2 := time.Now()
		fmt.Printf("%-20s exact %8.2f ms (over %v) in %v; coarse %8.2f ms in %v\n", n, a.Seconds*1e3, a.Overflow, t1.Sub(t0), b.Seconds*1e3, t2.Sub(t1))
	}
	up := func(f func(i int) uint8) {
		for i := range dev {
			dev[i] = f(i)
			cdev[c.Of[i]] = dev[i]
		}
	}
	eval("single")
	ch := h.Levels[unit.Chain]
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		cd := make([]uint8, ch.NumUnits())
		for u := range cd {
			cd[u] = uint8(rnd.IntN(*gpus))
		}
		up(func(i int) uint8 { return cd[ch.Of[i]] })
		eval("random chains")
	}
	for range 3 {
		cd := make([]uint8, h.Levels[unit.Cell].NumUnits())
		for u := range cd {
			cd[u] = uint8(rnd.IntN(*gpus))
		}
		up(func(i int) uint8 { return cd[h.Levels[unit.Cell].Of[i]] })
		eval("random cells")
	}
	p := &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s, Priority: prio}
	o, err := human.Placer{}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("human", o.Score.Seconds*1e3, o.Score.Overflow)
	cellDev := make([]uint8, h.Levels[unit.Cell].NumUnits())
	for u, ops := range h.Levels[unit.Cell].Ops {
		w := make([]float64, *gpus)
		for _, i := range ops {
			w[o.Device[i]] += sec[i]
		}
		for d := range w {
			if w[d] > w[cellDev[u]] {
				cellDev[u] = uint8(d)
			}
		}
	}
	up(func(i int) uint8 { return cellDev[h.Levels[unit.Cell].Of[i]] })
	eval("human by cells")
}

var seconds = flag.Float64("seconds", 60, "budget")
var evals = flag.Int("evals", 0, "budget")
var cool = flag.Float64("cool", 0.25, "")
var mode = flag.String("mode", "exact", "stages")
var walkers = flag.Int("walkers", 2, "walkers")
var seed = flag.Uint64("seed", 1, "seed")

func problem(t *testing.T) *plan.Problem {
	g, err := workloads.Build(*workload)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", *gpus, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(g, m, r, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s, Priority: sim.CriticalPathPriority(g, s.OpSeconds(0))}
}

func TestAnneal(t *testing.T) {
	p := problem(t)
	o, err := human.Placer{}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, x := range p.Evaluator.OpSeconds(0) {
		total += x
	}
	cp := 0.0
	for _, x := range sim.BottomLevels(p.Graph, p.Evaluator.OpSeconds(0)) {
		cp = max(cp, x)
	}
	fmt.Printf("%s: human %.2f ms; work/D %.2f ms critical path %.2f ms\n", *workload, o.Score.Seconds*1e3, total/float64(*gpus)*1e3, cp*1e3)
	_ = math.Pi
	t0 := time.Now()
	p.Clock = func() float64 { return time.Since(t0).Seconds() }
	p.Budget.Seconds = *seconds
	p.Budget.Evaluations = *evals
	p.Seed = *seed
	a := Placer{Walkers: *walkers, Starts: [][]uint8{o.Device}}
	a.trace = func(f string, x ...any) {
		fmt.Printf("%6.1fs "+f+"\n", append([]any{time.Since(t0).Seconds()}, x...)...)
	}
	coolest = *cool
	switch *mode {
	case "exact":
	case "A": // whole only
		a.stages = []stage{{coarse: true, run: whole, hot: 0.04, end: 0.001, share: 1}}
	case "B":
		a.stages = []stage{{coarse: true, run: whole, hot: 0.1, end: 0.001, share: 1}}
	case "C":
		a.stages = []stage{{coarse: true, run: whole, hot: 0.02, end: 0.0005, share: 1}}
	case "D":
		a.stages = []stage{{coarse: true, run: whole, hot: 0.04, end: 0.001, share: .5}, {coarse: true, run: 16, hot: 0.01, end: 0.0005, share: .5}}
	case "E":
		a.stages = []stage{{coarse: true, run: whole, hot: 0.04, end: 0.001, share: .5}, {coarse: true, run: 4, hot: 0.002, end: 0.0002, share: .5}}
	case "F": // only runs
		a.stages = []stage{{coarse: true, run: 16, hot: 0.04, end: 0.0005, share: 1}}
	case "coarse2":
		a.stages = []stage{
			{coarse: true, run: whole, hot: 0.04, end: 0.001, share: 0.2},
			{coarse: true, run: 64, hot: 0.004, end: 0.0005, share: 0.05},
			{run: whole, hot: 0.01, end: 0.0005, share: 0.25},
			{run: 64, hot: 0.003, end: 0.0005, share: 0.1},
			{run: 16, hot: 0.003, end: 0.0003, share: 0.2},
			{run: 4, hot: 0.003, end: 0.0002, share: 0.2},
		}
	case "coarse":
		a.stages = []stage{
			{coarse: true, run: whole, hot: 0.04, end: 0.001, share: 0.3},
			{coarse: true, run: 64, hot: 0.004, end: 0.0005, share: 0.1},
			{coarse: true, run: 16, hot: 0.003, end: 0.0003, share: 0.1},
			{run: whole, hot: 0.004, end: 0.0005, share: 0.15},
			{run: 64, hot: 0.003, end: 0.0005, share: 0.1},
			{run: 16, hot: 0.003, end: 0.0003, share: 0.1},
			{run: 4, hot: 0.003, end: 0.0002, share: 0.15},
		}
	}
	out, err := a.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("RESULT %s/%d %s seed %d: human %.2f ms, best %.2f ms (%v), reduction %.1f%%, evaluations %d in %.1fs\n", *workload, *gpus, *mode, *seed, o.Score.Seconds*1e3, out.Score.Seconds*1e3, out.Score.Overflow,
		100*(1-out.Score.Seconds/o.Score.Seconds), out.Evaluations, time.Since(t0).Seconds())
}

func TestContraction(t *testing.T) {
	p := problem(t)
	h := p.Units
	c, err := unit.Contract(p.Graph, h.Levels[unit.Cell], 110000)
	if err != nil {
		t.Fatal(err)
	}
	var count, tiny [3]int
	per := map[int32]int{}
	s := c.Sum(p.Evaluator.OpSeconds(0))
	for v := range c.Graph.NumOps() {
		u := c.Unit(graph.OpID(v))
		r := h.Roles[unit.Cell][u]
		count[r]++
		if s[v] < 1e-6 {
			tiny[r]++
		}
		per[u]++
	}
	fmt.Println("nodes by role", count, "tiny", tiny)
	hist := map[string]int{}
	for u, n := range per {
		hist[fmt.Sprint(h.Roles[unit.Cell][u], " ", n)]++
	}
	fmt.Println(hist)
	for u := range per {
		if h.Roles[unit.Cell][u] == unit.Backward && per[u] == 4 {
			for v := range c.Graph.NumOps() {
				if c.Unit(graph.OpID(v)) == u {
					fmt.Println("node", v, s[v])
					for _, i := range c.Ops[v] {
						fmt.Println("   ", p.Graph.Op(i).Name, p.Graph.Op(i).Kind)
					}
				}
			}
			break
		}
	}
}

func TestSplit(t *testing.T) {
	p := problem(t)
	o, err := human.Placer{}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	sec := p.Evaluator.OpSeconds(0)
	cells := p.Units.Levels[unit.Cell]
	dev := make([]uint8, len(sec))
	for u, ops := range cells.Ops {
		w := make([]float64, *gpus)
		for _, i := range ops {
			w[o.Device[i]] += sec[i]
		}
		b := 0
		sum := 0.0
		for d := range w {
			sum += w[d]
			if w[d] > w[b] {
				b = d
			}
		}
		for _, i := range ops {
			dev[i] = uint8(b)
		}
		if sum-w[b] > 2e-6 {
			fmt.Println("split cell", u, p.Units.Roles[unit.Cell][u], w)
			for _, i := range ops {
				if sec[i] > 2e-6 {
					fmt.Printf("    %s %s dev %d layer %d %.1f us\n", p.Graph.Op(i).Name, p.Graph.Op(i).Kind, o.Device[i], p.Graph.Op(i).Layer, sec[i]*1e6)
				}
			}
		}
	}
	fmt.Println(p.Evaluator.Evaluate(o.Device, p.Priority), p.Evaluator.Evaluate(dev, p.Priority))
}
