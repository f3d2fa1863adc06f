package nvml

// fileName is the library's.
const fileName = "nvml.dll"

// places is where drivers keep it.
func places() []string {
	return []string{fileName, `C:\Program Files\NVIDIA Corporation\NVSMI\nvml.dll`}
}
