//go:build !cgo || !linux

package nvml

// host returns this host's library.
func host() library { return newLoaded() }
