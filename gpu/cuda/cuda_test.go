package cuda

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"placer/gpu"
	"placer/gpu/gputest"
)

// fakeLibrary compiles the driver that is none, and returns its path.
func fakeLibrary(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the fake driver is for Linux")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler for the fake driver")
	}
	out := filepath.Join(t.TempDir(), "libcuda.so.1")
	if text, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-w", "-o", out, "testdata/fakecuda.c", "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// TestConformance runs the binding on the fake driver: the calls really cross to
// C, with the arguments where the signatures have them.
func TestConformance(t *testing.T) {
	library := fakeLibrary(t)
	d, err := Open(library)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenBLAS(library)
	if err != nil {
		t.Fatal(err)
	}
	if b.Version() != 120400 {
		t.Errorf("version %d of cuBLAS before there is a handle", b.Version())
	}
	gputest.Run(t, d, b)
}

// TestRealGPU runs the same suite on the GPUs of this host.
func TestRealGPU(t *testing.T) {
	d, err := Open("")
	if errors.Is(err, gpu.ErrNoDevice) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var b gpu.BLAS
	if l, err := OpenBLAS(os.Getenv("PLACER_CUBLAS")); err == nil {
		b = l
	} else {
		t.Log(err)
	}
	gputest.Run(t, d, b)
}

func TestNoDriver(t *testing.T) {
	if _, err := Open("/nonexistent/libcuda.so.1"); !errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("error %v, want %v", err, gpu.ErrNoDevice)
	}
	if _, err := OpenBLAS("/nonexistent/libcublas.so"); !errors.Is(err, gpu.ErrNoBLAS) {
		t.Errorf("error %v, want %v", err, gpu.ErrNoBLAS)
	}
}

// TestNoGPU: a driver that is there without a GPU.
func TestNoGPU(t *testing.T) {
	t.Setenv("FAKE_CUDA_DEVICES", "0")
	if _, err := Open(fakeLibrary(t)); !errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("error %v, want %v", err, gpu.ErrNoDevice)
	}
}

// TestOldDriver: a library that lacks functions.
func TestOldDriver(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	source, out := filepath.Join(dir, "old.c"), filepath.Join(dir, "old.so")
	if err := os.WriteFile(source, []byte("int cuInit(unsigned f) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(cc, "-shared", "-fPIC", "-o", out, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if _, err := Open(out); err == nil || errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("error %v, want one that names what is missing", err)
	}
}
