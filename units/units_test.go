package units_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"placer/units"
)

func ExampleParseBytesPerSecond() {
	bandwidth, err := units.ParseBytesPerSecond("900 GB/s")
	if err != nil {
		fmt.Println(err)
	}
	size, _ := units.ParseBytes("16 GiB")
	fmt.Println(size, "at", bandwidth, "take", size.Over(bandwidth))
	_, err = units.ParseBytes("16")
	fmt.Println(err)
	// Output:
	// 17.18 GB at 900.00 GB/s take 19.09 ms
	// quantity "16": want a number and a unit in B
}

func TestParse(t *testing.T) {
	seconds := func(s string) (float64, error) { x, err := units.ParseSeconds(s); return float64(x), err }
	bytes := func(s string) (float64, error) { x, err := units.ParseBytes(s); return float64(x), err }
	bandwidth := func(s string) (float64, error) { x, err := units.ParseBytesPerSecond(s); return float64(x), err }
	rate := func(s string) (float64, error) { x, err := units.ParseFLOPsPerSecond(s); return float64(x), err }
	for _, c := range []struct {
		name  string
		parse func(string) (float64, error)
		in    string
		want  float64
	}{
		{"micro", seconds, "10 us", 10e-6},
		{"micro sign", seconds, "10 µs", 10e-6},
		{"greek mu", seconds, "10 μs", 10e-6},
		{"rounded once", seconds, "7 us", 7e-6},
		{"nano", seconds, "3.5 ns", 3.5e-9},
		{"plain seconds", seconds, "2 s", 2},
		{"no space", seconds, "2s", 2},
		{"exponent", seconds, "1e-05 s", 1e-5},
		{"outer space", seconds, "  7 ms ", 7e-3},
		{"negative", seconds, "-1 s", -1},
		{"giga", bytes, "16 GB", 16e9},
		{"gibi", bytes, "16 GiB", 16 * (1 << 30)},
		{"fraction", bytes, "1.5 KiB", 1536},
		{"rounded", bytes, "1.5 B", 2},
		{"kilo in capitals", bytes, "4 KB", 4000},
		{"bandwidth", bandwidth, "732.16 GB/s", 732.16e9},
		{"binary bandwidth", bandwidth, "1 MiB/s", 1 << 20},
		{"rate", rate, "9.3 TFLOP/s", 9.3e12},
		{"peta", rate, "2 PFLOP/s", 2e15},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.parse(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("%q is %g, want %g", c.in, got, c.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	seconds := func(s string) error { _, err := units.ParseSeconds(s); return err }
	bytes := func(s string) error { _, err := units.ParseBytes(s); return err }
	bandwidth := func(s string) error { _, err := units.ParseBytesPerSecond(s); return err }
	rate := func(s string) error { _, err := units.ParseFLOPsPerSecond(s); return err }
	for _, c := range []struct {
		name  string
		parse func(string) error
		in    string
		want  string
	}{
		{"empty", seconds, "", "want a number and a unit"},
		{"no unit", seconds, "10", "want a number and a unit in s"},
		{"no number", seconds, "us", "want a number and a unit"},
		{"large prefix on seconds", seconds, "10 Ms", `unknown prefix "M"`},
		{"small prefix on bytes", bytes, "900 mB", `unknown prefix "m"`},
		{"small prefix on bandwidth", bandwidth, "900 mB/s", `unknown prefix "m"`},
		{"binary prefix on a rate", rate, "9 TiFLOP/s", `unknown prefix "Ti"`},
		{"two units", seconds, "10 s s", `unknown prefix "s "`},
		{"bandwidth for bytes", bytes, "16 GB/s", "want a number and a unit in B"},
		{"bytes for bandwidth", bandwidth, "16 GB", "want a number and a unit in B/s"},
		{"bits", bytes, "16 Gb", "want a number and a unit in B"},
		{"two numbers", bytes, "1 2 GB", "is not a number"},
		{"comma", bytes, "1,5 GB", "is not a number"},
		{"not a number", seconds, "NaN s", "want a number and a unit"},
		{"infinite", seconds, "Inf s", "want a number and a unit"},
		{"hexadecimal", bytes, "0x1p4 B", "want a number and a unit"},
		{"underscore", bytes, "1_000 B", "want a number and a unit"},
		{"too many bytes", bytes, "1e19 B", "out of range"},
		{"too large", seconds, "1e999 s", "out of range"},
		{"too large by its prefix", rate, "1e308 PFLOP/s", "out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.parse(c.in)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: error %v, want one with %q", c.in, err, c.want)
			}
		})
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{units.Seconds(0), "0 s"}, {units.Seconds(1.5), "1.5 s"}, {units.Seconds(-2e-3), "-2 ms"}, {units.Seconds(12.3456e-6), "12.35 us"}, {units.Seconds(4e-9), "4 ns"},
		{units.Bytes(0), "0 B"}, {units.Bytes(999), "999 B"}, {units.Bytes(1500), "1.50 kB"}, {units.Bytes(-16e9), "-16.00 GB"},
		{units.FLOPs(5.7e9), "5.70 GFLOP"}, {units.BytesPerSecond(732e9), "732.00 GB/s"}, {units.FLOPsPerSecond(9.3e12), "9.30 TFLOP/s"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// text is what files hold: it must carry every bit.
func TestTextIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64().Draw(t, "x")
		b := units.Bytes(rapid.Int64().Draw(t, "bytes"))
		var s units.Seconds
		var w units.BytesPerSecond
		var r units.FLOPsPerSecond
		var c units.Bytes
		for _, v := range []struct {
			marshal   func() ([]byte, error)
			unmarshal func([]byte) error
		}{
			{units.Seconds(x).MarshalText, s.UnmarshalText},
			{units.BytesPerSecond(x).MarshalText, w.UnmarshalText},
			{units.FLOPsPerSecond(x).MarshalText, r.UnmarshalText},
			{b.MarshalText, c.UnmarshalText},
		} {
			text, err := v.marshal()
			if err != nil {
				t.Fatal(err)
			}
			if err := v.unmarshal(text); err != nil {
				t.Fatal(err)
			}
		}
		if float64(s) != x || float64(w) != x || float64(r) != x || b != c {
			t.Fatalf("%v and %d came back as %v, %v, %v and %d", x, b, float64(s), float64(w), float64(r), c)
		}
	})
}

