//go:build !windows

package cuda

import "github.com/ebitengine/purego"

// libcuda is where drivers keep their library.
var libcuda = [...]string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1"}

func load(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func lookUp(library uintptr, name string) (uintptr, error) { return purego.Dlsym(library, name) }
