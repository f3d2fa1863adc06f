//go:build unix

package cli

import "syscall"

// processSeconds returns the processor time that the program has used, in
// seconds.
func processSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}
