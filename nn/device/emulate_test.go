//go:build linux

package device

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"placer/hw/gpu/fake"
)

// emulation is kernels.cu compiled for the host.
type emulation struct {
	handle uintptr
	run    func(f uintptr, args *uint64, grid, block, exchange, seed uint64, spans *uint64, count uint64) int32
	where  func() uint64
}

// compileEmulation compiles it. Every access to memory tells the emulation.
func compileEmulation(t testing.TB) *emulation {
	t.Helper()
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler to run kernels.cu on the host")
	}
	object := filepath.Join(t.TempDir(), "kernels.o")
	library := filepath.Join(t.TempDir(), "kernels.so")
	for _, args := range [][]string{
		{"-c", "-fsanitize=thread", "-fPIC", "-O2", "-w", "-U_FORTIFY_SOURCE", "-o", object, "testdata/emulate.cpp"},
		{"-shared", "-Wl,-Bsymbolic", "-o", library, object}, // without the sanitizer's own library
	} {
		if text, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	h, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	e := &emulation{handle: h}
	purego.RegisterLibFunc(&e.run, h, "emulate")
	purego.RegisterLibFunc(&e.where, h, "fault_address")
	return e
}

// exchanging are the kernels whose threads give each other values.
var exchanging = []string{"layer_norm", "layer_norm_back", "softmax", "softmax_back", "squares", "fault_lanes"}

// faults are what emulate in emulate.cpp returns.
var faults = [...]string{"", "a race", "an access outside of memory", "a lane that left its warp", "more memory than the emulation can watch"}

// launch runs the kernel name in the order of seed, and returns its fault, "" for
// none. Nothing is watched without spans of memory; see fake.GPU.
func (e *emulation) launch(t testing.TB, name string, grid, block uint32, args []uint64, seed uint64, spans []uint64) string {
	t.Helper()
	f, err := purego.Dlsym(e.handle, name)
	if err != nil {
		t.Fatal(err)
	}
	var words [17]uint64
	copy(words[:], args)
	exchange := uint64(0)
	if slices.Contains(exchanging, name) {
		exchange = 1
	}
	return faults[e.run(f, &words[0], uint64(grid), uint64(block), exchange, seed, unsafe.SliceData(spans), uint64(len(spans)/2))]
}

// emulated returns the kernels of kernels.cu themselves: the arithmetic that a GPU
// would do, one thread after another, in an order that changes from launch to
// launch unless seed is 0. If watched, races and accesses outside of memory are
// errors.
func emulated(t testing.TB, seed uint64, watched bool) map[string]fake.Kernel {
	t.Helper()
	e := compileEmulation(t)
	all := map[string]fake.Kernel{}
	for _, name := range kernelNames {
		all[name] = func(g *fake.GPU, grid, block uint32, args []uint64) {
			var spans []uint64
			if watched {
				spans = g.Spans()
			}
			if fault := e.launch(t, name, grid, block, args, seed, spans); fault != "" {
				t.Errorf("%s: %s at %x, arguments %x, memory %x", name, fault, e.where(), args, spans)
			}
			if seed != 0 {
				seed++
			}
		}
	}
	return all
}

// TestKernelsEmulated is TestRealGPUKernels with the kernels of kernels.cu, whose
// threads run in three orders. No two threads of a launch meet in memory, and none
// leaves what it was given.
func TestKernelsEmulated(t *testing.T) {
	for _, seed := range []uint64{0, 1, 1000} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compareKernels(t, pretended(t, emulated(t, seed, true))) })
	}
}

// TestFaults: the emulation finds faults.
func TestFaults(t *testing.T) {
	e := compileEmulation(t)
	for _, c := range []struct{ name, want string }{
		{"zero", faults[0]}, {"fault_race", faults[1]}, {"fault_order", faults[1]}, {"fault_outside", faults[2]}, {"fault_lanes", faults[3]},
	} {
		const n = 100 // no multiple of a warp
		x := make([]float32, n+1)
		base := uint64(uintptr(unsafe.Pointer(&x[0])))
		for seed := range uint64(3) {
			if got := e.launch(t, c.name, 2, 64, []uint64{base, n}, seed, []uint64{base, 4 * n}); got != c.want {
				t.Errorf("%s in order %d: %q, want %q", c.name, seed, got, c.want)
			}
		}
	}
}
