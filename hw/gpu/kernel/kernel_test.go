package kernel

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/ptxtest"
)

// TestGenerated: the PTX was made from the source beside it.
func TestGenerated(t *testing.T) { ptxtest.Generated(t, PTX(), "kernels.cu") }

func TestAssembles(t *testing.T) { ptxtest.Assembles(t, "kernels.ptx") }

// TestMasks: every word that Fill writes is finite, between 1/2 and 1 in size, and
// words differ.
func TestMasks(t *testing.T) {
	for _, c := range []struct {
		t              gpu.DType
		bits           int // of an element
		exponent, want uint32
	}{{gpu.F32, 32, 0x7f800000, 0x3f000000}, {gpu.BF16, 16, 0x7f80, 0x3f00}, {gpu.F16, 16, 0x7c00, 0x3800}, {gpu.F8, 8, 0x78, 0x30}} {
		seen := map[uint32]bool{}
		for i := range uint64(1000) {
			w := Word(i, c.t, 7)
			seen[w] = true
			for at := 0; at < 32; at += c.bits {
				if got := w >> at & c.exponent; got != c.want {
					t.Fatalf("%v: word %d is %08x: exponent %x, want %x", c.t, i, w, got, c.want)
				}
			}
		}
		if len(seen) < 900 {
			t.Errorf("%v: %d different words of 1000", c.t, len(seen))
		}
	}
}

// TestResident: the registers of rw are those that its grid counts on, where
// NVIDIA's assembler is.
func TestResident(t *testing.T) {
	out, err := exec.Command(ptxtest.Assembler(t), "-arch=sm_90", "-v", "-o", filepath.Join(t.TempDir(), "out.cubin"), "kernels.ptx").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, rw, _ := strings.Cut(string(out), "'rw'")
	_, rw, _ = strings.Cut(rw, "Used ")
	var registers int
	if _, err := fmt.Sscan(rw, &registers); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	registers = (registers + 7) / 8 * 8 // as they are handed out
	if got := 65536 / (registers * block); got != resident {
		t.Errorf("%d blocks of %d registers a thread fit, the grid counts on %d", got, registers, resident)
	}
}
