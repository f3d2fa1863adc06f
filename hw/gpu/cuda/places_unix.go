//go:build !windows

package cuda

// libcuda is where drivers keep their library.
var libcuda = [...]string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1"}
