//go:build !windows

package nvml

// fileName is the library's.
const fileName = "libnvidia-ml.so.1"

// places is where drivers keep it.
func places() []string {
	return []string{fileName, "/usr/lib/wsl/lib/" + fileName, "/usr/local/nvidia/lib64/" + fileName}
}
