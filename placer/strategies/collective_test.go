package strategies

import (
	"math"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
)

// TestFlagged: small tensors are quicker in NCCL's protocol LL than as a ring, large ones are
// not, and where GPUs have no NCCL, or pairs of them differ, there are rings alone. An all-reduce
// of 64 kB among eight A100, whose sends take 12 us and more, takes 12 + 6.6 + 14 us and 112 kB
// at 87.7 GB/s.
func TestFlagged(t *testing.T) {
	judge := func(m *hw.Machine, err error) *Judge {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		j, err := NewJudge(source(), m)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	of := func(j *Judge, kind strategy.Kind, size units.Bytes) (chosen, ring float64) {
		t.Helper()
		d := j.Machine.NumDevices()
		mesh, c := strategy.Mesh{Data: d, Pipeline: 1, Tensor: 1}, strategy.Collective{Kind: kind, Bytes: size, Ranks: d}
		chosen, err := j.collectiveSeconds(mesh, c)
		if err != nil {
			t.Fatal(err)
		}
		ring, err = j.ringSeconds(mesh, c)
		if err != nil {
			t.Fatal(err)
		}
		return chosen, ring
	}
	a100 := judge(hw.Take("a100", 8, false))
	got, _ := of(a100, strategy.AllReduce, 1<<16)
	if want := 12e-6 + 6.6e-6 + 14e-6 + 1.75*(1<<16)/87.7e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("64 kB among eight A100: %.9g s, want %.9g", got, want)
	}
	got, _ = of(a100, strategy.AllGather, 1<<16)
	if want := 12e-6 + 6.6e-6 + 7e-6 + 0.875*(1<<16)/87.7e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("64 kB gathered by eight A100: %.9g s, want %.9g", got, want)
	}
	before := 0.0
	for size := units.Bytes(1 << 10); size <= 1<<28; size *= 2 {
		got, ring := of(a100, strategy.AllReduce, size)
		if got < before || got > ring || (size <= 1<<22) != (got < ring) && (size <= 1<<22 || size >= 1<<24) {
			t.Errorf("%v: %.6g s, as a ring %.6g, half of it %.6g", size, got, ring, before)
		}
		before = got
	}
	unlike := star(t, 4, 1e11, 3e-6)
	for k := range unlike.Devices {
		unlike.Devices[k].Arch = "sm_80"
	}
	unlike.Devices[1].Memory--
	for name, j := range map[string]*Judge{"no architecture": judge(star(t, 4, 1e11, 3e-6), nil), "unlike devices": judge(unlike, nil)} {
		if got, ring := of(j, strategy.AllReduce, 1<<10); got != ring {
			t.Errorf("%s: %.6g s, want a ring's %.6g", name, got, ring)
		}
	}
}
