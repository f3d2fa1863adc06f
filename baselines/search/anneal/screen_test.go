package anneal

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestScreen: whatever moves have passed and not, been taken and refused, the screen knows the
// coarsened step of where the replica is, and lets through what makes it no longer than it says.
func TestScreen(t *testing.T) {
	p, fresh := sketched(t)
	x, err := newScreen(p)
	if err != nil || x == nil {
		t.Fatalf("no screen (%v)", err)
	}
	const temperature = 0.001
	random := rand.New(rand.NewPCG(3, 1))
	now := make([]uint8, len(fresh.cells.seconds))
	step := func() float64 {
		device := make([]uint8, p.Graph.NumOps())
		fresh.cells.expand(now, device)
		return fresh.Seconds(device)
	}
	x.moved(now)
	passed, rejected := 0, 0
	for range 300 {
		var move []changed
		for range 1 + random.IntN(3) {
			u := int32(random.IntN(len(now)))
			move = append(move, changed{u, now[u]})
			now[u] = uint8(random.IntN(p.Machine.NumDevices()))
		}
		back := func() {
			for k := len(move) - 1; k >= 0; k-- {
				now[move[k].u] = move[k].old
			}
		}
		before, after := x.cost, step()
		passes := x.passes(move, now, temperature)
		if limit := before * (1 + screenMargin + temperature); passes != (after <= limit) {
			t.Fatalf("a coarsened step of %v after %v passes: %v", after, before, passes)
		}
		switch {
		case !passes:
			rejected++
			back()
		case random.IntN(2) == 0:
			passed++
			x.taken()
		default:
			passed++
			x.refused(move)
			back()
		}
		if at := step(); at != x.cost {
			t.Fatalf("the coarsened step is %v, the screen has %v", at, x.cost)
		}
	}
	if passed < 20 || rejected < 20 || x.looked != passed+rejected {
		t.Errorf("%d moves passed and %d did not, of %d", passed, rejected, x.looked)
	}
}

// TestScreenOfLittle: there is none where a coarsened step would hardly be quicker, nor for
// kernels that moves change.
func TestScreenOfLittle(t *testing.T) {
	if x, err := newScreen(problemOf(t, "layered")); err != nil || x != nil {
		t.Errorf("a screen of a graph whose every op is a cell (%v)", err)
	}
	p, _ := sketched(t)
	fused := *p
	fused.Fusion = make([]uint8, p.Graph.NumOps())
	if x, err := newScreen(&fused); err != nil || x != nil {
		t.Errorf("a screen under fusion (%v)", err)
	}
}

// TestScreenSpares: of equally many evaluations more is made where moves are looked at first.
func TestScreenSpares(t *testing.T) {
	p, _ := sketched(t)
	x, err := NewExact(p)
	if err != nil {
		t.Fatal(err)
	}
	bare := &Exact{x.shortener}
	bare.screen = nil
	one := make([]uint8, p.Graph.NumOps())
	shorter := 0.0
	for seed := range uint64(8) {
		_, with, _ := x.Shorten(t.Context(), one, 200, 16, rand.NewPCG(seed, 1))
		_, without, _ := bare.Shorten(t.Context(), one, 200, 16, rand.NewPCG(seed, 1))
		shorter += math.Log(without.Value / with.Value)
	}
	if x.Looked() < 2*8*200 || bare.Looked() != 0 || shorter <= 0 {
		t.Errorf("%d and %d moves seen, steps shorter by %.2f%% in the mean", x.Looked(), bare.Looked(), 100*shorter/8)
	}
}
