package hw_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"placer/hw"
	"placer/units"
)

func ExampleTake() {
	m, err := hw.Take("p100", 2, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range m.Devices {
		fmt.Println(d.Name, d.Model, d.Memory)
	}
	fmt.Println(m.TransferSeconds(0, 1, 110e6))
	_, err = hw.Take("p100", 9, false)
	fmt.Println(err)
	// Output:
	// gpu:0 P100-PCIe-16GB 16.44 GB
	// gpu:1 P100-PCIe-16GB 16.44 GB
	// cpu:0 Xeon-E5-2690v4 128.85 GB
	// 10.01 ms
	// machine p100 has 8 GPUs, 9 asked for; name one of more by --machine FILE, as 'placer machines init' writes it
}

func TestBuiltinMachines(t *testing.T) {
	want := []string{"a100", "b200", "h100", "h200", "h200m", "p100", "v100"}
	if !slices.Equal(hw.Names(), want) {
		t.Fatalf("machines %v, want %v", hw.Names(), want)
	}
	for _, name := range want {
		t.Run(name, func(t *testing.T) {
			m, err := hw.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
			if m.Name != name || m.NumDevices() != 9 || m.Devices[8].Kind != hw.CPU {
				t.Errorf("%s has %d devices, the last a %s; want eight GPUs and a CPU", m.Name, m.NumDevices(), m.Devices[8].Kind)
			}
			for _, d := range m.Devices {
				if d.Source == "" || d.Memory >= d.Capacity {
					t.Errorf("%s: source %q, memory %v of %v", d.Name, d.Source, d.Memory, d.Capacity)
				}
			}
			for _, l := range m.Links {
				if l.Source == "" {
					t.Errorf("link %s has no source", l.Name)
				}
			}
			for s := range m.Devices { // every cable has equal directions
				for d := range s {
					l1, b1 := m.Transfer(s, d)
					l2, b2 := m.Transfer(d, s)
					if b1 != b2 || max(l1, l2)-min(l1, l2) > 1e-15 {
						t.Errorf("%s and %s: %v, %v one way, %v, %v back", m.Devices[s].Name, m.Devices[d].Name, l1, b1, l2, b2)
					}
				}
			}
		})
	}
}

// Data-sheet figures, and for P100 those of the machine the papers name.
func TestBuiltinFigures(t *testing.T) {
	for _, c := range []struct {
		name              string
		memory            units.Bytes // at least, usable
		sms               int
		bandwidth         float64 // GB/s of memory
		rates             map[string]float64
		latency, transfer float64 // us, GB/s from gpu:0 to gpu:1
	}{
		{"p100", 16e9, 56, 732, map[string]float64{"f32": 9.3, "f64": 4.7, "f16": 18.7}, 10, 11},
		{"v100", 16e9, 80, 900, map[string]float64{"f32": 15.7, "f64": 7.8, "f16": 125}, 8, 22.5},
		{"a100", 84e9, 108, 2039, map[string]float64{"f32": 19.5, "tf32": 156, "bf16": 312, "f16": 312, "f64": 19.5, "i8": 624}, 12, 226},
		{"h100", 84e9, 132, 3350, map[string]float64{"f32": 67, "tf32": 494.7, "bf16": 989.4, "f8": 1979, "f64": 67}, 12, 290},
		{"h200", 140e9, 132, 4800, map[string]float64{"f32": 67, "tf32": 494.7, "bf16": 989.4, "f8": 1979, "f64": 67}, 12, 290},
		{"h200m", 149e9, 132, 4814, map[string]float64{"f32": 66.9, "tf32": 535.3, "bf16": 1070.5, "f8": 2141, "f64": 66.9}, 12, 290},
		{"b200", 180e9, 148, 7672, map[string]float64{"bf16": 2225, "tf32": 1112, "f8": 4450}, 15, 530},
	} {
		m, err := hw.Take(c.name, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		near := func(what string, got, want float64) {
			if got < 0.99*want || got > 1.01*want {
				t.Errorf("%s: %s is %g, want %g within 1%%", c.name, what, got, want)
			}
		}
		d := m.Devices[0]
		if d.Memory < c.memory || d.SMs != c.sms {
			t.Errorf("%s: %v usable, want at least %v; %d multiprocessors, want %d", c.name, d.Memory, c.memory, d.SMs, c.sms)
		}
		near("memory bandwidth", float64(d.MemoryBandwidth)/1e9, c.bandwidth)
		for _, k := range slices.Sorted(maps.Keys(c.rates)) {
			near(k, float64(d.Peak[k])/1e12, c.rates[k])
		}
		l, b := m.Transfer(0, 1)
		near("latency", float64(l)*1e6, c.latency)
		near("bandwidth between GPUs", float64(b)/1e9, c.transfer)
	}
}

// The hybrid cube mesh: each GPU reaches four others directly, over six bricks.
func TestV100Mesh(t *testing.T) {
	m, err := hw.Take("v100", 8, false)
	if err != nil {
		t.Fatal(err)
	}
	for s := range 8 {
		direct, bandwidth := 0, 0.0
		for d := range 8 {
			if r := m.Route(s, d); len(r) == 1 {
				direct++
				bandwidth += float64(m.Links[r[0]].Bandwidth)
			} else if s != d && len(r) != 5 {
				t.Errorf("route from %d to %d has %d links, want 5 by way of both sockets", s, d, len(r))
			}
		}
		if direct != 4 || bandwidth != 6*22.5e9 {
			t.Errorf("gpu:%d has %d direct neighbours at %g GB/s in all, want 4 at 135", s, direct, bandwidth/1e9)
		}
	}
}

func TestTake(t *testing.T) {
	whole, err := hw.Load("v100")
	if err != nil {
		t.Fatal(err)
	}
	for gpus := 1; gpus <= 8; gpus++ {
		for _, cpu := range []bool{false, true} {
			m, err := hw.Take("v100", gpus, cpu)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
			at := map[string]int{}
			for i, d := range whole.Devices {
				at[d.Name] = i
			}
			used := make([]bool, len(m.Links))
			for s := range m.Devices {
				for d := range m.Devices {
					l1, b1 := m.Transfer(s, d)
					l2, b2 := whole.Transfer(at[m.Devices[s].Name], at[m.Devices[d].Name])
					if l1 != l2 || b1 != b2 {
						t.Errorf("%d GPUs: route from %d to %d is %v, %v; in the whole machine %v, %v", gpus, s, d, l1, b1, l2, b2)
					}
					for _, l := range m.Route(s, d) {
						used[l] = true
					}
				}
			}
			if slices.Contains(used, false) {
				t.Errorf("%d GPUs: a link is on no route", gpus)
			}
			if want := gpus + map[bool]int{true: 1}[cpu]; m.NumDevices() != want {
				t.Errorf("%d devices, want %d", m.NumDevices(), want)
			}
		}
	}
	if m, err := hw.Take("p100", 0, true); err != nil || m.NumDevices() != 1 {
		t.Errorf("the CPU alone: %v, %v", m, err)
	}
}

func TestTakeErrors(t *testing.T) {
	noCPU, err := hw.Take("p100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	take := func(name string, n int, cpu bool) error { _, err := hw.Take(name, n, cpu); return err }
	_, without := noCPU.Take(1, true)
	for _, c := range []struct {
		err  error
		want string
	}{
		{take("p100", 9, false), "machine p100 has 8 GPUs, 9 asked for; name one of more by --machine FILE, as 'placer machines init' writes it"},
		{take("p100", 0, false), "machine p100: 0 GPUs asked for, want at least 1"},
		{take("p100", -1, true), "machine p100: -1 GPUs asked for, want at least 1"},
		{take("k80", 1, false), `unknown machine "k80", want one of ` + strings.Join(hw.Names(), ", ") + "; 'placer machines --cards' lists the cards"},
		{take("../p100", 1, false), "unknown machine"},
		{without, "machine p100 has no CPU device, one asked for"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want %q", c.err, c.want)
		}
	}
}

func TestHash(t *testing.T) {
	base := func() *hw.Machine {
		m, err := hw.Take("p100", 2, true)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	want := base().Hash()
	if len(want) != 64 {
		t.Fatalf("hash %q", want)
	}
	for _, c := range []struct {
		name   string
		change func(*hw.Machine)
		same   bool
	}{
		{"nothing", func(*hw.Machine) {}, true},
		{"name", func(m *hw.Machine) { m.Name = "x" }, true},
		{"note and sources", func(m *hw.Machine) { m.Note, m.Devices[0].Source, m.Links[0].Source = "x", "y", "z" }, true},
		{"device name", func(m *hw.Machine) { m.Devices[0].Name = "x" }, false},
		{"memory", func(m *hw.Machine) { m.Devices[1].Memory-- }, false},
		{"launch", func(m *hw.Machine) { m.Devices[1].Launch *= 2 }, false},
		{"launch in a graph", func(m *hw.Machine) { m.Devices[1].GraphLaunch = 1e-6 }, false},
		{"rate", func(m *hw.Machine) { m.Devices[1].Peak = map[string]units.FLOPsPerSecond{"f32": 1} }, false},
		{"architecture", func(m *hw.Machine) { m.Devices[1].Arch = "sm_61" }, false},
		{"latency", func(m *hw.Machine) { m.Links[0].Latency *= 2 }, false},
		{"bandwidth", func(m *hw.Machine) { m.Links[0].Bandwidth *= 2 }, false},
		{"route", func(m *hw.Machine) { m.Routes[1] = m.Routes[1][:1] }, false},
		{"a device less", func(m *hw.Machine) { m.Devices = m.Devices[:2] }, false},
	} {
		m := base()
		c.change(m)
		if got := m.Hash(); (got == want) != c.same {
			t.Errorf("%s: hash is the same: %v, want %v", c.name, got == want, c.same)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*hw.Machine)
		want   string
	}{
		{"no device", func(m *hw.Machine) { m.Devices = nil }, "0 devices, want 1 to 1024"},
		{"name taken", func(m *hw.Machine) { m.Devices[1].Name = "gpu:0" }, `"gpu:0" is empty or taken`},
		{"kind", func(m *hw.Machine) { m.Devices[1].Kind = "tpu" }, "want gpu or cpu"},
		{"memory", func(m *hw.Machine) { m.Devices[1].Memory = 0 }, "device gpu:1: memory"},
		{"no rate", func(m *hw.Machine) { m.Devices[1].Peak = nil }, "peak f32"},
		{"link", func(m *hw.Machine) { m.Links[2].Latency = 0 }, "link 2"},
		{"routes", func(m *hw.Machine) { m.Routes = m.Routes[1:] }, "8 routes, want 9"},
		{"route to itself", func(m *hw.Machine) { m.Routes[0] = []int32{0} }, "route from gpu:0 to itself has 1 links"},
		{"route of no link", func(m *hw.Machine) { m.Routes[1] = []int32{99} }, "link 99 does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := hw.Take("p100", 2, true)
			if err != nil {
				t.Fatal(err)
			}
			c.change(m)
			if err := m.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// What there is one of is counted as one.
func TestTakeOfOne(t *testing.T) {
	m, err := hw.Load("p100")
	if err != nil {
		t.Fatal(err)
	}
	one, err := m.Take(1, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Take(2, false); err == nil || !strings.HasPrefix(err.Error(), "machine p100 has 1 GPU, 2 asked for") {
		t.Error(err)
	}
}
