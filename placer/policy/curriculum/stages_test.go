package curriculum

import (
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/workloads"
)

// small builds a workload with op times of one unit of time per op that works.
func small(t *testing.T, name string) (*graph.Graph, *unit.Hierarchy, []float64) {
	t.Helper()
	g, err := workloads.Build(name)
	if err != nil {
		t.Fatal(err)
	}
	seconds := make([]float64, g.NumOps())
	for i := range seconds {
		seconds[i] = 1e-7 + float64(g.Op(graph.OpID(i)).FLOPs)*1e-13
	}
	h, err := unit.Find(g, seconds)
	if err != nil {
		t.Fatal(err)
	}
	return g, h, seconds
}

// TestCurricula: every stage is a partition of all ops that splits no
// co-location group, the stages of a curriculum grow, and there are few decisions
// to begin with.
func TestCurricula(t *testing.T) {
	for _, name := range []string{"rnnlm2", "trfxl2", "wavenet2"} {
		g, h, seconds := small(t, name)
		for l := unit.Op; l < unit.NumLevels; l++ {
			for k, stages := range Curricula(g, h, l, seconds, 2) {
				before := 0
				for _, s := range stages {
					checkPartition(t, g, s.Units)
					checkPartition(t, g, s.Chain)
					n := s.Units.NumUnits()
					if n <= before {
						t.Errorf("%s at %v, curriculum %d: stage %s has %d units after one of %d", name, l, k, s.Name, n, before)
					}
					before = n
				}
				if n := stages[0].Units.NumUnits(); n < 2 || n > 200 {
					t.Errorf("%s at %v, curriculum %d begins with %d units", name, l, k, n)
				}
				if l == unit.Op && before < h.Levels[unit.Op].NumUnits() {
					t.Errorf("%s, curriculum %d ends with %d units, want the %d of the op level", name, k, before, h.Levels[unit.Op].NumUnits())
				}
			}
		}
	}
}

func checkPartition(t *testing.T, g *graph.Graph, p *unit.Partition) {
	t.Helper()
	if len(p.Of) != g.NumOps() {
		t.Fatalf("%d ops of %d", len(p.Of), g.NumOps())
	}
	group := map[int32]int32{}
	total := 0
	for u, ops := range p.Ops {
		total += len(ops)
		for _, i := range ops {
			if p.Of[i] != int32(u) {
				t.Fatalf("unit %d lists op %d, which is in unit %d", u, i, p.Of[i])
			}
			if k := g.Op(i).Group; k > 0 {
				if first, ok := group[k]; ok && first != int32(u) {
					t.Fatalf("co-location group %d is split", k)
				}
				group[k] = int32(u)
			}
		}
	}
	if total != g.NumOps() {
		t.Fatalf("units hold %d ops of %d", total, g.NumOps())
	}
}

// TestProlong: a fine unit gets the mean of its ops' coarse logits by time, and
// none further below the best than warmStartRange.
func TestProlong(t *testing.T) {
	coarse := number([]int{0, 0, 1, 1}, 2)
	fine := number([]int{0, 1, 1, 2}, 3)
	rows := [][]float32{clampToBest([]float32{0, -1}, 2, warmStartRange), clampToBest([]float32{-9, 5}, 2, warmStartRange)}
	down := prolong(rows, coarse, fine, []float64{1, 1, 3, 1})
	want := [][]float32{{0, -1}, {(0 - 3*warmStartRange) / 4.0, -1.0 / 4}, {-warmStartRange, 0}}
	for u := range want {
		for a := range want[u] {
			if d := down[u][a] - want[u][a]; d > 1e-6 || d < -1e-6 {
				t.Errorf("unit %d: logits %v, want %v", u, down[u], want[u])
			}
		}
	}
}

// TestNoTime: ops that take no time, some or all of them, are cut into blocks, and their
// units begin with finite logits.
func TestNoTime(t *testing.T) {
	g, h, seconds := small(t, "rnnlm2")
	for i := range seconds {
		seconds[i] *= float64(i % 2)
	}
	for range 2 {
		for _, stages := range Curricula(g, h, unit.Cell, seconds, 2) {
			for _, s := range stages {
				checkPartition(t, g, s.Units)
			}
		}
		clear(seconds)
	}
	down := prolong([][]float32{{0, -1}, {-2, 0}}, number([]int{0, 0, 1, 1}, 2), number([]int{0, 1, 1, 0}, 2), []float64{0, 0, 0, 3})
	if want := [][]float32{{-2, 0}, {-1, -0.5}}; !slices.EqualFunc(down, want, slices.Equal[[]float32]) {
		t.Errorf("logits %v, want %v", down, want)
	}
}

// TestPositionBlocks: blocks take about equal time, and without split a gradient
// lies in the block of its forward cell.
func TestPositionBlocks(t *testing.T) {
	g, h, seconds := small(t, "wavenet2")
	const n = 4
	p := newPositions(g, h, seconds).blocks(n)
	if p.NumUnits() != n {
		t.Fatalf("%d blocks, want %d", p.NumUnits(), n)
	}
	total := 0.0
	for _, s := range seconds {
		total += s
	}
	for u, ops := range p.Ops {
		sum := 0.0
		for _, i := range ops {
			sum += seconds[i]
		}
		if share := sum / total; share < 0.5/n || share > 2.0/n {
			t.Errorf("block %d takes %.0f%% of the time", u, share*100)
		}
	}
	cells := h.Levels[unit.Cell]
	for u, v := range h.Counterparts[unit.Cell] {
		if v >= 0 && h.Roles[unit.Cell][u] == unit.Backward && p.Of[cells.Ops[u][0]] != p.Of[cells.Ops[v][0]] {
			t.Errorf("cell %d and its counterpart %d lie in different blocks", u, v)
		}
	}
}

// TestNear: units near a placement do not mix its devices, and begin at it.
func TestNear(t *testing.T) {
	g, h, seconds := small(t, "trfxl2")
	r := rand.New(rand.NewPCG(8, 3))
	device := make([]uint8, g.NumOps())
	for _, ops := range h.Levels[unit.Segment].Ops {
		d := uint8(r.IntN(2))
		for _, i := range ops {
			device[i] = d
		}
	}
	for _, s := range Near(Curricula(g, h, unit.Chain, seconds, 2)[0], device, 2) {
		begins := Majority(s.Units, s.Near, seconds, 2)
		for u, ops := range s.Units.Ops {
			for _, i := range ops {
				if device[i] != begins[u] || s.Units.Of[i] != int32(u) {
					t.Fatalf("%s: op %d of unit %d is on device %d, the unit begins on %d", s.Name, i, u, device[i], begins[u])
				}
			}
		}
	}
}
