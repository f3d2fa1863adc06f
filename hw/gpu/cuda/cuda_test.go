package cuda

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/gputest"
)

// fakeLibrary compiles the driver that is none with options of the compiler, and
// returns its path.
func fakeLibrary(t *testing.T, options ...string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the fake driver is for Linux")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler for the fake driver")
	}
	out := filepath.Join(t.TempDir(), "libcuda.so.1")
	if text, err := exec.Command(cc, append(options, "-shared", "-fPIC", "-O1", "-w", "-o", out, "testdata/fakecuda.c", "-lpthread")...).CombinedOutput(); err != nil {
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
	b, err := OpenBLAS(library, 0)
	if err != nil {
		t.Fatal(err)
	}
	if b.Version() != 120400 {
		t.Errorf("version %d of cuBLAS before there is a handle", b.Version())
	}
	gputest.Run(t, d, b)
}

// TestConformance124: drivers of CUDA 12.4 lack a function of green contexts.
func TestConformance124(t *testing.T) {
	d, err := Open(fakeLibrary(t, "-DCUDA_12_4"))
	if err != nil {
		t.Fatal(err)
	}
	if d.(*driver).green.create == 0 || d.(*driver).green.stream != 0 {
		t.Fatal("not the functions of CUDA 12.4")
	}
	gputest.Run(t, d, nil)
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
	if l, err := OpenBLAS(os.Getenv("PLACER_CUBLAS"), d.Version()); err == nil {
		b = l
	} else {
		t.Log(err)
	}
	gputest.Run(t, d, b)
}

// TestRealBLAS loads the cuBLAS that PLACER_CUBLAS names, which needs no GPU, and
// has its cublasLt describe a product.
func TestRealBLAS(t *testing.T) {
	path := os.Getenv("PLACER_CUBLAS")
	if path == "" {
		t.Skip("PLACER_CUBLAS names no library")
	}
	b, err := OpenBLAS(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v := b.Version(); v/10000 < oldestBLAS || v/10000 > newestBLAS {
		t.Errorf("version %d", v)
	}
	if b.(*cublas).lt == nil {
		t.Fatal("no cublasLt with it")
	}
	var x ltPlan
	defer b.(*cublas).lt.drop(&x)
	err = b.(*cublas).lt.plan(&handle{bytes: 32 << 20}, &gpu.Product{Type: gpu.F8, Batch: 1, M: 64, N: 32, K: 16}, &x)
	if err == nil || x.desc == 0 || x.a == 0 || x.b == 0 || x.c == 0 {
		t.Errorf("plan %+v, error %v, want one of the missing handle alone", x, err)
	}
	t.Logf("cuBLAS %d; a plan without a handle: %v", b.Version(), err)
}

func TestNoDriver(t *testing.T) {
	if _, err := Open("/nonexistent/libcuda.so.1"); !errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("error %v, want %v", err, gpu.ErrNoDevice)
	}
	if _, err := OpenBLAS("/nonexistent/libcublas.so", 0); !errors.Is(err, gpu.ErrNoBLAS) || !strings.Contains(err.Error(), "/nonexistent/libcublas.so") {
		t.Errorf("error %v, want %v and the name", err, gpu.ErrNoBLAS)
	}
	if _, err := OpenBLAS("", 11080); errors.Is(err, gpu.ErrNoBLAS) && strings.Contains(err.Error(), ".so.12") {
		t.Errorf("for a driver of CUDA 11.8: error %v, want nothing of cuBLAS 12", err)
	}
	broken := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(broken, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(broken); !errors.Is(err, gpu.ErrNoDevice) || !strings.Contains(err.Error(), broken) {
		t.Errorf("error %v, want %v and what the loader says", err, gpu.ErrNoDevice)
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
