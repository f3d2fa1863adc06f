//go:build cgo && linux

package nvml

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"
)

// fakeLibrary compiles the library that is none with options of the compiler, and returns
// its path.
func fakeLibrary(t *testing.T, options ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler for the fake library")
	}
	out := filepath.Join(t.TempDir(), fileName)
	if text, err := exec.Command(cc, append(options, "-shared", "-fPIC", "-O1", "-w", "-o", out, "testdata/fakenvml.c")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// TestLoadedAgreesWithGoNVML: what a library says is read alike by both ways to it.
func TestLoadedAgreesWithGoNVML(t *testing.T) {
	for _, options := range [][]string{nil, {"-DOLD"}} {
		path := fakeLibrary(t, options...)
		want, err := detect(bound{nvml.New(nvml.WithLibraryPath(path))})
		if err != nil {
			t.Fatal(err)
		}
		got, err := detect(&loaded{files: []string{path}})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Inventory{}, gpu{})); d != "" {
			t.Errorf("%v: by go-nvml and loaded (-, +):\n%s", options, d)
		}
		if g := got.gpus[0]; got.cuda != 13000 || g.NVLinks != 11 || g.Switched != 1 || g.Peers["0001:11:02.0"] != 10 || len(got.gpus) != 3 || got.topology[0][1] != pxb || !got.nvlink[0][1] || got.nvlink[0][2] {
			t.Errorf("%v: %+v", options, got)
		}
		sameStates(t, path)
		m, err := got.Machine("three", Host{}) // GPUs of one name whose memories differ
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"H100 PCIe", "H100 PCIe #2", "H100 PCIe #3"} {
			if m.Devices[i].Model != want {
				t.Errorf("GPU %d is called %s, want %s", i, m.Devices[i].Model, want)
			}
		}
	}
}

func sameStates(t *testing.T, path string) {
	t.Helper()
	a, err := watch(bound{nvml.New(nvml.WithLibraryPath(path))})
	if err != nil {
		t.Fatal(err)
	}
	b, err := watch(&loaded{files: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	for i, uuid := range []string{"GPU-0", "GPU-1", "GPU-2"} {
		want, err := a.Read(uuid)
		got, err2 := b.Read(uuid)
		if err != nil || err2 != nil || got != want || got.Utilisation != 97 || got.Throttle&Spoiled == 0 {
			t.Errorf("%s: %+v (%v) loaded, %+v (%v) by go-nvml", uuid, got, err2, want, err)
		}
		n, err := b.Others(uuid)
		if want := []int{1, 2, 0}[i]; err != nil || n != want {
			t.Errorf("%s: %d processes (%v), want %d", uuid, n, err, want)
		}
	}
	if _, err := b.Read("GPU-9"); err == nil || !strings.Contains(err.Error(), "GPU-9: not found") {
		t.Errorf("error %v of a GPU that is not there", err)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// TestBothFindThisHostAlike, on a host with GPUs or without.
func TestBothFindThisHostAlike(t *testing.T) {
	want, err := detect(host())
	got, err2 := detect(newLoaded())
	if (err == nil) != (err2 == nil) || errors.Is(err, ErrNoLibrary) != errors.Is(err2, ErrNoLibrary) {
		t.Fatalf("go-nvml says %v, the loaded library %v", err, err2)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Inventory{}, gpu{})); d != "" {
		t.Errorf("by go-nvml and loaded (-, +):\n%s", d)
	}
}

// TestLoadedWithoutLibrary: what keeps a library from starting.
func TestLoadedWithoutLibrary(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"/nonexistent/" + fileName, "is not there"},
		{fakeLibrary(t, "-DBROKEN"), "driver is not loaded"},
		{"testdata/dgxa100.json", "management library: "},
	} {
		_, err := detect(&loaded{files: []string{c.file}})
		if !errors.Is(err, ErrNoLibrary) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one of no library with %q", c.file, err, c.want)
		}
	}
}
