package sim_test

import (
	"syscall"
	"time"
)

// cpuTime returns the time that the calling thread has run on a core, which a
// busy machine does not stretch as it does the wall clock's.
func cpuTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
