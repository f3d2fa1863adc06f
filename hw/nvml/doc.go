// Package nvml owns the discovery of the GPUs of this host by NVIDIA's
// management library: what they are, how they are joined, and how they fare while
// something is measured. An Inventory becomes a machine whose figures are those
// of the data sheet at the GPU's own clocks; `placer bench hw` replaces them by
// measured ones.
//
// The library is reached through go-nvml, which needs cgo, or, in a program built
// without cgo and on Windows, loaded and called as package cuda calls the driver.
package nvml
