//go:build !linux

package cli

// threadSeconds returns the processor time that the program has used: the system
// does not say how much of it was the thread's.
func threadSeconds() float64 { return processSeconds() }
