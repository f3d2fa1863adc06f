package strategies

import (
	"bytes"
	"math"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
)

// written returns the machine of so many of a card on so many hosts, as machines init writes it.
func written(t *testing.T, card string, n, hosts int, network string, nvlink bool) *hw.Machine {
	t.Helper()
	c, err := hw.FindCard(card)
	if err != nil {
		t.Fatal(err)
	}
	x := hw.Template{Name: card, Hosts: hosts, NVLink: nvlink}
	for range n {
		x.Cards = append(x.Cards, c)
	}
	if hosts > 1 {
		if x.Network, err = hw.ParseNetwork(network); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := x.Write(&b); err != nil {
		t.Fatal(err)
	}
	m, err := hw.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFabric: what NCCL finds between ranks, from what links are of.
func TestFabric(t *testing.T) {
	built := func(name string, n int) *hw.Machine {
		m, err := hw.Take(name, n, false)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	unlike := built("a100", 4)
	unlike.Devices[2].Memory--
	h100 := fabric{arch: 90, medium: hw.NVLink, bus: 370e9, send: 12e-6, sharp: true, launch: 2e-6}
	with := func(f fabric, ranks, hosts int, wire float64) *fabric {
		f.ranks, f.hosts, f.wire = ranks, hosts, wire
		return &f
	}
	for _, c := range []struct {
		name string
		m    *hw.Machine
		mesh strategy.Mesh
		axis strategy.Axis
		want *fabric // nil: rings on links
	}{
		{"a host", built("a100", 8), strategy.Mesh{Data: 8, Pipeline: 1, Tensor: 1}, strategy.DataAxis, &fabric{ranks: 8, hosts: 1, arch: 80, medium: hw.NVLink, bus: 230e9, send: 12e-6, launch: 3e-6}},
		{"groups in a host", built("h100", 8), strategy.Mesh{Data: 2, Pipeline: 1, Tensor: 4}, strategy.DataAxis, with(h100, 2, 1, 0)},
		{"PCIe", written(t, "rtx4090", 4, 1, "", false), strategy.Mesh{Data: 1, Pipeline: 1, Tensor: 4}, strategy.TensorAxis, &fabric{ranks: 4, hosts: 1, arch: 89, medium: hw.PCIe, bus: 25.2e9, send: 8e-6, launch: 3e-6}},
		{"two hosts", written(t, "h100", 8, 2, "8x400Gb/s", true), strategy.Mesh{Data: 16, Pipeline: 1, Tensor: 1}, strategy.DataAxis, with(h100, 16, 2, 360e9)},
		{"two hosts, split products within", written(t, "h100", 8, 2, "8x400Gb/s", true), strategy.Mesh{Data: 2, Pipeline: 1, Tensor: 8}, strategy.TensorAxis, with(h100, 8, 1, 0)},
		{"two hosts, a rank of each", written(t, "h100", 8, 2, "8x400Gb/s", true), strategy.Mesh{Data: 2, Pipeline: 1, Tensor: 8}, strategy.DataAxis, &fabric{ranks: 2, hosts: 2, arch: 90, wire: 45e9, launch: 2e-6}},
		{"a NIC for four", written(t, "h100", 8, 2, "2x400Gb/s", true), strategy.Mesh{Data: 16, Pipeline: 1, Tensor: 1}, strategy.DataAxis, with(h100, 16, 2, 90e9)},
		{"a NIC for four groups", written(t, "h100", 8, 2, "2x400Gb/s", true), strategy.Mesh{Data: 2, Pipeline: 1, Tensor: 8}, strategy.DataAxis, &fabric{ranks: 2, hosts: 2, arch: 90, wire: 45e9 / 4, launch: 2e-6}},
		{"a mesh of unlike pairs", built("v100", 8), strategy.Mesh{Data: 8, Pipeline: 1, Tensor: 1}, strategy.DataAxis, nil},
		{"links that do not say", star(t, 4, 1e11, 3e-6), strategy.Mesh{Data: 4, Pipeline: 1, Tensor: 1}, strategy.DataAxis, nil},
		{"unlike devices", unlike, strategy.Mesh{Data: 4, Pipeline: 1, Tensor: 1}, strategy.DataAxis, nil},
	} {
		j, err := NewJudge(source(), c.m)
		if err != nil {
			t.Fatal(err)
		}
		of := strategy.Collective{Axis: c.axis, Ranks: c.mesh.Data}
		if c.axis == strategy.TensorAxis {
			of.Ranks = c.mesh.Tensor
		}
		got, ok := j.fabricOf(c.mesh, of)
		if !ok && c.want != nil || ok && (c.want == nil || got != *c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, ok, c.want)
		}
	}
}

// TestSizes: more bytes never take less time, whatever algorithm and protocol they go by.
func TestSizes(t *testing.T) {
	for name, m := range map[string]*hw.Machine{"nvlink": written(t, "h100", 8, 1, "", true), "pcie": written(t, "rtx4090", 8, 1, "", false), "hosts": written(t, "b200", 8, 2, "8x400Gb/s", true)} {
		j, err := NewJudge(source(), m)
		if err != nil {
			t.Fatal(err)
		}
		n := m.NumDevices()
		for _, kind := range []strategy.Kind{strategy.AllReduce, strategy.AllGather, strategy.ReduceScatter, strategy.AllToAll} {
			before := 0.0
			for size := units.Bytes(1); size <= 1<<33; size *= 2 {
				s, err := j.collectiveSeconds(strategy.Mesh{Data: n, Pipeline: 1, Tensor: 1}, strategy.Collective{Kind: kind, Bytes: size, Ranks: n})
				if err != nil {
					t.Fatal(err)
				}
				if s < before {
					t.Errorf("%s, %v: %v takes %.4g s, half of it %.4g", name, kind, size, s, before)
				}
				before = s
			}
		}
	}
}

// TestExchange: of an all-to-all on N hosts (N-1)/N leave each, so that ranks send N/(N-1) times as fast as
// their NICs (NVIDIA/nccl-tests, issue 130), all that a NIC has where each host has one rank, and a share of it
// where ranks have one together.
func TestExchange(t *testing.T) {
	const size = 1 << 40 // latencies do not count
	for _, c := range []struct {
		hosts, ranks int
		network      string
		want         float64 // B/s that leave a rank, for others on its host too
	}{
		{2, 8, "8x400Gb/s", 45e9 * 15 / 8},
		{4, 8, "8x400Gb/s", 45e9 * 31 / 24},
		{8, 8, "8x400Gb/s", 45e9 * 63 / 56},
		{8, 8, "1x400Gb/s", 45e9 / 8 * 63 / 56},
		{4, 1, "1x400Gb/s", 45e9},
	} {
		j, err := NewJudge(source(), written(t, "h100", c.ranks, c.hosts, c.network, c.ranks > 1))
		if err != nil {
			t.Fatal(err)
		}
		n := c.hosts * c.ranks
		of := strategy.Collective{Kind: strategy.AllToAll, Axis: strategy.ExpertAxis, Bytes: size, Ranks: n}
		s, err := j.collectiveSeconds(strategy.Mesh{Data: n, Pipeline: 1, Tensor: 1}, of)
		if got := float64(of.Sent()) / s; err != nil || math.Abs(got/c.want-1) > 1e-3 {
			t.Errorf("%d hosts of %d, %s: %.4g B/s, want %.4g (%v)", c.hosts, c.ranks, c.network, got, c.want, err)
		}
	}
}

// TestAlike: between hosts too one replica stands for all where all collectives are NCCL's: the
// folded step takes what the whole one does, holds and sends as much, and is as small as one rank's.
func TestAlike(t *testing.T) {
	hosts := written(t, "h100", 4, 2, "4x400Gb/s", true)
	folded := 0
	for _, name := range []string{small[0], small[1]} {
		j, err := NewJudge(source(), hosts)
		if err != nil {
			t.Fatal(err)
		}
		j.Eager = true // which ops are fused depends on the order of equals
		x := newModels(family(name), 16)
		for _, text := range []string{"ddp=8", "zero-1=8", "zero-2=8 mb=2", "zero-3=8 mb=2", "tp=4", "tp=2 vocab sp", "ddp=2 tp=4", "zero-1=2 tp=4 vocab sp mb=2", "zero-3=4 tp=2", "zero-1=8 ep=4", "zero-3=8 ep=2", "ddp=4 ep tp=2", "zero-1=4 ep tp=2 vocab sp mb=2",
			"ddp=4 1f1b=2 mb=2", "zero-1=2 1f1b=4 mb=4", "1f1b=2 tp=4 mb=4", "zero-1=2 gpipe=2 tp=2 vocab sp mb=2", "ddp=2 interleaved=2 chunks=2 tp=2 mb=2"} {
			s, err := strategy.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if !j.alike(s) {
				t.Fatalf("%v: not alike: %s", s, j.unlike(s))
			}
			one, err := x.derive(j, s, true)
			if s.Experts > 0 && name == small[0] || s.Pipeline*s.Chunks > 2 && name == small[1] {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			whole, err := x.derive(j, s, false)
			if err != nil {
				t.Fatal(err)
			}
			a, err := j.Run(one)
			if err != nil {
				t.Fatal(err)
			}
			b, err := j.Run(whole)
			if err != nil {
				t.Fatal(err)
			}
			folded++
			if math.Abs(a.Seconds/b.Seconds-1) > 1e-9 || a.Traffic != b.Traffic || a.Fullest() != b.Fullest() || a.Ops*s.Data*s.Tensor != b.Ops {
				t.Errorf("%s, %v: folded %.9g s, %v held, %v sent, %d ops, whole %.9g s, %v, %v, %d", name, s, a.Seconds, a.Fullest(), a.Traffic, a.Ops, b.Seconds, b.Fullest(), b.Traffic, b.Ops)
			}
		}
	}
	j, err := NewJudge(source(), written(t, "h100", 4, 2, "1x400Gb/s", true))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"ddp=8": true, "ddp=4 1f1b=2 mb=2": false, "1f1b=8 mb=8": true} { // one NIC for four
		s, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := j.alike(s); got != want {
			t.Errorf("%v: alike is %v, want %v", s, got, want)
		}
	}
	if folded < 20 {
		t.Errorf("%d steps were compared", folded)
	}
}
