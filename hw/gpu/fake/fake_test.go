package fake_test

import (
	"errors"
	"math"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/fake"
	"placer/hw/gpu/gputest"
	"placer/hw/gpu/kernel"
)

func TestConformance(t *testing.T) {
	for _, devices := range []int{1, 3} {
		cfg := fake.Default()
		cfg.Devices = devices
		g := fake.New(cfg)
		gputest.Run(t, g, g.BLAS())
	}
}

// TestVirtualTime adds up by hand what a chain over two devices takes.
func TestVirtualTime(t *testing.T) {
	cfg := fake.Default()
	cfg.Call = 0
	g := fake.New(cfg)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var ctx [2]gpu.Context
	var s [2]gpu.Stream
	var p [2]gpu.Ptr
	var k [2]*kernel.Set
	const n = 1 << 24
	for i := range ctx {
		var err error
		ctx[i], err = g.Retain(i)
		must(err)
		must(g.SetCurrent(ctx[i]))
		s[i], err = g.NewStream(0)
		must(err)
		p[i], err = g.Alloc(2 * n)
		must(err)
		k[i], err = kernel.Load(g, i)
		must(err)
	}
	must(g.SetCurrent(ctx[0])) // an event is recorded where it was made
	e, err := g.NewEvent(false)
	must(err)
	if err := g.Wait(s[1], e); err == nil {
		t.Error("waiting for an event that was never recorded is no error")
	}
	must(k[0].Stream(g, s[0], p[0], n, p[0]+n, n, 0))
	must(g.Peer(p[1], ctx[1], p[0], ctx[0], n, s[0]))
	must(g.Record(e, s[0]))
	must(g.Wait(s[1], e))
	must(k[1].Stream(g, s[1], p[1], n, p[1]+n, n, 1000))
	must(g.SyncStream(s[1]))
	want := (3000 + 2*n/2e12*1e9) + (5000 + n/50e9*1e9) + (3000 + 8*1000*n/16/20e12*1e9)
	if got := g.Clock() * 1e9; math.Abs(got-want) > 1 {
		t.Errorf("%v ns, want %v", got, want)
	}
}

// TestStrict: mistakes that a GPU would punish later, or not at all.
func TestStrict(t *testing.T) {
	g := fake.New(fake.Default())
	if _, err := g.Alloc(1); !errors.Is(err, gpu.InvalidContext) {
		t.Errorf("no context: %v", err)
	}
	ctx, _ := g.Retain(0)
	g.SetCurrent(ctx)
	k, err := kernel.Load(g, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := g.NewStream(0)
	p, _ := g.Alloc(1024)
	for name, err := range map[string]error{
		"beyond the end": k.Stream(g, s, p, 1024, p, 2048, 0),
		"unaligned":      k.Stream(g, s, p+4, 16, p, 16, 0),
		"not pinned":     g.HtoD(p, make([]byte, 8), s),
		"dead stream":    k.Nop(g, 17),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	there, _ := g.Retain(1)
	g.SetCurrent(there)
	far, _ := g.NewStream(0)
	e, _ := g.NewEvent(true)
	q, _ := g.Alloc(1024)
	for name, err := range map[string]error{
		"event of another device":  g.Record(e, s),
		"kernel of another device": k.Nop(g, far),
		"memory of another device": k.Stream(g, s, q, 16, p, 16, 0),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	g.SetCurrent(ctx)
	if err := errors.Join(g.EnablePeer(there), k.Stream(g, s, q, 16, p, 16, 0)); err != nil {
		t.Errorf("memory of another device with a way to it: %v", err)
	}
	g.Free(p)
	if err := k.Stream(g, s, p, 16, p, 16, 0); err == nil {
		t.Error("use after free: no error")
	}
}
