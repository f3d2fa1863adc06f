package gpu_test

import (
	"encoding/binary"
	"math"
	"testing"

	"placer/hw/gpu"
)

// TestElement: bit patterns of IEEE 754, of bfloat16 and of e4m3 (Micikevicius et
// al., arXiv:2209.05433, table 1).
func TestElement(t *testing.T) {
	for _, c := range []struct {
		t    gpu.DType
		bits uint64
		want float64
	}{
		{gpu.F16, 0x3c00, 1}, {gpu.F16, 0xc000, -2}, {gpu.F16, 0x3555, 0.333251953125}, {gpu.F16, 0x0001, 0x1p-24}, {gpu.F16, 0x7bff, 65504},
		{gpu.BF16, 0x3f80, 1}, {gpu.BF16, 0xbf00, -0.5}, {gpu.BF16, 0x4049, 3.140625},
		{gpu.F8, 0x38, 1}, {gpu.F8, 0xb0, -0.5}, {gpu.F8, 0x7e, 448}, {gpu.F8, 0x01, 0x1p-9}, {gpu.F8, 0x08, 0x1p-6},
		{gpu.F32, 0x40490fdb, 0x1.921fb6p+1}, {gpu.F64, 0x3fe8000000000000, 0.75},
	} {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], c.bits)
		if got := c.t.Element(b[:], 0); got != c.want {
			t.Errorf("%v %x is %v, want %v", c.t, c.bits, got, c.want)
		}
		if c.t == gpu.F8 || math.Abs(c.want) < 0x1p-14 {
			continue
		}
		var back [8]byte
		c.t.SetElement(back[:], 0, c.want*(1+0x1p-26)) // rounds to it
		if got := c.t.Element(back[:], 0); got != c.want && c.t != gpu.F64 {
			t.Errorf("%v of %v comes back as %v", c.t, c.want, got)
		}
	}
	if x := gpu.F8.Element([]byte{0x7f}, 0); !math.IsNaN(x) {
		t.Errorf("e4m3 7f is %v", x)
	}
	b := make([]byte, 4)
	gpu.BF16.SetElement(b, 1, 1.9999) // carries into the exponent
	if x := gpu.BF16.Element(b, 1); x != 2 || gpu.F8.Out() != gpu.BF16 || gpu.F64.Out() != gpu.F64 {
		t.Errorf("1.9999 rounds to %v", x)
	}
}
