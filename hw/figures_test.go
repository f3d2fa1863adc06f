package hw_test

import (
	"fmt"
	"strings"
	"testing"

	"placer/hw"
	"placer/units"
)

// sheets are the boost clocks, MHz, of data sheets and product pages. Sheets of the Hopper and
// the Blackwell boards state matrix units at a lower clock than vectors.
var sheets = map[string]struct{ clock, matrixClock int }{
	"rtx3060": {1777, 0}, "rtx3070": {1725, 0}, "rtx3080": {1710, 0}, "rtx3090": {1695, 0},
	"rtx4060ti": {2535, 0}, "rtx4060ti-16gb": {2535, 0}, "rtx4070": {2475, 0}, "rtx4080": {2505, 0}, "rtx4090": {2520, 0},
	"rtx5070": {2512, 0}, "rtx5080": {2617, 0}, "rtx5090": {2407, 0},
	"l4": {2040, 0}, "l40s": {2520, 0}, "a10": {1695, 0}, "a6000": {1800, 0}, "rtx6000ada": {2505, 0}, "a40": {1740, 0},
	"p100": {1303, 0}, "v100": {1530, 0}, "a30": {1440, 0}, "a100-40gb": {1410, 0}, "gb200": {2056, 2008}, "a100": {1410, 0}, "h100": {1980, 1830}, "h200": {1980, 1830}, "b200": {1965, 1835},
}

// A GPU that a driver describes by its name, cores and clock has the rates of the card of that
// name.
func TestDetectedRates(t *testing.T) {
	for _, c := range hw.Cards() {
		want := c.Device
		compute, nvidia := strings.CutPrefix(want.Arch, "sm_")
		if !nvidia {
			continue
		}
		sheet, ok := sheets[c.Name]
		if !ok {
			t.Errorf("%s: no clock", c.Name)
			continue
		}
		cc := 0
		if _, err := fmt.Sscan(compute, &cc); err != nil {
			t.Fatal(err)
		}
		spec := hw.Spec{Name: "NVIDIA " + strings.TrimPrefix(want.Model, "NVIDIA "), Major: cc / 10, Minor: cc % 10, SMs: want.SMs, SMClock: sheet.clock, Capacity: 1 << 30}
		got := spec.Device().Peak
		if sheet.matrixClock > 0 {
			vectors := got
			spec.SMClock = sheet.matrixClock
			got = spec.Device().Peak
			got["f32"], got["f64"] = vectors["f32"], vectors["f64"] // whose sheets have the higher clock
		}
		if want.Peak["f64"] == 0 { // without one f64 would have f32's rate
			t.Errorf("%s: no peak of f64", c.Name)
		}
		for k, w := range want.Peak {
			if r := float64(got[k] / w); r < 0.97 || r > 1.03 {
				t.Errorf("%s: %s is %.4g TFLOP/s, the card has %.4g", c.Name, k, float64(got[k])/1e12, float64(w)/1e12)
			}
		}
	}
}

// What is not in cards.json, by public figures.
func TestDetectedByName(t *testing.T) {
	for _, c := range []struct {
		spec  hw.Spec
		sms   int
		peaks map[string]float64 // TFLOP/s; 0: no rate of its own
	}{
		// Turing white paper, appendix: tensor rates with f32 sums 53.8 and 130.5, f16 sums apart.
		{hw.Spec{Name: "NVIDIA GeForce RTX 2080 Ti", Major: 7, Minor: 5, Cores: 4352, SMClock: 1545}, 68, map[string]float64{"f32": 13.4, "f16": 53.8, "i8": 215.2}},
		{hw.Spec{Name: "NVIDIA TITAN RTX", Major: 7, Minor: 5, Cores: 4608, SMClock: 1770}, 72, map[string]float64{"f32": 16.3, "f16": 130.5, "i8": 261}},
		// Without matrix units: f16 at twice the rate of f32.
		{hw.Spec{Name: "NVIDIA GeForce GTX 1660 SUPER", Major: 7, Minor: 5, Cores: 1408, SMClock: 1785}, 22, map[string]float64{"f32": 5.03, "f16": 10.05, "i8": 0}},
		// Pascal: f64 at a 32nd of f32, f16 no faster than f32.
		{hw.Spec{Name: "NVIDIA GeForce GTX 1080", Major: 6, Minor: 1, Cores: 2560, SMClock: 1733}, 20, map[string]float64{"f32": 8.87, "f64": 0.277, "f16": 0}},
		// The workstation board of the RTX 5090's chip has the full rate: its data sheet's 503.8.
		{hw.Spec{Name: "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", Major: 12, Cores: 24064, SMClock: 2617}, 188, map[string]float64{"f32": 126, "f16": 503.8, "bf16": 503.8, "tf32": 251.9, "f8": 1007.6}},
		{hw.Spec{Name: "NVIDIA GeForce RTX 4070 Laptop GPU", Major: 8, Minor: 9, Cores: 4608, SMClock: 2175}, 36, map[string]float64{"f32": 20, "f16": 40.1, "f8": 80.2, "i8": 160.4}},
	} {
		c.spec.Capacity = 1 << 30
		d := c.spec.Device()
		if d.SMs != c.sms {
			t.Errorf("%s: %d SMs, want %d", c.spec.Name, d.SMs, c.sms)
		}
		for k, w := range c.peaks {
			if got := d.Peak[k]; got < units.FLOPsPerSecond(0.98e12*w) || got > units.FLOPsPerSecond(1.02e12*w) {
				t.Errorf("%s: %s is %.4g TFLOP/s, want %.4g", c.spec.Name, k, float64(got)/1e12, w)
			}
		}
		if halved := strings.Contains(d.Source, "GeForce cards"); halved != (strings.Contains(c.spec.Name, "RTX") && strings.Contains(c.spec.Name, "GeForce")) {
			t.Errorf("%s: the source says %q", c.spec.Name, d.Source)
		}
	}
}
