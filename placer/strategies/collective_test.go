package strategies

import (
	"math"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
)

// TestFlagged: where links do not say what they are of, small tensors are quicker in NCCL's protocol LL
// than as a ring, large ones are not, and where GPUs have no NCCL, or pairs of them differ, there are
// rings alone. An all-reduce of 64 kB among eight GPUs of compute capability 8.0, whose sends take 12
// us and more, takes 12 + 6.6 + 14 us and 112 kB at 87.7 GB/s.
func TestFlagged(t *testing.T) {
	of := func(m *hw.Machine, kind strategy.Kind, size units.Bytes) (chosen, ring float64) {
		t.Helper()
		j, err := NewJudge(source(), m)
		if err != nil {
			t.Fatal(err)
		}
		d := j.Machine.NumDevices()
		mesh, c := strategy.Mesh{Data: d, Pipeline: 1, Tensor: 1}, strategy.Collective{Kind: kind, Bytes: size, Ranks: d}
		chosen, err = j.collectiveSeconds(mesh, c)
		if err != nil {
			t.Fatal(err)
		}
		ring, err = j.ringSeconds(mesh, c)
		if err != nil {
			t.Fatal(err)
		}
		return chosen, ring
	}
	capable := func(n int) *hw.Machine {
		m := star(t, n, 226e9, 6e-6)
		for k := range m.Devices {
			m.Devices[k].Arch = "sm_80"
		}
		return m
	}
	got, _ := of(capable(8), strategy.AllReduce, 1<<16)
	if want := 12e-6 + 6.6e-6 + 14e-6 + 1.75*(1<<16)/87.7e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("64 kB among eight: %.9g s, want %.9g", got, want)
	}
	got, _ = of(capable(8), strategy.AllGather, 1<<16)
	if want := 12e-6 + 6.6e-6 + 7e-6 + 0.875*(1<<16)/87.7e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("64 kB gathered by eight: %.9g s, want %.9g", got, want)
	}
	before := 0.0
	for size := units.Bytes(1 << 10); size <= 1<<28; size *= 2 {
		got, ring := of(capable(8), strategy.AllReduce, size)
		if got < before || got > ring || (size <= 1<<22) != (got < ring) && (size <= 1<<22 || size >= 1<<24) {
			t.Errorf("%v: %.6g s, as a ring %.6g, half of it %.6g", size, got, ring, before)
		}
		before = got
	}
	unlike := capable(4)
	unlike.Devices[1].Memory--
	for name, m := range map[string]*hw.Machine{"no architecture": star(t, 4, 1e11, 3e-6), "unlike devices": unlike} {
		if got, ring := of(m, strategy.AllReduce, 1<<10); got != ring {
			t.Errorf("%s: %.6g s, want a ring's %.6g", name, got, ring)
		}
	}
}

// TestOneShot: what vLLM measured of its one-shot all-reduce on four H100 and two (pull requests
// 24532 and 24111): its own is predicted within a third, longer the more bytes there are, as reads
// from many GPUs use more of the links than a send does. NCCL's beside it are in
// TestMeasuredCollectives.
func TestOneShot(t *testing.T) {
	for _, c := range []struct {
		gpus int
		size float64 // MiB
		own  float64 // us
	}{{4, 0.5, 10}, {4, 1, 14}, {4, 1.5, 19}, {4, 2, 23}, {4, 3, 30}, {4, 4, 38}, {2, 0.5, 7}} {
		m, err := hw.Take("h100", c.gpus, false)
		if err != nil {
			t.Fatal(err)
		}
		j, err := NewJudge(source(), m)
		if err != nil {
			t.Fatal(err)
		}
		of := strategy.Collective{Kind: strategy.AllReduce, Axis: strategy.TensorAxis, Bytes: units.Bytes(c.size * (1 << 20)), Ranks: c.gpus}
		mesh := strategy.Mesh{Data: 1, Pipeline: 1, Tensor: c.gpus}
		groups := mesh.Groups(of)
		if !math.IsInf(j.oneShotSeconds(groups, of), 1) {
			t.Errorf("%d GPUs, %g MiB: one-shot without being asked for", c.gpus, c.size)
		}
		j.OneShot = true
		if got := 1e6 * j.oneShotSeconds(groups, of); math.Abs(got/c.own-1) > 1./3 {
			t.Errorf("%d GPUs, %g MiB: %.3g us, measured %g", c.gpus, c.size, got, c.own)
		}
		gather := of
		gather.Kind = strategy.AllGather
		if !math.IsInf(j.oneShotSeconds(groups, gather), 1) {
			t.Error("an all-gather is no one-shot all-reduce")
		}
	}
}
