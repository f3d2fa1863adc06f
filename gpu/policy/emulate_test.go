//go:build linux

package policy

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebitengine/purego"

	"placer/gpu/fake"
)

// emulated returns the kernels of kernels.cu themselves, compiled for the host:
// the arithmetic that a GPU would do, one thread after another.
func emulated(t testing.TB) map[string]fake.Kernel {
	t.Helper()
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler to run kernels.cu on the host")
	}
	out := filepath.Join(t.TempDir(), "kernels.so")
	if text, err := exec.Command(compiler, "-shared", "-fPIC", "-O2", "-w", "-U_FORTIFY_SOURCE", "-o", out, "testdata/emulate.cpp").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	h, err := purego.Dlopen(out, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	var run func(f uintptr, args *uint64, grid, block, exchange uint64)
	purego.RegisterLibFunc(&run, h, "emulate")
	exchange := map[string]uint64{"layer_norm": 1, "layer_norm_back": 1, "softmax": 1, "softmax_back": 1, "squares": 1}
	all := map[string]fake.Kernel{}
	for _, name := range kernelNames {
		f, err := purego.Dlsym(h, name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = func(_ *fake.GPU, grid, block uint32, args []uint64) {
			var words [17]uint64
			copy(words[:], args)
			run(f, &words[0], uint64(grid), uint64(block), exchange[name])
		}
	}
	return all
}

// TestKernelsEmulated is TestRealGPUKernels with the kernels of kernels.cu.
func TestKernelsEmulated(t *testing.T) { compareKernels(t, pretended(t, emulated(t))) }
