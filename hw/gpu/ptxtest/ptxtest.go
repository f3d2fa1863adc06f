// Package ptxtest checks kernels in PTX against their source and has NVIDIA's assembler
// try them. It needs no GPU.
package ptxtest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Generated fails t if ptx was not made from the file source.
func Generated(t *testing.T, ptx, source string) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("// sha256 %x\n", sha256.Sum256(text)); !strings.Contains(ptx, want) {
		t.Errorf("the PTX was made from another %s: run make ptx", source)
	}
}

// Assembler returns the path of ptxas, which PLACER_PTXAS names or the path has.
// Without it t is skipped.
func Assembler(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("PLACER_PTXAS"); named != "" {
		return named
	}
	found, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("no ptxas on the path, and PLACER_PTXAS is not set")
	}
	return found
}

// Assembles fails t if the assembler refuses the file path for a kind of GPU that it
// knows. Drivers compile with the same code.
func Assembles(t *testing.T, path string) {
	t.Helper()
	ptxas := Assembler(t)
	done := 0
	for _, arch := range []string{"sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"} {
		out, err := exec.Command(ptxas, "-arch="+arch, "-o", filepath.Join(t.TempDir(), "out.cubin"), path).CombinedOutput()
		switch {
		case strings.Contains(string(out), "is not defined for option"): // older or newer than this assembler
		case err != nil:
			t.Errorf("%s: %v: %s", arch, err, out)
		default:
			done++
		}
	}
	if done == 0 {
		t.Error("the assembler knows none of the architectures")
	}
}
