package hw_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"placer/hw"
)

// Every card has every figure that predictions rest on, with its source.
func TestCards(t *testing.T) {
	want := []string{"rtx3060", "rtx3070", "rtx3080", "rtx3090", "rtx4060ti", "rtx4060ti-16gb", "rtx4070", "rtx4080", "rtx4090", "rtx5070", "rtx5080", "rtx5090",
		"l4", "l40s", "a10", "a6000", "rtx6000ada", "a40", "a30", "mi250x-die", "mi300x", "mi325x", "mi355x", "p100", "v100", "a100-40gb", "a100", "h100", "h200", "b200", "gb200"}
	var got []string
	for _, c := range hw.Cards() {
		got = append(got, c.Name)
		d := c.Device
		if d.Kind != hw.GPU || d.Model == "" || d.Arch == "" || d.Capacity < 8e9 || d.Memory >= d.Capacity || d.MemoryBandwidth < 200e9 || d.SMs < 20 || d.L2 < 1<<20 || !(d.Launch > 0) || len(d.Source) < 30 {
			t.Errorf("%s lacks a figure: %+v", c.Name, d)
		}
		if c.PCIe.Generation < 3 || c.PCIe.Lanes < 8 {
			t.Errorf("%s: %v", c.Name, c.PCIe)
		}
		types := []string{"f32", "f16", "bf16", "tf32", "i8"}
		if c.Name == "p100" || c.Name == "v100" { // they multiply no such numbers but as f32
			types = types[:2]
		}
		for _, k := range types {
			if !(d.Peak[k] > 0) {
				t.Errorf("%s has no rate of %s", c.Name, k)
			}
		}
		// A narrower type is no slower, and 8 bits are never more than four times 16.
		if d.Peak["f16"] < d.Peak["f32"] || d.Peak["i8"] > 4.01*d.Peak["f16"] || d.Peak["i8"] > 0 && d.Peak["i8"] < d.Peak["f16"] || d.Peak["tf32"] > d.Peak["f16"] {
			t.Errorf("%s: rates %v", c.Name, d.Peak)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("cards %v, want %v", got, want)
	}
}

// Rates of the data sheets, read a second time: cores times clock times two, and what a
// multiprocessor's matrix units do in a clock.
func TestCardRates(t *testing.T) {
	for _, c := range []struct {
		name       string
		cores      int
		ghz        float64
		f16, i8    float64 // operations per clock and multiprocessor, dense, with f32 accumulation
		memoryGbps float64 // per pin
		bits       int
	}{
		{"rtx3060", 3584, 1.777, 512, 2048, 15, 192}, {"rtx3070", 5888, 1.725, 512, 2048, 14, 256}, {"rtx3080", 8704, 1.71, 512, 2048, 19, 320}, {"rtx3090", 10496, 1.695, 512, 2048, 19.5, 384},
		{"rtx4060ti", 4352, 2.535, 512, 2048, 18, 128}, {"rtx4070", 5888, 2.475, 512, 2048, 21, 192}, {"rtx4080", 9728, 2.505, 512, 2048, 22.4, 256}, {"rtx4090", 16384, 2.52, 512, 2048, 21, 384},
		{"rtx5070", 6144, 2.512, 512, 2048, 28, 192}, {"rtx5080", 10752, 2.617, 512, 2048, 30, 256}, {"rtx5090", 21760, 2.407, 512, 2048, 28, 512},
		{"l4", 7424, 2.04, 1024, 2048, 12.5, 192}, {"l40s", 18176, 2.52, 1024, 2048, 18, 384}, {"a10", 9216, 1.695, 1024, 2048, 12.5, 384}, {"a6000", 10752, 1.8, 1024, 2048, 16, 384},
		{"rtx6000ada", 18176, 2.505, 1024, 2048, 20, 384}, {"a40", 10752, 1.74, 1024, 2048, 14.5, 384},
		{"a30", 3584, 1.44, 2048, 4096, 2.43, 3072}, {"a100-40gb", 6912, 1.41, 2048, 4096, 2.43, 5120},
		{"mi250x-die", 7040, 1.7, 1024, 1024, 3.2, 4096}, {"mi300x", 19456, 2.1, 2048, 4096, 5.2, 8192}, {"mi325x", 19456, 2.1, 2048, 4096, 6, 8192}, {"mi355x", 16384, 2.4, 4096, 8192, 8, 8192},
	} {
		x, err := hw.FindCard(c.name)
		if err != nil {
			t.Fatal(err)
		}
		d := x.Device
		near := func(what string, got, want float64) {
			if got < 0.97*want || got > 1.03*want {
				t.Errorf("%s: %s is %.4g, want %.4g within 3%%", c.name, what, got, want)
			}
		}
		f32 := 2 * float64(c.cores) * c.ghz / 1e3
		if strings.HasPrefix(c.name, "mi3") {
			f32 *= 2 // two f32 operations a core and clock, packed
		}
		near("f32", float64(d.Peak["f32"])/1e12, f32)
		near("f16", float64(d.Peak["f16"])/1e12, c.f16*float64(d.SMs)*c.ghz/1e3)
		near("i8", float64(d.Peak["i8"])/1e12, c.i8*float64(d.SMs)*c.ghz/1e3)
		near("memory bandwidth", float64(d.MemoryBandwidth)/1e9, c.memoryGbps*float64(c.bits)/8)
	}
}

// Products of the lines of lspci are told apart from the dies that they are made of, and from
// one another by their memory.
func TestNamed(t *testing.T) {
	for line, want := range map[string]string{
		"01:00.0 3D controller: NVIDIA Corporation GA100GL [A30 PCIe] (rev a1)":                                      "a30",
		"01:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 40GB] (rev a1)":                                  "a100-40gb",
		"01:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)":                                  "a100-40gb",
		"01:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)":                                  "a100",
		"01:00.0 3D controller [0302]: NVIDIA Corporation GA102GL [A10] [10de:2236] (rev a1)":                        "a10",
		"01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)": "rtx4090",
		"01:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)":                                  "h100",
		"29:00.0 Display controller: Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran/MI200 [Instinct MI250X/MI250]": "mi250x-die",
		"29:00.0 Processing accelerators: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [Instinct MI300X]":    "mi300x",
	} {
		cards, _ := hw.Named(line + "\n")
		got := ""
		if len(cards) == 1 {
			got = cards[0].Name
		}
		if got != want {
			t.Errorf("%s is %q, want %q", line, got, want)
		}
	}
}

// Cards that a built-in machine does not have are joined by NVLink where one has their like.
func TestSwitched(t *testing.T) {
	for name, want := range map[string]bool{"a100": true, "a100-40gb": true, "gb200": true, "b200": true, "a30": false, "mi355x": false, "p100": false} {
		c, err := hw.FindCard(name)
		if err != nil || c.Switched() != want {
			t.Errorf("%s: %v, %v", name, c.Switched(), err)
			continue
		}
		if !want {
			continue
		}
		var text bytes.Buffer
		if err := (hw.Template{Name: "box", Cards: []hw.Card{c, c}, NVLink: true}).Write(&text); err != nil {
			t.Error(err)
		}
		if m, err := hw.Read(&text); err != nil || m.Devices[0].Memory != c.Device.Memory {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFindCard(t *testing.T) {
	for name, want := range map[string]string{"rtx4090": "rtx4090", "RTX 4090": "rtx4090", "4090": "rtx4090", "NVIDIA GeForce RTX 4090": "rtx4090", "A6000": "a6000", "L40S": "l40s", "Instinct MI300X": "mi300x", "4060ti-16gb": "rtx4060ti-16gb", "NVIDIA RTX 6000 Ada Generation": "rtx6000ada", "NVIDIA A40": "a40", "NVIDIA A100-SXM4-40GB": "a100-40gb", "NVIDIA A30": "a30", "GB200": "gb200"} {
		if c, err := hw.FindCard(name); err != nil || c.Name != want {
			t.Errorf("%s is %s (%v), want %s", name, c.Name, err, want)
		}
	}
	if _, err := hw.FindCard("rtx1"); err == nil || !strings.Contains(err.Error(), `unknown card "rtx1", want one of rtx3060, `) {
		t.Error(err)
	}
	cards, unknown := hw.Named("00:02.0 VGA compatible controller: Intel Corporation UHD Graphics\n01:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)\n01:00.1 Audio device: NVIDIA Corporation AD102 audio\n" +
		"02:00.0 3D controller: NVIDIA Corporation AD102GL [L40S] (rev a1)\n04:00.0 VGA compatible controller: NVIDIA Corporation GA104GL [RTX A4000] (rev a1)\n03:00.0 VGA compatible controller: NVIDIA Corporation TU116 [GeForce GTX 1660]\n")
	if len(cards) != 2 || cards[0].Name != "rtx4090" || cards[1].Name != "l40s" || len(unknown) != 2 || !strings.Contains(unknown[0], "A4000") || !strings.Contains(unknown[1], "1660") {
		t.Errorf("%d cards, unknown %q", len(cards), unknown)
	}
}

// A template is a machine file in which every GPU reaches every other through the host.
func TestTemplate(t *testing.T) {
	a, _ := hw.FindCard("rtx4090")
	b, _ := hw.FindCard("rtx3060")
	a.PCIe = a.PCIe.Meet(hw.Slot{Generation: 3, Lanes: 8})
	var text bytes.Buffer
	if err := (hw.Template{Name: "box", Note: "two \"cards\"", Cards: []hw.Card{a, b, b}}).Write(&text); err != nil {
		t.Fatal(err)
	}
	m, err := hw.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	if m.NumDevices() != 3 || !m.Devices[1].SameFigures(&m.Devices[2]) || len(m.Links) != 6 {
		t.Errorf("%d devices, %d links", m.NumDevices(), len(m.Links))
	}
	if _, rate := m.Transfer(0, 1); rate < 6.2e9 || rate > 6.4e9 { // 0.8 of 8 lanes of 0.985 GB/s
		t.Errorf("%v between the cards, want that of PCIe 3.0 x8", rate)
	}
	if err := (hw.Template{Name: "none"}).Write(&text); err == nil {
		t.Error("a machine of nothing was written")
	}
}

// GPUs that are cabled to a CPU alone reach one another through it.
func TestThroughTheCPU(t *testing.T) {
	figures := `{"kind": "gpu", "capacity": "24 GB", "memory_bandwidth": "1 TB/s", "peak": {"f32": "80 TFLOP/s"}, "launch": "3 us", "sms": 128, "source": "x"}`
	m, err := hw.Read(strings.NewReader(`{"format": "placer machine 1", "name": "box", "models": {"g": ` + figures + `, "c": ` + strings.Replace(figures, `"gpu"`, `"cpu"`, 1) + `},
		"devices": [{"name": "gpu:[0-1]", "model": "g"}, {"name": "cpu:0", "model": "c"}],
		"cables": [{"ends": ["gpu:[0-1]", "cpu:0"], "bandwidth": "25 GB/s", "latency": "4 us", "source": "x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r := m.Route(0, 1); len(r) != 2 {
		t.Errorf("route %v, want both cables", r)
	}
	two, err := m.Take(2, false)
	if err != nil || len(two.Links) != 4 || len(two.Route(0, 1)) != 2 {
		t.Errorf("without the CPU: %v, %d links", err, len(two.Links))
	}
}