// What the screen shows can be read back, to the digits shown.
func TestStringParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := units.Bytes(rapid.Int64Range(0, 1e17).Draw(t, "bytes"))
		got, err := units.ParseBytes(b.String())
		if err != nil || math.Abs(float64(got-b)) > 0.006*float64(b) {
			t.Fatalf("%d prints as %q, which reads as %d, %v", b, b, got, err)
		}
		s := units.Seconds(rapid.Float64Range(1e-9, 1e4).Draw(t, "seconds"))
		back, err := units.ParseSeconds(s.String())
		if err != nil || math.Abs(float64(back-s)) > 6e-4*float64(s) {
			t.Fatalf("%g prints as %q, which reads as %g, %v", float64(s), s, float64(back), err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"10 us", "16 GiB", "900 GB/s", "9.3 TFLOP/s", "1e999 s", "µs", "- B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := units.ParseSeconds(s); err == nil && (math.IsNaN(float64(x)) || math.IsInf(float64(x), 0)) {
			t.Errorf("%q reads as %v", s, x)
		}
		if b, err := units.ParseBytes(s); err == nil {
			text, _ := b.MarshalText()
			if again, err := units.ParseBytes(string(text)); err != nil || again != b {
				t.Errorf("%q reads as %d, which comes back as %d, %v", s, b, again, err)
			}
		}
		if x, err := units.ParseBytesPerSecond(s); err == nil && math.IsNaN(float64(x)) {
			t.Errorf("%q reads as %v", s, x)
		}
		if x, err := units.ParseFLOPsPerSecond(s); err == nil && math.IsNaN(float64(x)) {
			t.Errorf("%q reads as %v", s, x)
		}
	})
}

func TestOver(t *testing.T) {
	if got := units.Bytes(1e9).Over(2e9); got != 0.5 {
		t.Errorf("1 GB at 2 GB/s takes %v", got)
	}
	if got := units.FLOPs(3e12).Over(2e12); got != 1.5 {
		t.Errorf("3 TFLOP at 2 TFLOP/s take %v", got)
	}
}
