package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Seconds is a duration or an instant of simulated time, in seconds.
type Seconds float64

// Bytes is an amount of memory. It is an integer, so that sums are exact in
// any order.
type Bytes int64

// FLOPs counts floating-point operations; a multiply-add counts two.
type FLOPs float64

// BytesPerSecond is a bandwidth.
type BytesPerSecond float64

// FLOPsPerSecond is an arithmetic rate.
type FLOPsPerSecond float64

// Over returns the time to move b at rate r.
func (b Bytes) Over(r BytesPerSecond) Seconds { return Seconds(float64(b) / float64(r)) }

// Over returns the time to compute f at rate r.
func (f FLOPs) Over(r FLOPsPerSecond) Seconds { return Seconds(float64(f) / float64(r)) }

// String prints s with four significant digits and the prefix that fits.
func (s Seconds) String() string {
	a := math.Abs(float64(s))
	switch {
	case a == 0 || a >= 1:
		return strconv.FormatFloat(float64(s), 'g', 4, 64) + " s"
	case a >= 1e-3:
		return strconv.FormatFloat(float64(s)*1e3, 'g', 4, 64) + " ms"
	case a >= 1e-6:
		return strconv.FormatFloat(float64(s)*1e6, 'g', 4, 64) + " us"
	}
	return strconv.FormatFloat(float64(s)*1e9, 'g', 4, 64) + " ns"
}

func decimal(x float64, unit string) string {
	for _, p := range []struct {
		at   float64
		name string
	}{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(x) >= p.at {
			return strconv.FormatFloat(x/p.at, 'f', 2, 64) + " " + p.name + unit
		}
	}
	return strconv.FormatFloat(x, 'g', 4, 64) + " " + unit
}

// String prints b with a decimal prefix: "1.50 GB".
func (b Bytes) String() string { return decimal(float64(b), "B") }

// String prints f with a decimal prefix: "5.70 GFLOP".
func (f FLOPs) String() string { return decimal(float64(f), "FLOP") }

// String prints r with a decimal prefix: "732.00 GB/s".
func (r BytesPerSecond) String() string { return decimal(float64(r), "B/s") }

// String prints r with a decimal prefix: "9.30 TFLOP/s".
func (r FLOPsPerSecond) String() string { return decimal(float64(r), "FLOP/s") }

// Prefixes. Seconds are small and the other quantities large: "900 mB/s" is a
// slip of the shift key, not a quantity.
var smallPrefix = map[string]float64{"": 1, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12}
var largePrefix = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
var binaryPrefix = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}

// split cuts s into its number and the factor of its prefix.
func split(s, unit string, prefixes map[string]float64) (number string, factor float64, err error) {
	t := strings.TrimSpace(s)
	i := strings.LastIndexAny(t, "0123456789.")
	if i < 0 || !strings.HasSuffix(t, unit) || strings.ContainsAny(t[:i+1], "xX_") {
		return "", 0, fmt.Errorf("quantity %q: want a number and a unit in %s", s, unit)
	}
	p := strings.TrimSuffix(strings.TrimSpace(t[i+1:]), unit)
	f, ok := prefixes[p]
	if !ok {
		return "", 0, fmt.Errorf("quantity %q: unknown prefix %q of %s", s, p, unit)
	}
	return strings.TrimSpace(t[:i+1]), f, nil
}

func parse(s, unit string, prefixes map[string]float64) (float64, error) {
	n, f, err := split(s, unit, prefixes)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(n, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("quantity %q: %q is not a number", s, n)
	}
	if f < 1 {
		x /= math.Round(1 / f) // unlike x*f rounded once: "5 us" is 5e-6
	} else {
		x *= f
	}
	if err != nil || math.IsInf(x, 0) {
		return 0, fmt.Errorf("quantity %q: out of range", s)
	}
	return x, nil
}

// ParseSeconds reads "10 us".
func ParseSeconds(s string) (Seconds, error) {
	x, err := parse(s, "s", smallPrefix)
	return Seconds(x), err
}

// ParseBytes reads "16 GB" or "16 GiB". A whole number of bytes is read
// exactly; fractions are rounded to whole bytes.
func ParseBytes(s string) (Bytes, error) {
	n, f, err := split(s, "B", binaryPrefix)
	if err != nil {
		return 0, err
	}
	if i, err := strconv.ParseInt(n, 10, 64); err == nil && f == 1 {
		return Bytes(i), nil
	}
	x, err := parse(s, "B", binaryPrefix)
	if err == nil && math.Abs(x) >= 1<<62 {
		return 0, fmt.Errorf("quantity %q: out of range", s)
	}
	return Bytes(math.Round(x)), err
}

// ParseBytesPerSecond reads "900 GB/s".
func ParseBytesPerSecond(s string) (BytesPerSecond, error) {
	x, err := parse(s, "B/s", binaryPrefix)
	return BytesPerSecond(x), err
}

// ParseFLOPsPerSecond reads "9.3 TFLOP/s".
func ParseFLOPsPerSecond(s string) (FLOPsPerSecond, error) {
	x, err := parse(s, "FLOP/s", largePrefix)
	return FLOPsPerSecond(x), err
}

// exact prints x so that parse gives the same float64 back.
func exact(x float64, unit string) []byte {
	return []byte(strconv.FormatFloat(x, 'g', -1, 64) + " " + unit)
}

// MarshalText and UnmarshalText carry the unit, so files cannot lose it.

func (s Seconds) MarshalText() ([]byte, error) { return exact(float64(s), "s"), nil }
func (b Bytes) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatInt(int64(b), 10) + " B"), nil
}
func (r BytesPerSecond) MarshalText() ([]byte, error) { return exact(float64(r), "B/s"), nil }
func (r FLOPsPerSecond) MarshalText() ([]byte, error) { return exact(float64(r), "FLOP/s"), nil }

func (s *Seconds) UnmarshalText(t []byte) (err error) { *s, err = ParseSeconds(string(t)); return }
func (b *Bytes) UnmarshalText(t []byte) (err error)   { *b, err = ParseBytes(string(t)); return }
func (r *BytesPerSecond) UnmarshalText(t []byte) (err error) {
	*r, err = ParseBytesPerSecond(string(t))
	return
}
func (r *FLOPsPerSecond) UnmarshalText(t []byte) (err error) {
	*r, err = ParseFLOPsPerSecond(string(t))
	return
}
