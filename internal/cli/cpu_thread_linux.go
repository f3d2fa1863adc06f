package cli

import "golang.org/x/sys/unix"

// threadSeconds returns the processor time that the calling thread has used, in
// seconds.
func threadSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}
