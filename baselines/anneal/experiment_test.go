//go:build experiment

package anneal

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"placer/baselines/human"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/workloads"
)

var (
	workload   = flag.String("workload", "gnmt8", "workload")
	gpus       = flag.Int("gpus", 8, "GPUs of the p100 machine")
	detail     = flag.Bool("detail", false, "print every chain")
	seconds    = flag.Float64("seconds", 0, "budget")
	evals      = flag.Int("evals", 0, "budget")
	walkers    = flag.Int("walkers", 2, "walkers")
	seed       = flag.Uint64("seed", 1, "seed")
	stagesText = flag.String("stages", "", "c|x|o:run:hot:end:share,... on the contraction, exact, on ops; run 0 is whole")
	cool       = flag.Float64("cool", coolest, "")
	comp       = flag.Float64("compound", compound, "")
	off        = flag.String("off", "", "kinds of moves left out, as letters")
)

func experiment(t *testing.T) *plan.Problem {
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
	t0 := time.Now()
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(t0)
	if err := h.Check(g); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s: %d ops, %.1f ms serial, %v resident; found in %v:", *workload, g.NumOps(), serialSeconds(s)*1e3, g.Resident(), took)
	for l, p := range h.Levels {
		fmt.Printf(" %d %ss", p.NumUnits(), unit.Level(l))
	}
	fmt.Println()
	return &plan.Problem{Graph: g, Machine: m, Units: h, Evaluator: s, Priority: sim.CriticalPathPriority(g, s.OpSeconds(0)), Seed: *seed}
}

func TestUnits(t *testing.T) {
	p := experiment(t)
	if !*detail {
		return
	}
	g, h, sec := p.Graph, p.Units, p.Evaluator.OpSeconds(0)
	ch := h.Levels[unit.Chain]
	inner := map[[2]int32]int{}
	for _, l := range []unit.Level{unit.Cell, unit.Segment} {
		for _, u := range h.Parents(l, unit.Chain) {
			inner[[2]int32{int32(l), u}]++
		}
	}
	for u, ops := range ch.Ops {
		s, big, layers := 0.0, ops[0], map[int32]int{}
		for _, i := range ops {
			s += sec[i]
			if sec[i] > sec[big] {
				big = i
			}
			layers[g.Op(i).Layer]++
		}
		fmt.Printf("%3d %-8v partner %3d ops %5d cells %4d segs %3d  %.2f ms  first %s big %s(%s) layers %v reads %v\n", u, h.Roles[unit.Chain][u], h.Partners[unit.Chain][u], len(ops),
			inner[[2]int32{int32(unit.Cell), int32(u)}], inner[[2]int32{int32(unit.Segment), int32(u)}], s*1e3, g.Op(ops[0]).Name, g.Op(big).Name, g.Op(big).Kind, layers, h.Reads[unit.Chain][u])
	}
}

// How well does the contraction predict?
func TestContraction(t *testing.T) {
	p := experiment(t)
	cells := cellTerrain(p)
	a, nodes, err := coarseArena(p, cells)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("contraction: %d nodes\n", nodes)
	device := make([]uint8, p.Graph.NumOps())
	show := func(name string, of func(u int) uint8) {
		for u, ops := range cells.fine.Ops {
			d := of(u)
			a.set(int32(u), d)
			for _, i := range ops {
				device[i] = d
			}
		}
		t0 := time.Now()
		x := p.Evaluator.Evaluate(device, p.Priority)
		t1 := time.Now()
		y, _ := a.evaluate()
		t2 := time.Now()
		fmt.Printf("%-15s exact %8.2f ms %v in %v; contraction %8.2f ms %v in %v\n", name, x.Seconds*1e3, x.Overflow, t1.Sub(t0), y.Seconds*1e3, y.Overflow, t2.Sub(t1))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		show("random cells", func(int) uint8 { return uint8(rng.IntN(*gpus)) })
	}
	for range 4 {
		d := make([]uint8, len(cells.group))
		for k := range d {
			d[k] = uint8(rng.IntN(*gpus))
		}
		show("random strands", func(u int) uint8 { return d[cells.groupOf[u]] })
	}
	o, err := human.Placer{}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t.Context(), Placer{Walkers: 1}, p)
	d := r.decisions(cells, o.Device)
	fmt.Printf("human           exact %8.2f ms\n", o.Score.Seconds*1e3)
	show("human by cells", func(u int) uint8 { return d[u] })
}

func TestAnneal(t *testing.T) {
	p := experiment(t)
	o, err := human.Placer{}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	path := 0.0
	for _, x := range sim.BottomLevels(p.Graph, p.Evaluator.OpSeconds(0)) {
		path = max(path, x)
	}
	fmt.Printf("human %.2f ms; work/D %.2f ms, critical path %.2f ms\n", o.Score.Seconds*1e3, serialSeconds(p.Evaluator)/float64(*gpus)*1e3, path*1e3)
	t0 := time.Now()
	p.Clock = func() float64 { return time.Since(t0).Seconds() }
	p.Budget = plan.Budget{Seconds: *seconds, Evaluations: *evals}
	coolest, compound = *cool, *comp
	for _, c := range *off {
		disabled[c-'a'] = true
	}
	a := Placer{Walkers: *walkers}
	a.trace = func(f string, x ...any) {
		fmt.Printf("%6.1fs "+f+"\n", append([]any{time.Since(t0).Seconds()}, x...)...)
	}
	for _, f := range strings.Split(*stagesText, ",") {
		x := strings.Split(f, ":")
		if len(x) != 5 {
			continue
		}
		var v [5]float64
		for k := 1; k < 5; k++ {
			if v[k], err = strconv.ParseFloat(x[k], 64); err != nil {
				t.Fatal(err)
			}
		}
		s := stage{coarse: x[0] == "c", ops: x[0] == "o", run: int(v[1]), hot: v[2], end: v[3], share: v[4]}
		if s.run == 0 {
			s.run = whole
		}
		a.stages = append(a.stages, s)
	}
	out, err := a.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("RESULT %s/%d %s seed %d: human %.2f ms, best %.2f ms (%v), reduction %.1f%%, evaluations %d in %.1fs %v\n", *workload, *gpus, *stagesText, *seed, o.Score.Seconds*1e3, out.Score.Seconds*1e3, out.Score.Overflow,
		100*(1-out.Score.Seconds/o.Score.Seconds), out.Evaluations, time.Since(t0).Seconds(), out.Notes)
}
