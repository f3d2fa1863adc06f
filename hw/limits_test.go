package hw

import (
	"fmt"
	"strings"
	"testing"
)

// TestLimits: quantities that no hardware has are refused when a machine is read.
func TestLimits(t *testing.T) {
	text := `{"format": "placer machine 1", "name": "box", "models": {"M": {"kind": "gpu", "capacity": %q, "memory_bandwidth": %q,
		"peak": {"f32": %q}, "launch": %q, "sms": %s, "source": "s"}}, "devices": [{"name": "gpu:[0-1]", "model": "M"}],
		"cables": [{"ends": ["gpu:0", "gpu:1"], "bandwidth": %q, "latency": %q, "source": "s"}]}`
	usual := []any{"16 GB", "700 GB/s", "9 TFLOP/s", "5 us", "56", "11 GB/s", "5 us"}
	read := func(at int, value string) error {
		v := append([]any(nil), usual...)
		v[at] = value
		_, err := Read(strings.NewReader(fmt.Sprintf(text, v...)))
		return err
	}
	for _, c := range []struct {
		at    int
		value string
		want  string // in the error; empty: none
	}{
		{5, "1e-2 B/s", "bandwidth is 0.01 B/s, want 1 B/s"},
		{5, "1e-300 B/s", "bandwidth"},
		{5, "1e30 B/s", "bandwidth"},
		{5, "1 B/s", ""},
		{6, "1e308 s", "latency"},
		{6, "1e-300 s", "latency"},
		{6, "1 hr", "unit"},
		{6, "900 s", ""},
		{0, "8e18 B", "capacity"},
		{1, "1e-9 B/s", "memory_bandwidth"},
		{2, "1e-5 FLOP/s", "peak f32"},
		{3, "1e9 s", "launch"},
		{4, "100000000", "sms"},
	} {
		err := read(c.at, c.value)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.value, err, c.want)
		}
	}
}
